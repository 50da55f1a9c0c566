// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/engine/decoder.h"

#include "core/model/device.h"

#include <ATen/ATen.h>
#include <c10/util/Exception.h>

#include <utility>
#include <vector>

namespace ponderscope {

Decoder::Decoder(const EngineParts& parts, StepCache* cache, Wish wish)
    : parts_(parts),
      options_(parts.generation_options(cache != nullptr)),
      wish_(wish),
      device_(cuda_kernels(parts.device)) {
    options_.plan.refreshes = std::nullopt; // the cache holds exact keys and values
    options_.plan.attention = {};           // recorded in scoring only
    options_.plan.states = std::nullopt;
    options_.plan.lens = false;
    options_.read_out_every_step = wish.level == RecordLevel::steps;
    options_.cache = cache;
    const bool alike =
        cache != nullptr && wish.repeats && !parts.halts() && !parts.method().layers_are_steps();
    if (!alike || (device_ != nullptr && device_->capture == nullptr)) {
        device_ = nullptr;
    }
}

/// Whether operations and memory equal those of the last run: one token each of the same sequences.
bool Decoder::repeats(const TokenBatch& batch) const {
    return device_ != nullptr && batch.single() && batch_.single() && batch.first_rows == batch_.first_rows &&
           batch.cos.is_same(batch_.cos);
}

const NewestTokens& Decoder::run(TokenBatch batch, std::span<const Window> windows) {
    parts_.place(batch, windows);
    const bool again = repeats(batch);
    if (!again) {
        batch_ = std::move(batch);
        reported_ = wish_.level ? reported_tokens(windows, parts_.device) : ReportedTokens();
    } else {
        batch_.numbers.copy_(batch.numbers);
        if (batch.start.defined()) {
            batch_.start.copy_(batch.start);
        }
        batch_.past = std::move(batch.past);
        if (graph_) {
            replay();
            return newest_;
        }
    }
    graph_.reset();
    newest_ = {};
    if (again && capture()) {
        replay();
    } else {
        compute();
    }
    return newest_;
}

bool Decoder::capture() {
    options_.stop = nullptr; // a stop would leave the capture incomplete
    try {
        graph_ = device_->capture(parts_.device, [this] { compute(); });
        if (wish_.graphs != nullptr) {
            ++wish_.graphs->captures;
        }
    } catch (const c10::Error& error) {
        newest_ = {};
        device_ = nullptr;
        if (wish_.graphs != nullptr) {
            wish_.graphs->failure = error.what_without_backtrace();
        }
    }
    return graph_ != nullptr;
}

void Decoder::replay() {
    graph_->replay();
    if (wish_.graphs != nullptr) {
        ++wish_.graphs->replays;
    }
}

void Decoder::compute() {
    const Backbone& backbone = parts_.backbone();
    StepsOptions options = options_;
    Recorder* recorder = nullptr;
    if (wish_.level) {
        newest_.recorder =
            std::make_unique<Recorder>(backbone, parts_.method(), options.plan, *wish_.level, reported_);
        recorder = newest_.recorder.get();
        options.listener = recorder;
    }
    const StepsResult result = run_steps(backbone, parts_.method(), batch_, options);
    if (recorder != nullptr) {
        recorder->finish(result);
    }
    newest_.steps = result.steps;
    newest_.states = last_rows(result.readout);
    if (!wish_.likeliest) {
        return;
    }
    if (recorder != nullptr && recorder->output.argmax.defined()) {
        newest_.likeliest = recorder->output.argmax; // the recorder reports only the last tokens
        return;
    }
    HeadRequest request;
    request.distribution = true;
    newest_.likeliest = read_out(newest_.states, backbone.head(), request).argmax;
}

at::Tensor Decoder::last_rows(const at::Tensor& readout) const {
    if (batch_.single()) {
        return readout;
    }
    std::vector<std::int64_t> rows;
    std::int64_t end = 0;
    for (const std::int64_t length : batch_.lengths) {
        end += length;
        rows.push_back(end - 1);
    }
    return readout.index_select(0, send(rows, parts_.device));
}

} // namespace ponderscope
