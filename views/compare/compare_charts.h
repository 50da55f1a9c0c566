// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/stats/run_comparison.h"
#include "core/stats/tasks.h"
#include "views/chart/chart.h"

#include <string>
#include <vector>

namespace ponderscope {

Chart winners_chart(const Winners& winners);

/// Mean NLL of every run with its 95 % interval; the note has the numbers. \p names: names of the runs.
Chart mean_nll_chart(const RunComparison& comparison, const std::vector<QString>& names);

/// The distribution of the tokens' NLL in the first two runs.
Chart token_density_chart(const RunComparison& comparison);

/// The NLL of at most 30,000 evenly spaced tokens, first run against second run, with the line of equality.
/// The points are the last series and link to their tokens.
Chart token_pairs_chart(const RunComparison& comparison);

/// The result of a run on a task, as a point of the chart.
struct TaskPoint {
    std::string run;
    std::string series; ///< runs with the same model and policy kind form a series, joined by a line
    TaskReport report;
};

/// Accuracy against mean steps, or against FLOPs per document, with 95 % bands over documents. A dashed line
/// in the chart of steps shows the first run's accuracy at each step.
Chart task_accuracy_chart(const std::vector<TaskPoint>& points, bool over_flops);

} // namespace ponderscope
