// SPDX-License-Identifier: GPL-3.0-or-later
// The functions of Engine that read and replace states.
#include "core/base/error.h"
#include "core/model/device.h"
#include "core/ponder/engine/engine_impl.h"
#include "core/ponder/recording/recorded_signals.h"

#include <ATen/ATen.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

namespace ponderscope {

namespace {

/// Collects the states at chosen places during a run, on the run's device.
class StateCatcher final : public RunListener {
public:
    StateCatcher(std::span<const StatePlace> places, std::span<const Window> windows, at::Device device)
        : count_(places.size()) {
        std::map<Where, std::vector<std::int64_t>> tokens;
        for (std::size_t i = 0; i < places.size(); ++i) {
            std::int64_t first = 0;
            for (std::size_t w = 0; w < windows.size(); ++w) {
                const Window& window = windows[w];
                const std::int64_t t = places[i].token - window.first;
                if (places[i].sequence ==
                        (window.sequence >= 0 ? window.sequence : static_cast<std::int64_t>(w)) &&
                    t >= window.report_begin && t < window.report_end) {
                    const Where where{places[i].layer, places[i].step};
                    groups_[where].places.push_back(i);
                    tokens[where].push_back(first + t);
                }
                first += static_cast<std::int64_t>(window.ids.size());
            }
        }
        for (auto& [where, group] : groups_) {
            group.tokens = send(tokens.at(where), device);
        }
    }

    [[nodiscard]] bool wants(std::string_view name) const override { return name == "layer_output"; }
    [[nodiscard]] bool wants_layer(std::string_view name, std::int64_t layer) const override {
        const auto group = groups_.lower_bound({layer, 0});
        return wants(name) && group != groups_.end() && group->first.first == layer;
    }
    void step_begins(const Slots& slots) override { tokens_ = slots.tokens; }
    void on_tensor(std::string_view, std::int64_t step, std::int64_t layer,
                   const at::Tensor& tensor) override {
        take(step, layer, tensor);
    }
    void step_ran(const Slots& slots, const Decision&, const at::Tensor&) override {
        take(slots.step, StatePlace::end_of_step, slots.hidden);
    }

    /// The states, in the order of the places; empty: the token did not run the step.
    [[nodiscard]] std::vector<std::vector<float>> states() const {
        std::vector<std::vector<float>> all(count_);
        for (const auto& [where, group] : groups_) {
            if (!group.states.defined()) {
                continue;
            }
            const at::Tensor states = group.states.cpu();
            const at::Tensor ran = group.ran.cpu();
            for (std::size_t i = 0; i < group.places.size(); ++i) {
                if (ran.const_data_ptr<bool>()[i]) {
                    const float* const begin =
                        states.const_data_ptr<float>() + static_cast<std::int64_t>(i) * states.size(1);
                    all[group.places[i]].assign(begin, begin + states.size(1));
                }
            }
        }
        return all;
    }

private:
    using Where = std::pair<std::int64_t, std::int64_t>; ///< layer, step
    struct Group {
        std::vector<std::size_t> places;
        at::Tensor tokens;      ///< int64 [places], indices of the tokens in the run
        at::Tensor states, ran; ///< fp32 [places, d], bool [places]
    };

    void take(std::int64_t step, std::int64_t layer, const at::Tensor& states) {
        const auto found = groups_.find({layer, step});
        if (found == groups_.end() || states.size(0) == 0) {
            return;
        }
        Group& group = found->second;
        if (!group.states.defined()) {
            group.states =
                at::zeros({group.tokens.size(0), states.size(1)}, states.options().dtype(at::kFloat));
            group.ran = at::zeros({group.tokens.size(0)}, group.tokens.options().dtype(at::kBool));
        }
        at::Tensor rows = group.tokens;
        at::Tensor there = at::arange(rows.size(0), rows.options());
        if (tokens_.defined()) {
            rows = at::searchsorted(tokens_.contiguous(), rows).clamp_max(tokens_.size(0) - 1);
            there = at::nonzero(tokens_.index_select(0, rows).eq(group.tokens)).view(-1);
            rows = rows.index_select(0, there);
        }
        group.states.index_copy_(0, there, states.index_select(0, rows).to(at::kFloat));
        group.ran.index_fill_(0, there, true);
    }

    std::size_t count_;
    std::map<Where, Group> groups_;
    at::Tensor tokens_; ///< tokens of the current step; undefined: all
};

} // namespace

void refuse_patches_of_passes(const RunPlan& plan, const Method& method) {
    if (plan.refreshes && plan.iterates(method)) {
        throw InputError(ErrorId::usage_conflict,
                         "--patch needs exact scoring, because a fixed number of Jacobi refreshes does not "
                         "carry a patched state to every later slot. Add --jacobi exact.");
    }
}

std::int64_t Engine::token_room() const {
    const RunPlan& plan = impl_->plan;
    // The recorded values, and a copy on its way to the trace.
    std::int64_t bytes = 2 * token_bytes();
    if (impl_->method().visibility() == VisibilityRule::interleaved) {
        // A pass computes all slots together, so the states of all layers stay in memory until the last pass.
        const std::int64_t layers = plan.lens     ? config().layers
                                    : plan.states ? static_cast<std::int64_t>(plan.states->layers.size())
                                                  : 0;
        bytes += layers * (max_steps() + 1) * config().hidden_size * 4;
    }
    return bytes;
}

std::int64_t Engine::state_width(std::int64_t layer) const {
    return ponderscope::state_width(config(), impl_->method(), layer);
}

void Engine::check_place(const StatePlace& place, bool patched) const {
    const Method& method = impl_->method();
    if (patched) {
        refuse_patches_of_passes(impl_->plan, method);
    }
    const auto refuse = [&](const std::string& expected, const std::string& what) {
        throw InputError(ErrorId::patch_place,
                         "A state of " + to_string(place) + ": expected " + expected + "; " + what + ".");
    };
    if (place.step < 0 || place.step > method.max_steps()) {
        refuse("a step from 0 to " + std::to_string(method.max_steps()), "the model has no other steps");
    }
    if (place.layer == StatePlace::end_of_step) {
        if (patched && method.wants_stream() && place.step < method.max_steps()) {
            refuse("a layer", "name layer " + std::to_string(config().core_end() - 1) +
                                  ", whose output the next step of this model reads, not the normed end of "
                                  "the step");
        }
        return;
    }
    if (method.layers_are_steps()) {
        refuse("no layer", "the layers of this model are the steps of the run");
    }
    if (place.layer < config().core_begin() || place.layer >= config().core_end()) {
        refuse("a layer from " + std::to_string(config().core_begin()) + " to " +
                   std::to_string(config().core_end() - 1),
               "the steps of this model run no other layers");
    }
    require_single_stream(config(), "A state of " + to_string(place));
}

void Engine::use_patches(std::vector<StatePatch> patches) {
    for (const StatePatch& patch : patches) {
        check_place(patch.to, true);
        const std::int64_t width = state_width(patch.to.layer);
        if (static_cast<std::int64_t>(patch.state.size()) != width) {
            throw InputError(ErrorId::patch_place, "A state for " + to_string(patch.to) + ": expected " +
                                                       std::to_string(width) +
                                                       " numbers, the width of the state, found " +
                                                       std::to_string(patch.state.size()) +
                                                       "; take the state from a model of the same width.");
        }
        if (!std::all_of(patch.state.begin(), patch.state.end(), [](float x) { return std::isfinite(x); })) {
            throw InputError(ErrorId::patch_place,
                             "A state for " + to_string(patch.to) +
                                 ": expected finite numbers, found NaN or infinity, because the step did not "
                                 "run or the state was too large for fp16; take another state.");
        }
    }
    impl_->patches = std::move(patches);
}

std::vector<std::vector<float>> Engine::states_at(std::span<const Window> windows,
                                                  std::span<const StatePlace> places) const try {
    for (const StatePlace& place : places) {
        check_place(place, false);
    }
    StateCatcher catcher(places, windows, impl_->device);
    std::vector<Window> silent(windows.begin(), windows.end());
    for (Window& window : silent) {
        window.report_begin = window.report_end = 0;
    }
    (void)impl_->submit(silent, RecordLevel::nll, [&](StepsOptions& options) {
        options.listener = &catcher;
        options.plan.attention = {};
        options.patches = nullptr;
    });
    return catcher.states();
} catch (const c10::OutOfMemoryError&) {
    throw memory_exhausted(impl_->device);
}

} // namespace ponderscope
