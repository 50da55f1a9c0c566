// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/run_study.h"

#include "core/stats/scan.h"

#include <cmath>
#include <limits>
#include <numbers>

namespace ponderscope {
namespace {

/// What the tokens of each cluster add up to.
class ClusterTotals {
public:
    struct Row {
        std::int64_t tokens = 0;
        double nll = 0, bytes = 0, steps = 0;
    };

    explicit ClusterTotals(const ScoredRun& run) : rows(static_cast<std::size_t>(run.most_clusters())) {}

    Commit look(std::int64_t cluster, const ScoredTokens& sample, std::size_t begin, std::size_t end) {
        Row part{static_cast<std::int64_t>(end - begin)};
        for (std::size_t i = begin; i < end; ++i) {
            part.nll += sample.nll[i];
            part.bytes += sample.bytes[i];
            part.steps += sample.steps[i];
        }
        return [this, cluster, part] {
            Row& row = rows[static_cast<std::size_t>(cluster)];
            row.tokens += part.tokens;
            row.nll += part.nll;
            row.bytes += part.bytes;
            row.steps += part.steps;
        };
    }

    std::vector<Row> rows;
};

Resampling resampling_of(const ScoredTokens& tokens, const BootstrapOptions& options) {
    const std::span<const double> series[] = {tokens.nll, tokens.steps};
    return choose_resampling(tokens.layout, series, options);
}

RunEstimate estimate_of(const ScoredRun& run, const ClusterTotals& totals, const BootstrapOptions& options,
                        bool sensitivity) {
    constexpr std::size_t width = 5; // nll, bytes, steps; nll and one by document
    const std::optional<ScoredTokens>& tokens = run.tokens();
    std::vector<std::int64_t> lengths;
    for (const ClusterTotals::Row& row : totals.rows) {
        if (row.tokens > 0) {
            lengths.push_back(row.tokens);
        }
    }
    const TokenLayout layout = tokens ? tokens->layout : TokenLayout(lengths);
    RunEstimate result;
    result.scored_tokens = layout.tokens();
    if (tokens) {
        result.resampling = resampling_of(*tokens, options);
    } else {
        BootstrapOptions whole = options;
        whole.unit = ResamplingUnit::clusters;
        result.resampling = choose_resampling(layout, {}, whole);
    }
    const bool by_cluster = result.resampling.unit == ResamplingUnit::clusters;
    SampleRows rows(width, by_cluster, layout.clusters(), result.scored_tokens);
    if (by_cluster) {
        std::int64_t number = 0;
        for (const ClusterTotals::Row& row : totals.rows) {
            if (row.tokens > 0) {
                const double sums[width] = {row.nll, row.bytes, row.steps,
                                            row.nll / static_cast<double>(row.tokens), 1};
                rows.add(number++, sums, row.tokens);
            }
        }
    } else {
        std::size_t i = 0;
        for (std::size_t s = 0; s < layout.stretches.size(); ++s) {
            const std::int64_t cluster = layout.cluster_of[s];
            const double weight =
                1 / static_cast<double>(totals.rows[static_cast<std::size_t>(cluster)].tokens);
            for (std::int64_t t = 0; t < layout.stretches[s]; ++t, ++i) {
                double* row = rows.of_token(cluster);
                row[0] = tokens->nll[i];
                row[1] = tokens->bytes[i];
                row[2] = tokens->steps[i];
                row[3] = tokens->nll[i] * weight;
                row[4] = weight;
            }
        }
    }
    const auto over_tokens = [](std::size_t column) -> Statistic {
        return [column](std::span<const double> sums, std::int64_t count) {
            return sums[column] / static_cast<double>(count);
        };
    };
    const std::vector<Statistic> statistics = {
        over_tokens(0),
        [](std::span<const double> sums, std::int64_t) {
            return sums[1] > 0 ? sums[0] / sums[1] / std::numbers::ln2
                               : std::numeric_limits<double>::quiet_NaN();
        },
        over_tokens(2), [](std::span<const double> sums, std::int64_t) { return sums[3] / sums[4]; }};
    const std::vector<Estimate> estimates =
        bootstrap(std::move(rows).sums(layout), statistics, result.resampling.apply(options));
    result.mean_nll = estimates[0];
    result.perplexity = exponential(estimates[0]);
    result.bits_per_byte = estimates[1];
    result.mean_steps = estimates[2];
    result.document_mean_nll = estimates[3];
    if (sensitivity) {
        result.by_block = block_sensitivity(tokens->nll, layout, options);
    }
    result.notices = result.resampling.notices();
    if (!run.run().complete) {
        result.notices.insert(result.notices.begin(), "Run " + run.run().name + " is partial.");
    }
    return result;
}

} // namespace

RunEstimate estimate_run(const TraceReader& trace, const RunInfo& run, const BootstrapOptions& options,
                         bool sensitivity) {
    const ScoredRun scored(trace, run, options, sensitivity);
    ClusterTotals totals(scored);
    scored.source()([&](std::size_t, std::int64_t cluster, const ScoredTokens& sample, std::size_t begin,
                        std::size_t end) { return totals.look(cluster, sample, begin, end); },
                    {});
    return estimate_of(scored, totals, options, sensitivity);
}

RunStudy study_run(const TraceReader& trace, const RunInfo& run, const GroupingOptions& given,
                   bool sensitivity) {
    const ScoredRun scored(trace, run, given.bootstrap, sensitivity, given.types);
    GroupingOptions options = given;
    if (scored.tokens()) { // one length of blocks for the whole report
        options.bootstrap = resampling_of(*scored.tokens(), given.bootstrap).apply(given.bootstrap);
    }
    ClusterTotals totals(scored);
    RunRanks ranks = rank_steps(scored);
    TypeSums types(scored.tokens() ? &*scored.tokens() : nullptr, scored.most_clusters(), scored.workers(),
                   run.max_steps, options.bootstrap);
    scored.source()(
        [&](std::size_t worker, std::int64_t cluster, const ScoredTokens& sample, std::size_t begin,
            std::size_t end) -> Commit {
            return [first = totals.look(cluster, sample, begin, end),
                    second = ranks.look(worker, cluster, sample, begin, end),
                    third = types.look(worker, cluster, sample, begin, end)] {
                first();
                second();
                if (third) {
                    third();
                }
            };
        },
        [&](std::size_t worker) { return types.pause(worker); });
    RunStudy study;
    study.estimate = estimate_of(scored, totals, options.bootstrap, sensitivity);
    study.groups = group_tokens(types, vocabulary_by_id(trace, run), options);
    if (!types.resampling()) {
        study.groups.resampling = study.estimate.resampling;
    }
    study.correlations = correlate_steps(scored, ranks, options.bootstrap);
    if (const auto notice = rank_notice(study.estimate.scored_tokens)) {
        study.estimate.notices.push_back(*notice);
    }
    return study;
}

} // namespace ponderscope
