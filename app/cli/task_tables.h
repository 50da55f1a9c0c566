// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/stats/paired.h"
#include "core/stats/tasks.h"

#include <optional>
#include <string>
#include <vector>

namespace ponderscope::cli {

/// A run with its tasks, or with the estimates of its text where it has none.
struct TaskedRun {
    std::string reference; ///< TRACE#RUN
    RunInfo run;
    std::vector<TaskSample> samples;
    std::vector<TaskReport> reports;
    std::optional<RunEstimate> text;
    [[nodiscard]] const TaskSample* find(const std::string& task) const; ///< nullptr: it has no such task
};

/// Runs as they are named: TRACE#RUN, or TRACE for all of its runs. InputError.
std::vector<TaskedRun> read_tasked_runs(const std::vector<std::string>& references,
                                        const BootstrapOptions& options);

/// Two tables with booktabs: perplexity, steps and FLOPs of runs over texts; accuracy by task, steps and
/// FLOPs of runs over tasks. A table without rows is left out.
std::string latex_tables(const std::vector<TaskedRun>& runs);

} // namespace ponderscope::cli
