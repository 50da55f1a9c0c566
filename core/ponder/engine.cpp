// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/engine.h"

#include "core/base/error.h"
#include "core/ponder/device.h"
#include "core/ponder/engine_impl.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>

#include <stdexcept>
#include <utility>

namespace ponderscope {

namespace {

Parameters load_parameters(const Checkpoint& checkpoint, at::Device device, const LoadOptions& options) {
    const ParameterLayout layout = parameter_layout(checkpoint.config);
    try {
        return Parameters::load(layout, checkpoint, device, scalar_type_of(options.precision),
                                options.progress, options.stop);
    } catch (const c10::OutOfMemoryError&) {
        throw EnvironmentError(checkpoint.folder.string() + ": the weights do not fit into the memory of " +
                               device.str() + ".");
    }
}

} // namespace

void EngineParts::check_ids(std::span<const std::int32_t> ids) const {
    if (ids.empty()) {
        throw InputError("A sequence without tokens cannot be computed.");
    }
    if (static_cast<std::int64_t>(ids.size()) > backbone().longest_sequence()) {
        throw InputError("This model has positions for " + std::to_string(backbone().longest_sequence()) +
                         " tokens, and a sequence has " + std::to_string(ids.size()) +
                         "; use a shorter text or a smaller --context.");
    }
    const std::int64_t vocabulary = model.config().vocab_size;
    for (const std::int32_t id : ids) {
        if (id < 0 || id >= vocabulary) {
            throw InputError("Token id " + std::to_string(id) + " is outside of the model's vocabulary of " +
                             std::to_string(vocabulary) +
                             "; the tokenizer and the checkpoint do not belong together.");
        }
    }
}

Engine Engine::load(const Checkpoint& checkpoint, const LoadOptions& options) {
    const at::Device device = device_from_string(options.device);
    require_runnable(checkpoint.config);
    if (device.is_cpu()) {
        keep_host_memory();
    }
    const c10::InferenceMode no_gradients;
    Parameters parameters = load_parameters(checkpoint, device, options);
    std::vector<std::string> notices = checkpoint.config.notices;
    notices.insert(notices.end(), parameters.notices().begin(), parameters.notices().end());
    if (checkpoint.config.rope.kind == RopeConfig::Kind::dynamic) {
        notices.emplace_back(
            "The rotation angles of this model depend on the length of the whole sequence: beyond " +
            std::to_string(checkpoint.config.max_positions) +
            " tokens a continuation is computed anew for each token, without a cache.");
    }
    if (const std::string hint = precision_hint(device, options.precision); !hint.empty()) {
        notices.push_back(hint);
    }
    return Engine(std::make_unique<Impl>(Impl{{Model(checkpoint.config, std::move(parameters)),
                                               device,
                                               describe_device(device),
                                               std::move(notices),
                                               {},
                                               0}}));
}

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;
Engine::~Engine() = default;

const ModelConfig& Engine::config() const {
    return impl_->model.config();
}

std::string Engine::device_name() const {
    return impl_->device_name;
}

std::string Engine::scoring() const {
    return "exact";
}

std::vector<std::string> Engine::notices() const {
    return impl_->notices;
}

std::vector<SignalInfo> Engine::signals(RecordLevel level) const {
    return recorded_signals(config(), impl_->method(), level);
}

std::vector<WindowResult> Engine::score(std::span<const Window> windows, RecordLevel level) const {
    return collect(submit(windows, level));
}

void Engine::DeletePending::operator()(Pending* pending) const {
    delete pending;
}

Engine::PendingPtr Engine::submit(std::span<const Window> windows, RecordLevel level) const try {
    if (impl_->batches_under_way >= 2) {
        throw std::logic_error("Engine::submit: two batches are under way; collect one first");
    }
    std::vector<std::span<const std::int32_t>> sequences;
    std::vector<ReportedWindow> reported;
    for (const Window& window : windows) {
        impl_->check_ids(window.ids);
        if (window.report_begin < 0 || window.report_begin > window.report_end ||
            window.report_end > static_cast<std::int64_t>(window.ids.size())) {
            throw std::logic_error("Engine::submit: reported tokens outside of their window");
        }
        sequences.push_back(window.ids);
        reported.push_back(
            {static_cast<std::int64_t>(window.ids.size()),
             0,
             {},
             window.report_begin,
             window.report_end,
             {window.ids.begin() + window.report_begin, window.ids.begin() + window.report_end}});
    }
    const c10::InferenceMode no_gradients;
    const bool keeps_rows = impl_->method().keeps_rows();
    const TokenBatch batch = TokenBatch::make(impl_->backbone(), sequences, impl_->device, keeps_rows);
    Recorder recorder(impl_->backbone(), impl_->method(), level,
                      reported_tokens(windows, impl_->device, impl_->method().halts()));
    StepsOptions options;
    options.observer = &recorder;
    options.workspace = impl_->reusable();
    recorder.finish(run_steps(impl_->backbone(), impl_->method(), batch, options));
    return PendingPtr(new Pending(ScoreTransfer(recorder, std::move(reported)), *impl_));
} catch (const c10::OutOfMemoryError&) {
    throw memory_exhausted(impl_->device);
}

std::vector<WindowResult> Engine::collect(PendingPtr pending) const try {
    return pending->collect();
} catch (const c10::OutOfMemoryError&) {
    throw memory_exhausted(impl_->device);
}

} // namespace ponderscope
