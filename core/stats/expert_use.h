// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/reader.h"

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace ponderscope {

/// The choices of one layer's router over a run.
struct LayerExperts {
    std::string layer;              ///< the layer's number in the model
    std::vector<std::int64_t> load; ///< [E] how often each expert was chosen, over tokens and steps
    std::int64_t choices = 0;       ///< pairs (token, step) that ran; the sum of `load` is k times this
    std::int64_t pairs = 0;         ///< choices whose step also ran for the preceding token
    std::int64_t repeats = 0;       ///< pairs in which both tokens chose the same set of experts

    [[nodiscard]] double share(std::size_t expert) const; ///< choices of this expert / choices; NaN: none
    [[nodiscard]] double repeat_share() const;            ///< repeats / pairs; NaN without pairs
};
struct ExpertUse {
    std::int64_t experts = 0; ///< E
    std::int64_t chosen = 0;  ///< k
    std::vector<LayerExperts> layers;
};
/// No value: the run lacks the signal router_experts. Throws Cancelled.
std::optional<ExpertUse> expert_use(const TraceReader& reader, const RunInfo& run,
                                    const std::stop_token& stop = {});

/// How far two runs over the same tokens choose the same experts in a layer.
struct ExpertAgreement {
    std::string layer;
    std::int64_t tokens = 0; ///< pairs (token, step) that ran in both runs
    double common = 0;       ///< mean share of the chosen experts that both runs chose
    double same = 0;         ///< share of `tokens` with the same set of experts in both runs
};
/// InputError: no router_experts, or different tokens, layers or experts. Throws Cancelled.
std::vector<ExpertAgreement> expert_agreement(const TraceReader& a, const RunInfo& run_a,
                                              const TraceReader& b, const RunInfo& run_b,
                                              const std::stop_token& stop = {});

/// router_experts of some tokens. A signal without the axis "step" counts as one step.
struct ExpertRows {
    std::int64_t tokens = 0, steps = 1, layers = 0, chosen = 0;
    std::vector<std::int64_t> ids; ///< [token, step, layer, choice]; did_not_run if the step did not run

    /// InputError: unexpected axes.
    static ExpertRows from(const SignalChunk& chunk, const SignalInfo& info);
    /// The chosen experts, ascending; empty: the step did not run.
    [[nodiscard]] std::vector<std::int64_t> set_at(std::int64_t token, std::int64_t step,
                                                   std::int64_t layer) const;
};
/// The signal router_experts among \p infos, and the number of experts according to its description.
std::optional<SignalInfo> experts_signal(const std::vector<SignalInfo>& infos);
std::int64_t number_of_experts(const SignalInfo& info);

} // namespace ponderscope
