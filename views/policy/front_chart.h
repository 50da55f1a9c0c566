// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/policy/policy_fronts.h"
#include "views/chart/chart.h"
#include "views/policy/front_look.h"

#include <limits>
#include <string>
#include <vector>

namespace ponderscope {

/// A run as it was recorded: a point that is no replay.
struct RunPoint {
    QString name;
    int ink = Chart::a;
    double steps = 0;
    double nll = 0;
    double flops = 0;
    double seconds = std::numeric_limits<double>::quiet_NaN(); ///< of a token, as the recording took
    std::string policy;  ///< policy of the rerun; empty: an ordinary run
    bool strong = false; ///< chosen
};

/// Perplexity against what it costs. \p current: a point of its own, as of a slider; null for none. The last
/// series is the current point, if there is one; the runs are before it.
Chart front_chart(const std::vector<PolicyFront>& fronts, const std::vector<RunPoint>& runs,
                          const PolicyPoint* current, const FrontLook& look = {});
/// Tokens with a target that stopped at each step.
Chart steps_chart(const std::vector<std::int64_t>& histogram, const QString& name);

} // namespace ponderscope
