// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/rank_correlation.h"

#include "core/base/error.h"
#include "core/stats/byte_alignment.h"
#include "core/stats/paired.h"
#include "core/stats/scan.h"
#include "core/trace/tools/step_columns.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>

namespace ponderscope {
namespace {

/// Two quantities of tokens in memory.
struct TwoOfTokens {
    std::span<const double> a, b;
    const TokenLayout& layout;
};

double steps_of(const ScoredTokens& tokens, std::size_t i) {
    return tokens.steps[i];
}

} // namespace

Estimate spearman_with_interval(std::span<const double> a, std::span<const double> b,
                                const TokenLayout& layout, const BootstrapOptions& options) {
    if (a.size() != b.size()) {
        throw InputError("expected two samples of one length, found " + std::to_string(a.size()) + " and " +
                         std::to_string(b.size()) + " values.");
    }
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    const Estimate none{nan, nan, nan, nan};
    if (a.empty()) {
        return none;
    }
    const TwoOfTokens both{a, b, layout};
    const auto tokens = static_cast<std::int64_t>(a.size());
    RankSums<TwoOfTokens> ranks({[](const TwoOfTokens& two, std::size_t i) { return two.a[i]; },
                                 [](const TwoOfTokens& two, std::size_t i) { return two.b[i]; }},
                                1, layout.clusters(), tokens);
    const Source<TwoOfTokens> source = source_of(both);
    source(looked_at_by(ranks), {});
    const bool by_cluster = draws_whole_clusters(options, layout.clusters());
    return ranks.estimates(source, by_cluster, layout, options).front().value_or(none);
}

Statistic correlation(std::size_t first) {
    return [first](std::span<const double> sums, std::int64_t tokens) {
        const auto count = static_cast<double>(tokens);
        const std::span<const double> s = sums.subspan(first);
        const double xx = s[2] - s[0] * s[0] / count;
        const double yy = s[3] - s[1] * s[1] / count;
        const double xy = s[4] - s[0] * s[1] / count;
        constexpr double least = 1e-12; // a variance of rounding errors is none
        return xx > least * s[2] && yy > least * s[3]
                   ? std::clamp(xy / std::sqrt(xx) / std::sqrt(yy), -1.0, 1.0)
                   : std::numeric_limits<double>::quiet_NaN();
    };
}

Estimate rank_correlation(const PrefixSums& sums, const BootstrapOptions& options) {
    const Statistic rho = correlation(0);
    return bootstrap(sums, std::span(&rho, 1), options).front();
}

RunRanks rank_steps(const ScoredRun& run) {
    return {{steps_of, [](const ScoredTokens& tokens, std::size_t i) { return tokens.nll[i]; },
             [](const ScoredTokens& tokens, std::size_t i) { return tokens.entropy[i]; }},
            run.workers(),
            run.most_clusters(),
            run.most_tokens()};
}

std::vector<StepsCorrelation> correlate_steps(const ScoredRun& run, RunRanks& ranks,
                                              const BootstrapOptions& options) {
    const auto& tokens = run.tokens();
    const bool by_cluster = !tokens || draws_whole_clusters(options, tokens->layout.clusters());
    const auto found =
        ranks.estimates(run.source(), by_cluster, tokens ? tokens->layout : TokenLayout(), options);
    std::vector<StepsCorrelation> result;
    for (std::size_t i = 0; i < found.size(); ++i) {
        if (found[i]) {
            result.push_back({i == 0 ? "NLL" : "entropy", ranks.tokens(), *found[i]});
        }
    }
    return result;
}

StepsCorrelation correlate_steps(const TraceReader& trace, const RunInfo& run, const TraceReader& other_trace,
                                 const RunInfo& other, const BootstrapOptions& options) {
    const auto correlate = [&](const Source<PairedSample>& source, std::size_t workers, std::int64_t clusters,
                               std::int64_t tokens, bool by_cluster, const TokenLayout& layout,
                               const std::string& with) -> std::optional<StepsCorrelation> {
        RankSums<PairedSample> ranks({[](const PairedSample& pair, std::size_t i) { return pair.steps_a[i]; },
                                      [](const PairedSample& pair, std::size_t i) { return pair.b[i]; }},
                                     workers, clusters, tokens);
        source(looked_at_by(ranks), {});
        if (by_cluster && !draws_whole_clusters(options, ranks.clusters())) {
            return std::nullopt; // too few have common tokens
        }
        return StepsCorrelation{with, ranks.tokens(),
                                *ranks.estimates(source, by_cluster, layout, options).front()};
    };
    const auto correlate_sample = [&](const PairedSample& sample, const std::string& with) {
        return *correlate(source_of(sample), 1, sample.layout.clusters(),
                          static_cast<std::int64_t>(sample.a.size()),
                          draws_whole_clusters(options, sample.layout.clusters()), sample.layout, with);
    };
    const std::string with = "NLL of " + other.name;
    if (run.text_digest == other.text_digest && !have_same_tokens(trace, run, other_trace, other)) {
        return correlate_sample(pair_runs_by_bytes(trace, run, other_trace, other, {}, options.stop),
                                with + ", by bytes");
    }
    const PairReading reading(trace, run, other_trace, other, options.progress, options.stop,
                              options.threads);
    if (draws_whole_clusters(options, reading.likely_clusters())) {
        if (auto found = correlate(source_of(reading.scan(), reading.pages()), reading.scan().workers(),
                                   reading.most_clusters(), reading.most_tokens(), true, {}, with)) {
            return *std::move(found);
        }
    }
    return correlate_sample(reading.sample(), with);
}

namespace {

/// Steps against a number of each token, over the scored tokens that have one; \p values(sequence): of its
/// tokens.
StepsCorrelation correlate_values(const TraceReader& trace, const RunInfo& run, const std::string& with,
                                  const std::function<std::vector<double>(const SequenceInfo&)>& values_of,
                                  LabelPlace place, const BootstrapOptions& options) {
    std::vector<double> steps, theirs, values;
    std::int64_t of = -1; // the sequence that `values` are of
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
        throw InputError(trace.name_of(run) + ": expected scored tokens with a number of annotation \"" +
                         annotation.name +
                         "\", found none; annotate tokens that have a next one, or take the numbers of the "
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
