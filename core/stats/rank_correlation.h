// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/stats/bootstrap.h"
#include "core/stats/labels.h"
#include "core/trace/reader.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ponderscope {

/// Spearman's rho with its interval. The interval resamples the sample's ranks, which are not ranked again in
/// each replicate. NaN where one of the two does not vary. InputError: lengths that differ.
Estimate spearman_with_interval(std::span<const double> a, std::span<const double> b,
                                const TokenLayout& layout, const BootstrapOptions& options = {});

/// With what the number of steps goes together, over the tokens with a target.
struct StepsCorrelation {
    std::string with; ///< "NLL", "entropy", "NLL of RUN"
    std::int64_t tokens = 0;
    Estimate rho;
};

/// Steps of \p run against its own NLL and entropy.
std::vector<StepsCorrelation> correlate_steps(const TraceReader& trace, const RunInfo& run,
                                              const BootstrapOptions& options = {});
/// Steps of \p run against the NLL (the surprise) of another model on the tokens that both scored; where
/// their tokenizers differ, on the stretches of text at whose ends both have a boundary, of which \p run
/// spends a mean number of steps a token. InputError as pair_runs.
StepsCorrelation correlate_steps(const TraceReader& trace, const RunInfo& run, const TraceReader& other_trace,
                                 const RunInfo& other, const BootstrapOptions& options = {});
/// Steps of \p run against an annotation of numbers, over the scored tokens that have one.
StepsCorrelation correlate_steps(const TraceReader& trace, const RunInfo& run,
                                 const AnnotationReader& annotations, const AnnotationInfo& annotation,
                                 LabelPlace place, const BootstrapOptions& options = {});

} // namespace ponderscope
