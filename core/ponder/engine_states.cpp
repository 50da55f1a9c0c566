// SPDX-License-Identifier: GPL-3.0-or-later
// Engine: states that are put in the place of others, and where they are taken from.
#include "core/base/error.h"
#include "core/ponder/device.h"
#include "core/ponder/engine_impl.h"
#include "core/ponder/lens_recorder.h"
#include "core/ponder/state_recorder.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace ponderscope {

namespace {

/// Takes states at chosen places of a run.
class StateCatcher final : public StepObserver, public TapListener {
public:
    StateCatcher(std::span<const StatePlace> places, std::span<const Window> windows, at::Device device)
        : places_(places), taken_(places.size()), count_(places.size(), 0) {
        for (const StatePlace& place : places) {
            std::vector<std::int64_t> tokens;
            std::int64_t first = 0;
            for (std::size_t i = 0; i < windows.size(); ++i) {
                const Window& window = windows[i];
                const std::int64_t number =
                    window.sequence >= 0 ? window.sequence : static_cast<std::int64_t>(i);
                for (std::int64_t t = window.report_begin; number == place.sequence && t < window.report_end;
                     ++t) {
                    if (place.token == StatePlace::all_tokens || window.first + t == place.token) {
                        tokens.push_back(first + t);
                    }
                }
                first += static_cast<std::int64_t>(window.ids.size());
            }
            wanted_.push_back(at::tensor(tokens, at::kLong).to(device));
        }
    }

    [[nodiscard]] bool wants(std::string_view name) const override { return name == "layer_output"; }
    [[nodiscard]] bool wants_layer(std::string_view name, std::int64_t layer) const override {
        return wants(name) && std::any_of(places_.begin(), places_.end(),
                                          [&](const StatePlace& place) { return place.layer == layer; });
    }
    /// The next \p count tokens of the windows are computed together.
    void next_batch(std::int64_t count) {
        first_ += count_in_batch_;
        count_in_batch_ = count;
    }
    void step_begins(const Slots& slots) override { tokens_ = slots.tokens; }
    void heard(std::string_view, std::int64_t step, std::int64_t layer, const at::Tensor& tensor) override {
        take(step, layer, tensor);
    }
    void step_ran(const Slots& slots, const Decision&, const at::Tensor&) override {
        take(slots.step, StatePlace::end_of_step, slots.hidden);
    }

    [[nodiscard]] std::vector<std::vector<float>> states() const {
        std::vector<std::vector<float>> all(places_.size());
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (count_[i] > 0) {
                const at::Tensor mean = (taken_[i] / static_cast<double>(count_[i])).to(at::kCPU);
                all[i].assign(mean.const_data_ptr<float>(), mean.const_data_ptr<float>() + mean.numel());
            }
        }
        return all;
    }

private:
    void take(std::int64_t step, std::int64_t layer, const at::Tensor& states) {
        for (std::size_t i = 0; i < places_.size(); ++i) {
            if (places_[i].step != step || places_[i].layer != layer) {
                continue;
            }
            const at::Tensor numbers =
                tokens_.defined() ? tokens_ + first_
                                  : at::arange(first_, first_ + states.size(0), wanted_[i].options());
            const at::Tensor rows = at::nonzero(at::isin(numbers, wanted_[i])).view(-1);
            if (rows.size(0) > 0) {
                const at::Tensor sum = states.index_select(0, rows).to(at::kFloat).sum(0);
                taken_[i] = taken_[i].defined() ? taken_[i] + sum : sum;
                count_[i] += rows.size(0);
            }
        }
    }

    std::span<const StatePlace> places_;
    std::vector<at::Tensor> wanted_; ///< a place: int64, tokens of the run
    std::vector<at::Tensor> taken_;  ///< a place: fp32 [d], the sum
    std::vector<std::int64_t> count_;
    at::Tensor tokens_; ///< of the step that runs, in its batch
    std::int64_t first_ = 0, count_in_batch_ = 0;
};

} // namespace

void EngineParts::refuse_layers_of_exits() const {
    if (layer_steps != nullptr && !choices.attention.none()) {
        throw InputError(
            "Sequence attention is not recorded where the layers of a vanilla model are its steps; "
            "record the exits and the attention as two runs.");
    }
    if (layer_steps != nullptr && choices.states && !choices.states->layers.empty()) {
        throw InputError("--record states:LAYERS: where the layers of a vanilla model are its steps, every "
                         "step has the state of one layer; write --record layers,states.");
    }
    if (layer_steps != nullptr && choices.lens) {
        throw InputError("The layers of a vanilla model are read out as its steps already; leave the "
                         "read-outs of layers at every step away.");
    }
}

void Engine::use_states(std::optional<StateChoice> choice) {
    impl_->choices.states = std::move(choice);
    impl_->refuse_layers_of_exits();
}

void Engine::use_lens(bool wanted) {
    if (wanted) {
        require_single_stream(config(), "--record steps,layers");
    }
    impl_->choices.lens = wanted;
    impl_->refuse_layers_of_exits();
}

std::int64_t Engine::token_bytes() const {
    const RunChoices& choices = impl_->choices;
    return (choices.states ? StateForm(*choices.states, config(), impl_->method()).token_bytes() : 0) +
           (choices.lens ? LensRecorder::token_bytes(config(), max_steps() + 1) : 0);
}

std::int64_t Engine::token_room() const {
    const RunChoices& choices = impl_->choices;
    // What is kept, and the same on its way to the trace.
    std::int64_t bytes = 2 * token_bytes();
    if (impl_->method().visibility() == VisibilityRule::interleaved) {
        // All slots are computed together: their layers' states are there until the last pass is known.
        const std::int64_t layers = choices.lens ? config().layers
                                    : choices.states
                                        ? static_cast<std::int64_t>(choices.states->layers.size())
                                        : 0;
        bytes += layers * (max_steps() + 1) * config().hidden_size * 4;
    }
    return bytes;
}

std::int64_t Engine::state_width(std::int64_t layer) const {
    return StateForm({layer == StatePlace::end_of_step ? std::vector<std::int64_t>()
                                                       : std::vector<std::int64_t>{layer}},
                     config(), impl_->method())
        .width;
}

void Engine::check_place(const StatePlace& place, bool patched) const {
    const Method& method = impl_->method();
    const auto refuse = [&](const std::string& expected, const std::string& what) {
        throw InputError("A state of " + to_string(place) + ": expected " + expected + "; " + what + ".");
    };
    if (place.step < 0 || place.step > method.max_steps()) {
        refuse("a step from 0 to " + std::to_string(method.max_steps()), "the model has no other");
    }
    if (place.layer == StatePlace::end_of_step) {
        if (patched && method.wants_stream() && place.step < method.max_steps()) {
            refuse("a layer", "the next step of this model reads what leaves the last layer, " +
                                  std::to_string(config().core_end() - 1) +
                                  ", and not the normed end of the step");
        }
        return;
    }
    if (method.layers_are_steps()) {
        refuse("no layer", "the layers of this model are its steps here");
    }
    if (place.layer < config().core_begin() || place.layer >= config().core_end()) {
        refuse("a layer from " + std::to_string(config().core_begin()) + " to " +
                   std::to_string(config().core_end() - 1),
               "its steps run no other");
    }
    require_single_stream(config(), "A state of " + to_string(place));
}

void Engine::use_patches(std::vector<StatePatch> patches) {
    if (!patches.empty() && impl_->choices.refreshes && impl_->choices.iterates(impl_->method())) {
        throw InputError("States are put in where slots are computed exactly: refreshes that are counted "
                         "would reach others from them than from what was computed; choose --jacobi exact.");
    }
    for (const StatePatch& patch : patches) {
        check_place(patch.to, true);
        const std::int64_t width = state_width(patch.to.layer);
        if (static_cast<std::int64_t>(patch.state.size()) != width) {
            throw InputError("A state for " + to_string(patch.to) + ": expected " + std::to_string(width) +
                             " numbers, the width of this model there, found " +
                             std::to_string(patch.state.size()) +
                             "; take it from a model of the same width.");
        }
        if (!std::all_of(patch.state.begin(), patch.state.end(), [](float x) { return std::isfinite(x); })) {
            throw InputError("A state for " + to_string(patch.to) +
                             ": expected finite numbers, found NaN or infinity; the state did not run, or "
                             "was too large for the fp16 that it was recorded in.");
        }
    }
    impl_->patches = std::move(patches);
}

std::vector<std::vector<float>> Engine::states_at(std::span<const Window> windows,
                                                  std::span<const StatePlace> places) const try {
    for (const StatePlace& place : places) {
        check_place(place, false);
    }
    const c10::InferenceMode no_gradients;
    StepsOptions options = impl_->steps_options();
    options.choices.attention = {};
    StateCatcher catcher(places, windows, impl_->device);
    options.observer = &catcher;
    options.taps = &catcher;
    constexpr std::size_t together = 8; // as a recording has them
    for (std::size_t begin = 0; begin < windows.size(); begin += together) {
        const auto some = windows.subspan(begin, std::min(together, windows.size() - begin));
        std::vector<std::span<const std::int32_t>> sequences;
        for (const Window& window : some) {
            impl_->check_ids(window.ids);
            sequences.push_back(window.ids);
        }
        TokenBatch batch = TokenBatch::make(impl_->backbone(), sequences, impl_->device, impl_->plans_rows());
        impl_->place(batch, some);
        catcher.next_batch(batch.size());
        (void)run_steps(impl_->backbone(), impl_->method(), batch, options);
    }
    return catcher.states();
} catch (const c10::OutOfMemoryError&) {
    throw memory_exhausted(impl_->device);
}

} // namespace ponderscope
