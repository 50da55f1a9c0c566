// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/stats/bootstrap.h"
#include "core/stats/labels.h"
#include "core/stats/scan.h"
#include "core/trace/reader.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ponderscope {

/// Ranks from 1, equal values sharing the mean of theirs, less the mean rank, divided by the number of
/// values. No value is NaN.
std::vector<double> centred_ranks(std::span<const double> values);

/// Spearman's rho with its interval. The interval resamples the sample's ranks, which are not ranked again in
/// each replicate. NaN if one of the two does not vary. InputError: lengths that differ.
Estimate spearman_with_interval(std::span<const double> a, std::span<const double> b,
                                const TokenLayout& layout, const BootstrapOptions& options = {});

/// Pearson's r from sums of x, y, xx, yy, xy from \p first on. NaN if one does not vary. The values were
/// centred before, so little cancels.
Statistic correlation(std::size_t first);

/// What the number of steps correlates with, over the scored tokens.
struct StepsCorrelation {
    std::string with; ///< "NLL", "entropy", "NLL of RUN"
    std::int64_t tokens = 0;
    Estimate rho;
};

/// Steps against NLL, and against entropy if every token has one.
std::vector<StepsCorrelation> correlate_steps(const ScoredTokens& tokens,
                                              const BootstrapOptions& options = {});
/// Steps of \p run against the NLL (the surprise) of another model on the tokens that both scored; if the
/// tokenizers differ, over stretches of text at whose ends both have a boundary; the steps are then means
/// over a stretch. InputError as pair_runs.
StepsCorrelation correlate_steps(const TraceReader& trace, const RunInfo& run, const TraceReader& other_trace,
                                 const RunInfo& other, const BootstrapOptions& options = {});
/// Steps of \p run against the gain of the steps in \p full, a run of every step over the same tokens: NLL at
/// step 0 minus NLL at the last step. No value if \p full has other tokens, one step a token, or no NLL by
/// step.
std::optional<StepsCorrelation> correlate_gain(const TraceReader& trace, const RunInfo& run,
                                               const TraceReader& full_trace, const RunInfo& full,
                                               const BootstrapOptions& options = {});
/// Steps of \p run against a numeric annotation, over the scored tokens with a value.
StepsCorrelation correlate_steps(const TraceReader& trace, const RunInfo& run,
                                 const AnnotationReader& annotations, const AnnotationInfo& annotation,
                                 LabelPlace place, const BootstrapOptions& options = {});

} // namespace ponderscope
