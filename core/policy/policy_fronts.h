// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/policy/matched.h"
#include "core/policy/replay.h"
#include "core/stats/bootstrap.h"

#include <cstddef>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace ponderscope {

/// The replay of a policy at one threshold.
struct PolicyPoint {
    std::string spec; ///< "entropy:theta=1.37"; empty: no policy
    double steps = 0; ///< mean over tokens with a target
    double nll = 0;   ///< nats
    double flops = 0; ///< mean per token; NaN if the trace has no FLOPs model
    /// NLL minus the NLL of `full`; NaN bounds before add_bands.
    Estimate difference{0, not_a_number, not_a_number};
    /// Lower NLL than the best blind rule at equal FLOPs (or equal steps, if FLOPs are unknown): the interval
    /// of its NLL minus the NLL of that rule is below 0. False before add_bands.
    bool better = false;
};
struct PolicyFront {
    std::string policy;     ///< name of the kind, or blind_rule
    std::size_t number = 0; ///< index of the kind in the list of all kinds; selects the colour
    bool causal = true;
    std::vector<PolicyPoint> points;   ///< sorted by mean steps; for the best blind rule, the fixed depths
    std::optional<CostAxis> axis = {}; ///< for a bound: the only axis on which the bound holds
};

/// Returns fronts: of the best blind rule, then, as in policy_kinds(), of every kind except `full` whose
/// signals the run has, at \p thresholds values of its threshold (oracle: for steps and for FLOPs). \p only
/// restricts the kinds; empty: all. Takes seconds for millions of tokens. \p stop throws Cancelled.
std::vector<PolicyFront> policy_fronts(const ReplayTable& table, const std::vector<std::string>& only,
                                       int thresholds, const std::stop_token& stop);

/// Longer runs get no bands: for n tokens, the block length takes n √n time, and each point n.
inline constexpr std::size_t most_banded = 200'000;
/// Fills in the difference of each point to `full`, paired over the same tokens. Marks the points that are
/// better than the best blind rule. Does nothing for more than most_banded tokens.
void add_bands(std::vector<PolicyFront>& fronts, const ReplayTable& table, const BootstrapOptions& options);

} // namespace ponderscope
