// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/progress.h"
#include "core/trace/reader.h"

#include <cstdint>
#include <stop_token>
#include <utility>
#include <vector>

namespace ponderscope {

/// Tokens whose last step was `steps`. Means are NaN where nothing counts.
struct HaltStepRow {
    std::int64_t steps = 0;
    std::int64_t tokens = 0;
    std::int64_t scored_tokens = 0;
    double mean_nll = 0;     ///< nats, over the scored tokens
    double mean_entropy = 0; ///< nats, over the tokens with a read-out
};

/// What one run gave, from its tokens (RunInfo's totals say less, and come from the file's own account).
struct RunStatistics {
    std::int64_t tokens = 0;
    std::int64_t scored_tokens = 0;
    double mean_nll = 0; ///< nats; NaN when nothing was scored, as the next ones
    double perplexity = 0;
    double bits_per_byte = 0;          ///< NaN without a text
    double mean_steps = 0;             ///< over the scored tokens
    double mean_entropy = 0;           ///< nats, over the tokens with a read-out
    double flops_per_token = 0;        ///< over all tokens
    std::vector<HaltStepRow> by_steps; ///< ascending; steps that no token halted at are left out
    std::vector<std::pair<double, double>>
        nll_quantiles; ///< (q, nats) for q = 0, 0.05, 0.25, 0.5, 0.75, 0.95, 1
};

/// One pass over the run's tokens. Cancelled by \p stop; InputError for a damaged trace.
RunStatistics run_statistics(const TraceReader& trace, const RunInfo& run, const ProgressSink& progress = {},
                             const std::stop_token& stop = {});

} // namespace ponderscope
