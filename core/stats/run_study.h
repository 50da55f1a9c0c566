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

/// Throws the errors of read_scored. \p options.bootstrap: options of all intervals.
RunStudy study_run(const TraceReader& trace, const RunInfo& run, const GroupingOptions& options = {});

} // namespace ponderscope
