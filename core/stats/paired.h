// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/notice.h"
#include "core/base/progress.h"
#include "core/stats/bootstrap.h"
#include "core/stats/scan.h"
#include "core/stats/significance.h"
#include "core/trace/reader.h"

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ponderscope {

/// NLL of the tokens that both runs of a pair scored, in the order of sequences and positions. All vectors
/// have the same length.
struct PairedSample {
    /// The position of a prediction: row \c row of a sequence predicts token row + 1.
    struct Place {
        std::int32_t sequence = 0;
        std::int32_t row = 0;
        friend auto operator<=>(const Place&,
                                const Place&) = default; // NOLINT(modernize-use-nullptr): none is meant
    };
    std::vector<double> a;     ///< nats
    std::vector<double> b;     ///< nats
    std::vector<double> bytes; ///< bytes of text under each target; 0 without a text
    /// 1 if the target is the most likely token (rank 1), else 0; empty if unknown.
    std::vector<std::uint8_t> right_a, right_b;
    std::vector<double> steps_a, steps_b, flops_b; ///< filled in by pair_runs
    std::vector<Place> places;                     ///< filled in by pair_runs; ascending
    TokenLayout layout;                            ///< stretches of consecutive positions, in clusters
    std::int64_t last = -2;                        ///< position of the last token
    std::int64_t only_a = 0;                       ///< tokens that A scored but B did not
    std::int64_t only_b = 0;
    Notices notices; ///< notices for the user: partial runs, few blocks

    /// Appends the tokens of the next sequence.
    void append(const PairedSample& more);
};

/// Bytes of the target of token \p i: the span of the next token.
inline double target_bytes(const TokenColumns& tokens, std::size_t i) {
    return i + 1 < tokens.size() ? static_cast<double>(tokens.end[i + 1] - tokens.begin[i + 1]) : 0;
}

/// Reads both runs with several threads. InputError: the runs have different texts or tokens; the message
/// names the difference. Both readers may be the same object.
PairedSample pair_runs(const TraceReader& trace_a, const RunInfo& run_a, const TraceReader& trace_b,
                       const RunInfo& run_b, const ReadOptions& options = {});

/// NaN without values.
double mean_of_values(const std::vector<double>& values);

/// Bits per byte from the sums of two quantities: \p nll, a token's NLL minus \p centre, and \p bytes. NaN
/// without bytes.
Statistic bits_per_byte(std::size_t nll, std::size_t bytes, double centre = 0);

/// exp of an estimate with its bounds. exp is monotone, so quantiles of the mean become quantiles of the
/// perplexity.
Estimate exponential(const Estimate& mean);

/// The comparison of two runs in `ponderscope compare` and the Compare panel. Differences are A - B. A
/// negative difference means that A is better. Losses are in nats, and perplexity is exp(mean NLL). The
/// bootstrap is paired (methods.md section 11).
struct PairedComparison {
    std::int64_t tokens = 0;
    Estimate mean_a; ///< nats a token
    Estimate mean_b;
    Estimate difference; ///< mean of a - b, nats a token
    double p = 0;        ///< two-sided p of "no difference": sign flips of the units' sums (significance.h)
    Estimate perplexity_a;
    Estimate perplexity_b;
    Estimate perplexity_ratio; ///< A / B
    Estimate bits_per_byte_a;  ///< NaN without a text
    Estimate bits_per_byte_b;
    Estimate bits_per_byte_difference;
    std::optional<Flips> flips;
    Estimate pearson;          ///< Pearson's r of the tokens' NLL in A and B
    double share_b_better = 0; ///< share of the tokens with a lower NLL in B
    Resampling resampling;
    Notices notices;
};

/// InputError for an empty sample.
PairedComparison compare_paired(const PairedSample& sample, const BootstrapOptions& options = {});

/// The statistics of a single run.
struct RunEstimate {
    std::int64_t scored_tokens = 0;
    Estimate mean_nll; ///< nats a token
    Estimate perplexity;
    Estimate bits_per_byte; ///< NaN without a text
    Estimate mean_steps;    ///< over the scored tokens
    Resampling resampling;
    Notices notices;
};
RunEstimate estimate_run(const TraceReader& trace, const RunInfo& run, const BootstrapOptions& options = {});

/// Whether two runs of one text have the same tokens, so that a comparison by token is possible. True if the
/// digests of their tokenizers are equal, or if ids and spans agree up to the end of the shorter run. Older
/// traces store a digest of the tokenizer's file, which may differ between files of the same tokenizer.
bool have_same_tokens(const TraceReader& trace_a, const RunInfo& run_a, const TraceReader& trace_b,
                      const RunInfo& run_b);

} // namespace ponderscope
