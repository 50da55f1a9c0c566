// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/policy/matched.h"
#include "core/policy/replay.h"
#include "core/policy/thresholds.h"
#include "core/stats/bootstrap.h"
#include "views/figure/chart.h"
#include "views/policy/front_look.h"

#include <limits>
#include <stop_token>
#include <string>
#include <vector>

namespace ponderscope {

/// What one threshold of a policy gives, by replay.
struct PolicyPoint {
    std::string spec; ///< "entropy:theta=1.37"; empty: no policy says it
    double steps = 0; ///< mean over tokens with a target
    double nll = 0;   ///< nats
    double flops = 0; ///< mean of a token; NaN where the trace does not say what steps cost
    /// NLL minus that of full; NaN bounds before add_bands.
    Estimate difference{0, std::numeric_limits<double>::quiet_NaN(),
                        std::numeric_limits<double>::quiet_NaN()};
    /// Lower NLL than the best blind rule at the same FLOPs (steps where they are not known), with the whole
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

/// The best blind rule first. Then replays every kind that the run has signals for (those named in \p only,
/// when it is not empty) at \p thresholds values each; the oracle for steps and for FLOPs. Cancelled by
/// \p stop; seconds for millions of tokens.
std::vector<PolicyFront> policy_fronts(const ReplayTable& table, const std::vector<std::string>& only,
                                       int thresholds, const std::stop_token& stop);

/// Longer runs get no bands: the length of blocks costs n √n for each of hundreds of points.
inline constexpr std::size_t most_banded = 200'000;
/// The differences of all points to full, paired over the same tokens, and which are better than the best
/// blind rule. Nothing beyond most_banded tokens.
void add_bands(std::vector<PolicyFront>& fronts, const ReplayTable& table, const BootstrapOptions& options);

/// A run as it was recorded: a point that is no replay.
struct RunPoint {
    QString name;
    int ink = figure::Chart::a;
    double steps = 0;
    double nll = 0;
    double flops = 0;
    double seconds = std::numeric_limits<double>::quiet_NaN(); ///< of a token, as the recording took
    std::string policy;  ///< that it is the rerun of; empty: a run like any other
    bool strong = false; ///< chosen
};

/// Perplexity against what it costs. \p current: a point of
/// its own, as of a slider; null for none. The last series is the current point where there is one, before
/// it come the runs.
figure::Chart front_chart(const std::vector<PolicyFront>& fronts, const std::vector<RunPoint>& runs,
                          const PolicyPoint* current, const FrontLook& look = {});
/// The policy of a mark of that chart; empty: it is of none.
std::string policy_at_mark(const std::vector<PolicyFront>& fronts, const std::vector<RunPoint>& runs,
                           const figure::Chart& chart, int series, int index);

/// Tokens with a target that stopped at each step.
figure::Chart steps_chart(const std::vector<std::int64_t>& histogram, const QString& name);

} // namespace ponderscope
