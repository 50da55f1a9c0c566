// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/policy/replay.h"
#include "core/policy/thresholds.h"
#include "views/figure/chart.h"

#include <limits>
#include <stop_token>
#include <string>
#include <vector>

namespace ponderscope {

/// What one threshold of a policy gives, by replay.
struct PolicyPoint {
    std::string spec; ///< "entropy:theta=1.37"
    double steps = 0; ///< mean over tokens with a target
    double nll = 0;   ///< nats
    double flops = 0; ///< mean of a token; NaN where the trace does not say what steps cost
};
struct PolicyFront {
    std::string policy;     ///< name of the kind
    std::size_t number = 0; ///< of the kind in the list of all: its colour
    bool causal = true;
    std::vector<PolicyPoint> points; ///< by mean steps
};

/// Replays every kind that the run has signals for (those named in \p only, when it is not empty) at
/// \p thresholds values each. Cancelled by \p stop; seconds for millions of tokens.
std::vector<PolicyFront> policy_fronts(const ReplayTable& table, const std::vector<std::string>& only,
                                       int thresholds, const std::stop_token& stop);

/// A run as it was recorded: a point that is no replay.
struct RunPoint {
    QString name;
    int ink = figure::Chart::a;
    double steps = 0;
    double nll = 0;
    double flops = 0;
    double seconds = std::numeric_limits<double>::quiet_NaN(); ///< of a token, as the recording took
};

enum class FrontCost {
    compute, ///< FLOPs a token; mean steps where some are not known
    steps,
    time, ///< measured: of runs, a replay takes none
};

/// Perplexity against what it costs. \p current: a point of
/// its own, as of a slider; null for none. The last series is the current point where there is one, before
/// it come the runs.
figure::Chart front_chart(const std::vector<PolicyFront>& fronts, const std::vector<RunPoint>& runs,
                          const PolicyPoint* current, FrontCost cost = FrontCost::compute);

/// Tokens with a target that stopped at each step.
figure::Chart steps_chart(const std::vector<std::int64_t>& histogram, const QString& name);

} // namespace ponderscope
