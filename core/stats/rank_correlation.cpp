// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/rank_correlation.h"

#include "core/base/error.h"
#include "core/stats/paired.h"
#include "core/stats/scan.h"
#include "core/trace/tools/step_columns.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>

namespace ponderscope {

namespace {

/// Ranks from 1, minus the mean rank, divided by the number of values. Equal values share their mean rank. No
/// value may be NaN.
std::vector<double> centred_ranks(std::span<const double> values) {
    std::vector<std::size_t> order(values.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
    const auto n = static_cast<double>(values.size());
    std::vector<double> ranks(values.size());
    for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
        while (end < order.size() && values[order[end]] == values[order[begin]]) {
            ++end;
        }
        const double rank = (static_cast<double>(begin + 1) + static_cast<double>(end)) / 2;
        for (std::size_t i = begin; i < end; ++i) {
            ranks[order[i]] = (rank - (n + 1) / 2) / n; // centred, to limit cancellation in sums
        }
    }
    return ranks;
}

/// Correlates steps with a value of each token, over the scored tokens with a value. \p values_of(sequence):
/// the values of its tokens.
StepsCorrelation correlate_values(const TraceReader& trace, const RunInfo& run, const std::string& with,
                                  const std::function<std::vector<double>(const SequenceInfo&)>& values_of,
                                  LabelPlace place, const BootstrapOptions& options) {
    std::vector<double> steps, theirs, values;
    std::int64_t of = -1; // the sequence of `values`
    LayoutBuilder lying;
    for_each_scored(
        trace, run, options.stop,
        [&](const SequenceInfo& sequence, const TokenColumns& tokens, std::size_t i, std::int64_t position) {
            if (of != sequence.number) {
                of = sequence.number;
                values = values_of(sequence);
            }
            const auto meant = static_cast<std::size_t>(position + (place == LabelPlace::prediction ? 1 : 0));
            if (meant < values.size() && !std::isnan(values[meant])) {
                lying.add(sequence, position);
                steps.push_back(tokens.steps[i]);
                theirs.push_back(values[meant]);
            }
        });
    return {with, static_cast<std::int64_t>(theirs.size()),
            spearman_with_interval(steps, theirs, lying.layout, options)};
}

} // namespace

Estimate spearman_with_interval(std::span<const double> a, std::span<const double> b,
                                const TokenLayout& layout, const BootstrapOptions& options) {
    if (a.size() != b.size()) {
        throw InputError(ErrorId::input_invalid, "expected two samples of one length, found " +
                                                     std::to_string(a.size()) + " and " +
                                                     std::to_string(b.size()) + " values.");
    }
    if (a.empty()) {
        return unknown_estimate;
    }
    const std::vector<double> x = centred_ranks(a);
    const std::vector<double> y = centred_ranks(b);
    const std::span<const double> series[] = {x};
    const Resampling how = choose_resampling(layout, series, options);
    const PrefixSums sums = sums_of(layout, how, 5, [&](std::size_t i, double* row) {
        row[0] += x[i];
        row[1] += y[i];
        row[2] += x[i] * x[i];
        row[3] += y[i] * y[i];
        row[4] += x[i] * y[i];
    });
    const Statistic rho = correlation(0);
    return bootstrap(sums, std::span(&rho, 1), how.apply(options)).front();
}

Statistic correlation(std::size_t first) {
    return [first](std::span<const double> sums, std::int64_t tokens) {
        const auto count = static_cast<double>(tokens);
        const std::span<const double> s = sums.subspan(first);
        const double xx = s[2] - s[0] * s[0] / count;
        const double yy = s[3] - s[1] * s[1] / count;
        const double xy = s[4] - s[0] * s[1] / count;
        constexpr double least = 1e-12; // below: rounding error, no variance
        return xx > least * s[2] && yy > least * s[3]
                   ? std::clamp(xy / std::sqrt(xx) / std::sqrt(yy), -1.0, 1.0)
                   : std::numeric_limits<double>::quiet_NaN();
    };
}

std::vector<StepsCorrelation> correlate_steps(const ScoredTokens& tokens, const BootstrapOptions& options) {
    std::vector<StepsCorrelation> found;
    for (const auto& [with, values] :
         {std::pair("NLL", &tokens.nll), std::pair("entropy", &tokens.entropy)}) {
        if (std::ranges::none_of(*values, [](double value) { return std::isnan(value); })) {
            found.push_back({with, static_cast<std::int64_t>(values->size()),
                             spearman_with_interval(tokens.steps, *values, tokens.layout, options)});
        }
    }
    return found;
}

StepsCorrelation correlate_steps(const TraceReader& trace, const RunInfo& run, const TraceReader& other_trace,
                                 const RunInfo& other, const BootstrapOptions& options) {
    const PairedSample sample =
        pair_runs(trace, run, other_trace, other, {options.progress, options.stop, options.threads});
    return {"NLL of " + other.name, static_cast<std::int64_t>(sample.b.size()),
            spearman_with_interval(sample.steps_a, sample.b, sample.layout, options)};
}

StepsCorrelation correlate_steps(const TraceReader& trace, const RunInfo& run,
                                 const AnnotationReader& annotations, const AnnotationInfo& annotation,
                                 LabelPlace place, const BootstrapOptions& options) {
    StepsCorrelation found = correlate_values(
        trace, run, annotation.name,
        [&](const SequenceInfo& sequence) {
            return annotations.values(annotation, sequence.number, 0, sequence.tokens);
        },
        place, options);
    if (found.tokens == 0) {
        throw InputError(ErrorId::run_unscored, trace.name_of(run) +
                                                    ": expected scored tokens that annotation \"" +
                                                    annotation.name +
                                                    "\" gives a number, found none; annotate tokens that "
                                                    "have a next one, or take the numbers of the "
                                                    "tokens themselves with --label-of token.");
    }
    return found;
}

std::optional<StepsCorrelation> correlate_gain(const TraceReader& trace, const RunInfo& run,
                                               const TraceReader& full_trace, const RunInfo& full,
                                               const BootstrapOptions& options) {
    const std::vector<SignalInfo> signals = full_trace.signal_infos(full.id);
    const bool by_step = std::any_of(signals.begin(), signals.end(), [](const SignalInfo& one) {
        return one.name == signal::nll && one.is_by_step();
    });
    if (full.max_steps == 0 || !by_step || !difference_of_tokens(trace, run, full_trace, full).empty()) {
        return std::nullopt;
    }
    const Annotation gain =
        annotation_by_step(full_trace, full, "gain", StepColumn::parse("nll@0-nll@last"), options.stop);
    return correlate_values(
        trace, run, "gain of " + full.name,
        [&](const SequenceInfo& sequence) { return gain.values[static_cast<std::size_t>(sequence.number)]; },
        LabelPlace::prediction, options);
}

} // namespace ponderscope
