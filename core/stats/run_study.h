// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/stats/paired.h"
#include "core/stats/rank_correlation.h"
#include "core/stats/token_groups.h"

#include <vector>

namespace ponderscope {

/// The statistics of one run for `ponderscope stats`.
struct RunStudy {
    RunEstimate estimate;
    TokenGroups groups;
    std::vector<StepsCorrelation> correlations;
};

/// Reads the run twice; errors as ScoredRun. \p options.bootstrap: of all intervals. \p sensitivity: fills
/// `by_block`, and holds all tokens in memory for it.
RunStudy study_run(const TraceReader& trace, const RunInfo& run, const GroupingOptions& options = {},
                   bool sensitivity = false);

} // namespace ponderscope
