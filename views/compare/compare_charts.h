// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/stats/run_comparison.h"
#include "core/stats/tasks.h"
#include "views/chart/chart.h"

#include <string>
#include <vector>

namespace ponderscope {

Chart winners_chart(const Winners& winners);

/// How many tokens have which NLL in the first run and in \p second.
Chart token_density_chart(const RunComparison& comparison, std::size_t second = 1);

/// Token against token: NLL of the first two runs, every \p stride-th token, with the line where both are
/// equal. The points are the last series.
Chart token_pairs_chart(const RunComparison& comparison, std::size_t stride = 1);

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
