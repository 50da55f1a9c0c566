// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/run_study.h"

#include "core/base/not_a_number.h"
#include "core/stats/scan.h"

#include <numbers>

namespace ponderscope {
namespace {

ScoredTokens read_of(const TraceReader& trace, const RunInfo& run, const BootstrapOptions& options,
                     LabelPlace types = LabelPlace::token) {
    return read_scored(trace, run, {options.progress, options.stop, options.threads}, types);
}

RunEstimate estimate_of(const ScoredTokens& tokens, const RunInfo& run, const BootstrapOptions& options) {
    const std::span<const double> series[] = {tokens.nll, tokens.steps};
    RunEstimate result;
    result.scored_tokens = tokens.layout.tokens();
    result.resampling = choose_resampling(tokens.layout, series, options);
    constexpr std::size_t width = 3; // NLL, bytes, steps
    const PrefixSums sums = sums_of(tokens.layout, result.resampling, width, [&](std::size_t i, double* row) {
        row[0] += tokens.nll[i];
        row[1] += tokens.bytes[i];
        row[2] += tokens.steps[i];
    });
    const auto over_tokens = [](std::size_t column) -> Statistic {
        return [column](std::span<const double> totals, std::int64_t count) {
            return totals[column] / static_cast<double>(count);
        };
    };
    const std::vector<Statistic> statistics = {over_tokens(0),
                                               [](std::span<const double> totals, std::int64_t) {
                                                   return totals[1] > 0
                                                              ? totals[0] / totals[1] / std::numbers::ln2
                                                              : not_a_number;
                                               },
                                               over_tokens(2)};
    const std::vector<Estimate> estimates = bootstrap(sums, statistics, result.resampling.apply(options));
    result.mean_nll = estimates[0];
    result.perplexity = exponential(estimates[0]);
    result.bits_per_byte = estimates[1];
    result.mean_steps = estimates[2];
    if (!run.complete) {
        result.notices.push_back("Run " + run.name + " is partial.");
    }
    append_to(result.notices, result.resampling.notices());
    return result;
}

} // namespace

RunEstimate estimate_run(const TraceReader& trace, const RunInfo& run, const BootstrapOptions& options) {
    return estimate_of(read_of(trace, run, options), run, options);
}

RunStudy study_run(const TraceReader& trace, const RunInfo& run, const GroupingOptions& given) {
    const ScoredTokens tokens = read_of(trace, run, given.bootstrap, given.types);
    RunStudy study;
    study.estimate = estimate_of(tokens, run, given.bootstrap);
    GroupingOptions options = given; // one length of blocks for the whole report
    options.bootstrap = study.estimate.resampling.apply(given.bootstrap);
    study.groups = group_tokens(tokens, run.max_steps, vocabulary_by_id(trace, run), options);
    study.correlations = correlate_steps(tokens, options.bootstrap);
    return study;
}

} // namespace ponderscope
