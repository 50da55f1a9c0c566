// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/stats/run_comparison.h"
#include "core/stats/tasks.h"
#include "views/chart/chart.h"

#include <string>
#include <vector>

namespace ponderscope {

Chart winners_chart(const Winners& winners);

/// Mean NLL of every run with its 95 % interval; the note has the numbers. \p names: of the runs.
Chart mean_nll_chart(const RunComparison& comparison, const std::vector<QString>& names);

/// How many tokens have which NLL in the first two runs.
Chart token_density_chart(const RunComparison& comparison);

/// Token against token: NLL of the first two runs, of at most 30,000 evenly spaced tokens, with the line
/// if both are equal. The points are the last series and link to their tokens.
Chart token_pairs_chart(const RunComparison& comparison);

/// A run on a task, as a point of the chart.
struct TaskPoint {
    std::string run;
    std::string series; ///< runs of one model under one kind of policy; they are joined by a line
    TaskReport report;
};

/// Accuracy against mean steps, or FLOPs a document, with 95 % bands over documents. Over steps, the first
/// run's accuracy at each step is a dashed line.
Chart task_accuracy_chart(const std::vector<TaskPoint>& points, bool over_flops);

} // namespace ponderscope
