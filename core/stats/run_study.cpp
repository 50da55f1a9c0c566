// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/run_study.h"

#include "core/stats/scan.h"

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
    bootstrap(sums,
              {{&result.mean_nll, mean_of(0)},
               {&result.bits_per_byte, bits_per_byte(0, 1)},
               {&result.mean_steps, mean_of(2)}},
              result.resampling.apply(options));
    result.perplexity = exponential(result.mean_nll);
    if (!run.complete) {
        result.notices.push_back({NoticeId::run_partial, "Run " + run.name + " is partial."});
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
    GroupingOptions options = given; // with one block length for the whole report
    options.bootstrap = study.estimate.resampling.apply(given.bootstrap);
    study.groups = group_tokens(tokens, run.max_steps, vocabulary_by_id(trace, run), options);
    study.correlations = correlate_steps(tokens, options.bootstrap);
    return study;
}

} // namespace ponderscope
