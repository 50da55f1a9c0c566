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

/// Spearman's rho with its interval. The bootstrap reuses the sample's ranks in each replicate. NaN if one of
/// the variables is constant. InputError: different lengths.
Estimate spearman_with_interval(std::span<const double> a, std::span<const double> b,
                                const TokenLayout& layout, const BootstrapOptions& options = {});

/// Pearson's r from the sums of x, y, xx, yy, xy from index \p first on. NaN if one variable is constant. The
/// caller centres the values, to limit cancellation.
Statistic correlation(std::size_t first);

/// A correlation of the number of steps with another quantity, over the scored tokens.
struct StepsCorrelation {
    std::string with; ///< "NLL", "entropy", "NLL of RUN"
    std::int64_t tokens = 0;
    Estimate rho;
};

/// Correlates steps with NLL, and with entropy if every token has one.
std::vector<StepsCorrelation> correlate_steps(const ScoredTokens& tokens,
                                              const BootstrapOptions& options = {});
/// Correlates the steps of \p run with the NLL (the surprise) of another model, on the tokens that both
/// scored. Throws the InputErrors of pair_runs.
StepsCorrelation correlate_steps(const TraceReader& trace, const RunInfo& run, const TraceReader& other_trace,
                                 const RunInfo& other, const BootstrapOptions& options = {});
/// Correlates the steps of \p run with the gain in \p full, a run that ran every step on the same tokens. The
/// gain is NLL at step 0 minus NLL at the last step. No value if \p full has other tokens, one step per
/// token, or no per-step NLL.
std::optional<StepsCorrelation> correlate_gain(const TraceReader& trace, const RunInfo& run,
                                               const TraceReader& full_trace, const RunInfo& full,
                                               const BootstrapOptions& options = {});
/// Correlates the steps of \p run with a numeric annotation, over the scored tokens with a value.
StepsCorrelation correlate_steps(const TraceReader& trace, const RunInfo& run,
                                 const AnnotationReader& annotations, const AnnotationInfo& annotation,
                                 LabelPlace place, const BootstrapOptions& options = {});

} // namespace ponderscope
