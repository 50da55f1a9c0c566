// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/recording/transfer.h"

#include "core/model/device.h"
#include "core/model/parameters.h"

#include <ATen/ATen.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace ponderscope {

TokenPlaces token_places(std::span<const Window> windows, at::Device device) {
    std::vector<std::int64_t> sequence;
    std::vector<std::int64_t> position;
    std::vector<std::int64_t> length;
    for (std::size_t i = 0; i < windows.size(); ++i) {
        const Window& window = windows[i];
        const std::size_t end = sequence.size() + window.ids.size();
        sequence.resize(end, window.sequence >= 0 ? window.sequence : static_cast<std::int64_t>(i));
        length.resize(end, window.sequence_length > 0 ? window.sequence_length
                                                      : static_cast<std::int64_t>(window.ids.size()));
        for (std::int64_t t = window.first; position.size() < end; ++t) {
            position.push_back(t);
        }
    }
    return {send(sequence, device), send(position, device), send(length, device)};
}

ReportedTokens reported_tokens(std::span<const Window> windows, at::Device device, std::int64_t prefix) {
    std::vector<std::int64_t> tokens;
    std::vector<std::int64_t> others;
    std::vector<std::int64_t> places;
    std::vector<std::int64_t> targets;
    std::int64_t first = 0;
    std::int64_t longest = 0;
    for (const Window& window : windows) {
        const auto length = static_cast<std::int64_t>(window.ids.size());
        longest = std::max(longest, length);
        for (std::int64_t t = 0; t < length; ++t) {
            if (t < window.report_begin || t >= window.report_end) {
                others.push_back(first + t);
                places.push_back(-1);
                continue;
            }
            places.push_back(static_cast<std::int64_t>(tokens.size()));
            tokens.push_back(first + t);
            // Tokens of a prefix are not predicted.
            const bool predicts = window.first + t + 1 >= prefix;
            const std::int64_t next =
                t + 1 < length ? window.ids[static_cast<std::size_t>(t + 1)] : window.next;
            targets.push_back(predicts ? next : -1);
        }
        first += length;
    }
    ReportedTokens reported;
    reported.count = static_cast<std::int64_t>(tokens.size());
    reported.longest = longest;
    reported.targets = send(targets, device);
    if (!others.empty()) {
        reported.tokens = send(tokens, device);
        reported.others = send(others, device);
        reported.place = send(places, device);
    }
    return reported;
}

ScoreTransfer::ScoreTransfer(const Recorder& recorder, std::vector<ReportedWindow> windows)
    : windows_(std::move(windows)) {
    const HeadResult& output = recorder.output;
    std::vector<at::Tensor> tensors{output.nll, output.rank};
    has_distribution_ = output.entropy.defined();
    if (has_distribution_) {
        tensors.push_back(output.entropy);
        tensors.push_back(output.max_probability);
    }
    has_steps_ = recorder.steps.defined();
    all_ran_ = recorder.all_ran;
    if (has_steps_) {
        tensors.push_back(recorder.steps);
    }
    for (const Recorder::Signal& entry : recorder.signals()) {
        // Convert on the device, so that fp16 signals need half the copy.
        tensors.push_back(entry.values.to(scalar_type_of(entry.info.dtype)));
        fields_.push_back({entry.info.name, entry.values.sizes().slice(1).vec(), entry.info.dtype});
    }
    copy_ = std::make_unique<HostCopy>(tensors);
}

std::vector<WindowResult> ScoreTransfer::collect(const FlopsModel& cost, bool decides_by_head) {
    copy_->wait();
    std::size_t next = 0;
    const float* nll = copy_->floats(next++);
    const std::int32_t* rank = copy_->integers(next++);
    const float* entropy = has_distribution_ ? copy_->floats(next++) : nullptr;
    const float* max_probability = has_distribution_ ? copy_->floats(next++) : nullptr;
    const std::int32_t* steps = has_steps_ ? copy_->integers(next++) : nullptr;
    std::vector<WindowResult> results;
    std::int64_t row = 0;   // index among the reported tokens
    std::int64_t token = 0; // index among all tokens
    for (ReportedWindow& window : windows_) {
        const std::int64_t count = window.report_end - window.report_begin;
        const std::int64_t all = window.past + window.length;
        std::vector<std::int32_t> all_steps(static_cast<std::size_t>(all),
                                            static_cast<std::int32_t>(cost.max_steps()));
        std::copy(window.past_steps.begin(), window.past_steps.end(), all_steps.begin());
        for (std::int64_t t = 0; steps != nullptr && t < window.length; ++t) {
            all_steps[static_cast<std::size_t>(window.past + t)] = steps[token + t];
        }
        std::vector<std::int64_t> flops(all_steps.size());
        const WindowSpan whole{0, all, window.past + window.report_begin, window.past + window.report_end};
        // If exits only choose the read-out, every step ran and costs FLOPs.
        const std::vector<std::int32_t> every(all_ran_ ? all_steps.size() : 0,
                                              static_cast<std::int32_t>(cost.max_steps()));
        cost.count(all_ran_ ? every : all_steps, decides_by_head, {&whole, 1}, flops);
        WindowResult result;
        TokenColumns& columns = result.tokens;
        columns.first = window.past + window.report_begin;
        columns.id = std::move(window.ids);
        columns.nll.assign(nll + row, nll + row + count);
        columns.rank.assign(rank + row, rank + row + count);
        if (has_distribution_) {
            columns.entropy.assign(entropy + row, entropy + row + count);
            columns.max_probability.assign(max_probability + row, max_probability + row + count);
        } else {
            columns.entropy.assign(static_cast<std::size_t>(count), std::numeric_limits<float>::quiet_NaN());
            columns.max_probability = columns.entropy;
        }
        for (std::int64_t t = columns.first; t < columns.first + count; ++t) {
            columns.steps.push_back(all_steps[static_cast<std::size_t>(t)]);
            columns.flops.push_back(flops[static_cast<std::size_t>(t)]);
        }
        for (std::size_t f = 0; f < fields_.size(); ++f) {
            const Field& field = fields_[f];
            const std::int64_t each =
                c10::multiply_integers(field.shape) * static_cast<std::int64_t>(size_of(field.dtype));
            const std::byte* const begin = copy_->bytes(next + f) + row * each;
            SignalChunk chunk{columns.first, field.dtype, field.shape, {begin, begin + count * each}};
            chunk.shape.insert(chunk.shape.begin(), count);
            result.signals.emplace_back(field.name, std::move(chunk));
        }
        results.push_back(std::move(result));
        row += count;
        token += window.length;
    }
    return results;
}

} // namespace ponderscope
