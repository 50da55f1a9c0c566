// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/policy/policy_fronts.h"
#include "views/chart/chart.h"

#include <limits>
#include <string>
#include <vector>

namespace ponderscope {

/// A recorded run as a point of the chart.
struct RunPoint {
    QString name;
    int ink = Chart::a;
    double steps = 0;
    double nll = 0;
    double flops = 0;
    double seconds = std::numeric_limits<double>::quiet_NaN(); ///< recording time per token
    std::string policy;                                        ///< policy of a rerun; empty: not a rerun
};

struct FrontLook {
    std::string cost = "compute"; ///< "compute" (mean steps if FLOPs are unknown), "steps" or "time"
    bool bands = false;       ///< 95 % bands of the loss minus the loss of `full`, if the points have bands
    std::string log = "none"; ///< logarithmic axes: "none", "x", "y" or "both"
};

/// Perplexity against cost. The chart's series are the fronts, then the runs.
Chart front_chart(const std::vector<PolicyFront>& fronts, const std::vector<RunPoint>& runs,
                  const FrontLook& look = {});
void add_run(Chart& fronts, const RunPoint& run);
/// Adds a replay, for example at a slider's position, to a chart of fronts.
void add_replay(Chart& fronts, const PolicyPoint& point);

} // namespace ponderscope
