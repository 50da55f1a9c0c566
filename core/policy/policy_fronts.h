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

/// The result of one threshold of a policy, by replay.
struct PolicyPoint {
    std::string spec; ///< "entropy:theta=1.37"; empty: no policy
    double steps = 0; ///< mean over tokens with a target
    double nll = 0;   ///< nats
    double flops = 0; ///< mean of a token; NaN if the trace does not say what steps cost
    /// NLL minus the NLL of full; NaN bounds before add_bands.
    Estimate difference{0, not_a_number, not_a_number};
    /// Lower NLL than the best blind rule at the same FLOPs (steps if they are not known), with the whole
    /// interval; false before add_bands.
    bool better = false;
};
struct PolicyFront {
    std::string policy;     ///< name of the kind, or blind_rule
    std::size_t number = 0; ///< of the kind in the list of all: its colour
    bool causal = true;
    std::vector<PolicyPoint> points;   ///< by mean steps; of the best blind rule the fixed depths
    std::optional<CostAxis> axis = {}; ///< the only one that it is drawn on: a bound holds for one
};

/// The best blind rule first. Then replays, at \p thresholds values each, every kind whose signals the run
/// has (or those of \p only, if it is not empty); the oracle for steps and for FLOPs. Cancelled by \p stop;
/// seconds for millions of tokens.
std::vector<PolicyFront> policy_fronts(const ReplayTable& table, const std::vector<std::string>& only,
                                       int thresholds, const std::stop_token& stop);

/// Longer runs get no bands: the length of blocks costs n √n for each of hundreds of points.
inline constexpr std::size_t most_banded = 200'000;
/// The differences of all points to full, paired over the same tokens, and which are better than the best
/// blind rule. Nothing beyond most_banded tokens.
void add_bands(std::vector<PolicyFront>& fronts, const ReplayTable& table, const BootstrapOptions& options);

} // namespace ponderscope
