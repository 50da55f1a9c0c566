// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/progress.h"
#include "core/stats/bootstrap.h"
#include "core/stats/scan.h"
#include "core/stats/significance.h"
#include "core/trace/reader.h"

#include <cstdint>
#include <optional>
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
    /// 1 if the most likely token is right (rank 1), else 0; empty if it is not known.
    std::vector<std::uint8_t> right_a, right_b;
    std::vector<double> steps_a; ///< only of samples read from traces
    TokenLayout layout;          ///< runs of consecutive positions, in clusters
    std::int64_t last = -2;      ///< position of the last token
    std::int64_t only_a = 0;     ///< tokens that A scored and B did not
    std::int64_t only_b = 0;
    std::vector<std::string> notices; ///< sentences for the user: partial runs, few blocks

    /// The tokens of the next sequence.
    void append(const PairedSample& more);
};

/// Bytes under the target of each token: the span of the next one.
inline double target_bytes(const TokenColumns& tokens, std::size_t i) {
    return i + 1 < tokens.size() ? static_cast<double>(tokens.end[i + 1] - tokens.begin[i + 1]) : 0;
}

/// Reads both runs by several threads. They must have one text and the same tokens: InputError names the
/// difference. Both readers may be the same object.
PairedSample pair_runs(const TraceReader& trace_a, const RunInfo& run_a, const TraceReader& trace_b,
                       const RunInfo& run_b, const ReadOptions& options = {});

/// Means in which every document (cluster) weighs the same. All other means weigh every token the same.
struct DocumentMeans {
    Estimate a, b, difference; ///< mean over documents of their mean NLL, nats a token
    /// Mean over documents of their bits per byte; NaN if one has no text.
    Estimate bits_per_byte_a, bits_per_byte_b, bits_per_byte_difference;
};

/// exp is monotone, so quantiles of the mean become quantiles of the perplexity.
Estimate exponential(const Estimate& mean);

/// The comparison of two runs by `ponderscope compare` and the Compare panel. Differences are A - B: negative
/// means that A is better. methods.md 11: losses in nats, perplexity = exp(mean NLL), paired bootstrap.
struct PairedComparison {
    std::int64_t tokens = 0;
    Estimate mean_a; ///< nats a token
    Estimate mean_b;
    Estimate difference; ///< mean of a - b, nats a token
    double p = 0;        ///< two-sided p of "no difference": sign flips of units' sums (significance.h)
    std::optional<Equivalence> equivalence; ///< with a margin
    Estimate perplexity_a;
    Estimate perplexity_b;
    Estimate perplexity_ratio; ///< A / B
    Estimate bits_per_byte_a;  ///< NaN without a text
    Estimate bits_per_byte_b;
    Estimate bits_per_byte_difference;
    DocumentMeans documents; ///< with only one document, equal to the means over tokens
    std::optional<Flips> flips;
    Estimate pearson; ///< of the tokens' NLL
    /// Of the tokens' NLL. Ranks are computed once, in the whole sample; bootstrap replicates reuse them.
    Estimate spearman;
    double share_b_better = 0; ///< of the tokens
    Resampling resampling;
    std::vector<std::string> notices;
};

/// \p margin: of the test of equivalence, nats a token. InputError for an empty sample, a margin that is not
/// above zero.
PairedComparison compare_paired(const PairedSample& sample, const BootstrapOptions& options = {},
                                std::optional<double> margin = {});

/// The same interval for one run alone.
struct RunEstimate {
    std::int64_t scored_tokens = 0;
    Estimate mean_nll; ///< nats a token
    Estimate perplexity;
    Estimate bits_per_byte;     ///< NaN without a text
    Estimate mean_steps;        ///< over the scored tokens
    Estimate document_mean_nll; ///< mean over documents (clusters) of their mean NLL
    Resampling resampling;
    std::vector<std::string> notices;
};
RunEstimate estimate_run(const TraceReader& trace, const RunInfo& run, const BootstrapOptions& options = {});

/// Whether two runs of one text have the same tokens, so that they can be compared token by token. True if
/// the digests of their tokenizers are equal, or else if ids and spans are equal as far as both runs go.
/// Older traces store a digest of the tokenizer's file, which may differ between files of one tokenizer.
bool have_same_tokens(const TraceReader& trace_a, const RunInfo& run_a, const TraceReader& trace_b,
                      const RunInfo& run_b);

} // namespace ponderscope
