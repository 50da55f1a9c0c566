// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/progress.h"
#include "core/stats/bootstrap.h"
#include "core/trace/reader.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ponderscope {

/// NLL of the tokens that both of two runs scored, in the order of sequences and positions. All vectors have
/// one length.
struct PairedSample {
    std::vector<double> a;     ///< nats
    std::vector<double> b;     ///< nats
    std::vector<double> bytes; ///< of text under each target; 0 without a text
    std::vector<std::int64_t>
        stretches; ///< lengths of the runs of consecutive positions inside sequences; they add up
    std::int64_t sequences = 0; ///< with at least one common token
    std::int64_t only_a = 0;    ///< tokens that A scored and B did not
    std::int64_t only_b = 0;
    std::vector<std::string> notices; ///< sentences for the user: partial runs, few blocks
};

/// Reads both runs. They must be of one text, cut into the same tokens: InputError says what differs. The
/// readers may be one. Cancelled by \p stop.
PairedSample pair_runs(const TraceReader& trace_a, const RunInfo& run_a, const TraceReader& trace_b,
                       const RunInfo& run_b, const ProgressSink& progress = {},
                       const std::stop_token& stop = {});

/// What `ponderscope compare` and the compare tab say of two runs. Differences are B - A: negative means that
/// B is better. methods.md 11: losses in nats, perplexity = exp(mean NLL), paired moving-block bootstrap.
struct PairedComparison {
    std::int64_t tokens = 0;
    Estimate mean_a; ///< nats a token
    Estimate mean_b;
    Estimate difference; ///< mean of b - a, nats a token
    Estimate perplexity_a;
    Estimate perplexity_b;
    Estimate perplexity_ratio; ///< B / A
    Estimate bits_per_byte_a;  ///< NaN without a text
    Estimate bits_per_byte_b;
    Estimate pearson; ///< of the tokens' NLL
    Estimate
        spearman; ///< the interval resamples the sample's ranks, which are not ranked again in each replicate
    double share_b_better = 0; ///< of the tokens
    double share_equal = 0;
    std::vector<std::string> notices;
};

/// InputError for an empty sample.
PairedComparison compare_paired(const PairedSample& sample, const BootstrapOptions& options = {});

/// The same interval for one run alone.
struct RunEstimate {
    std::int64_t scored_tokens = 0;
    Estimate mean_nll; ///< nats a token
    Estimate perplexity;
    Estimate bits_per_byte; ///< NaN without a text
    Estimate mean_steps;    ///< over the scored tokens
    std::vector<std::string> notices;
};
RunEstimate estimate_run(const TraceReader& trace, const RunInfo& run, const BootstrapOptions& options = {});

} // namespace ponderscope
