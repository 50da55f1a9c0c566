// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/paired.h"

#include "core/base/error.h"
#include "core/stats/pair_reading.h"
#include "core/stats/rank_correlation.h"
#include "core/stats/rank_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

namespace ponderscope {
namespace {

/// Of a column that holds the values less \p centre.
Statistic mean_of(std::size_t column, double centre = 0) {
    return [=](std::span<const double> sums, std::int64_t tokens) {
        return centre + sums[column] / static_cast<double>(tokens);
    };
}

Statistic bits_per_byte(std::size_t nll, std::size_t bytes, double centre = 0) {
    return [=](std::span<const double> sums, std::int64_t tokens) {
        const double nats = sums[nll] + centre * static_cast<double>(tokens);
        return sums[bytes] > 0 ? nats / sums[bytes] / std::numbers::ln2
                               : std::numeric_limits<double>::quiet_NaN();
    };
}

/// What a first look at a sample finds.
struct PairedTotals {
    std::int64_t tokens = 0;
    double a = 0, b = 0, bytes = 0;
    std::int64_t b_better = 0, equal = 0;
    std::int64_t both_right = 0, only_a = 0, only_b = 0, both_wrong = 0; ///< none where ranks are not known

    void look_at(const PairedSample& sample, std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            a += sample.a[i];
            b += sample.b[i];
            bytes += sample.bytes[i];
            b_better += sample.b[i] < sample.a[i];
            equal += sample.b[i] == sample.a[i];
        }
        tokens += static_cast<std::int64_t>(end - begin);
        if (sample.right_a.size() != sample.a.size() || sample.right_b.size() != sample.a.size()) {
            return;
        }
        for (std::size_t i = begin; i < end; ++i) {
            const bool by_a = sample.right_a[i] != 0;
            const bool by_b = sample.right_b[i] != 0;
            ++(by_a ? (by_b ? both_right : only_a) : (by_b ? only_b : both_wrong));
        }
    }
    void add(const PairedTotals& more) {
        tokens += more.tokens;
        a += more.a;
        b += more.b;
        bytes += more.bytes;
        b_better += more.b_better;
        equal += more.equal;
        both_right += more.both_right;
        only_a += more.only_a;
        only_b += more.only_b;
        both_wrong += more.both_wrong;
    }
};

/// The sums that everything said of a pair is made from.
class PairedSums {
public:
    // What each column holds: x, y, xx, yy, xy of the centred values, the same of their centred and scaled
    // ranks, bytes; weights by document: x, y, one, bits per byte of both; tokens that only one gets right.
    static constexpr std::size_t ranks = 5;
    static constexpr std::size_t bytes = 10;
    static constexpr std::size_t document_a = 11;
    static constexpr std::size_t document_b = 12;
    static constexpr std::size_t document = 13;
    static constexpr std::size_t document_rate_a = 14;
    static constexpr std::size_t document_rate_b = 15;
    static constexpr std::size_t flips = 16; ///< only A right less only B right
    static constexpr std::size_t width = 17;

    /// The first look. \p most_tokens: that may come, of \p most_clusters clusters.
    PairedSums(Source<PairedSample> source, std::size_t workers, std::int64_t most_tokens,
               std::int64_t most_clusters);
    /// The second.
    [[nodiscard]] PrefixSums sums(const Resampling& how, const TokenLayout& layout) const;

    [[nodiscard]] std::vector<std::int64_t> cluster_tokens() const; ///< of those that have some
    [[nodiscard]] bool every_document_has_bytes() const;

    PairedTotals all;
    double mean_a = 0, mean_b = 0;

private:
    Source<PairedSample> source_;
    std::vector<PairedTotals> documents_; ///< a cluster
    std::vector<std::int64_t> numbers_;   ///< of the clusters among those that have tokens
    std::optional<RankTable> rank_a_, rank_b_;
};

PairedSums::PairedSums(Source<PairedSample> source, std::size_t workers, std::int64_t most_tokens,
                       std::int64_t most_clusters)
    : source_(std::move(source)), documents_(static_cast<std::size_t>(most_clusters)) {
    std::vector<RankTable> tables_a, tables_b;
    for (std::size_t worker = 0; worker < workers; ++worker) {
        tables_a.emplace_back(most_tokens);
        tables_b.emplace_back(most_tokens);
    }
    source_(
        [&](std::size_t worker, std::int64_t cluster, const PairedSample& sample, std::size_t begin,
            std::size_t end) -> Commit {
            for (std::size_t i = begin; i < end; ++i) {
                tables_a[worker].add(sample.a[i]);
                tables_b[worker].add(sample.b[i]);
            }
            PairedTotals part;
            part.look_at(sample, begin, end);
            return [this, cluster, part] {
                all.add(part);
                documents_[static_cast<std::size_t>(cluster)].add(part);
            };
        },
        {});
    rank_a_ = merged(std::move(tables_a));
    rank_b_ = merged(std::move(tables_b));
    mean_a = all.a / static_cast<double>(all.tokens);
    mean_b = all.b / static_cast<double>(all.tokens);
    std::int64_t next = 0;
    for (const PairedTotals& one : documents_) {
        numbers_.push_back(one.tokens > 0 ? next++ : -1);
    }
}

std::vector<std::int64_t> PairedSums::cluster_tokens() const {
    std::vector<std::int64_t> tokens;
    for (const PairedTotals& one : documents_) {
        if (one.tokens > 0) {
            tokens.push_back(one.tokens);
        }
    }
    return tokens;
}

bool PairedSums::every_document_has_bytes() const {
    return std::all_of(documents_.begin(), documents_.end(),
                       [](const PairedTotals& one) { return one.tokens == 0 || one.bytes > 0; });
}

PrefixSums PairedSums::sums(const Resampling& how, const TokenLayout& layout) const {
    SampleRows rows(width, how.unit == ResamplingUnit::clusters, how.clusters, all.tokens);
    const auto n = static_cast<double>(all.tokens);
    const double mean_rank = (n + 1) / 2;
    const auto put = [](double* to, double x, double y) {
        to[0] += x;
        to[1] += y;
        to[2] += x * x;
        to[3] += y * y;
        to[4] += x * y;
    };
    source_(
        [&](std::size_t, std::int64_t cluster, const PairedSample& sample, std::size_t begin,
            std::size_t end) -> Commit {
            const PairedTotals& whole = documents_[static_cast<std::size_t>(cluster)];
            const std::int64_t number = numbers_[static_cast<std::size_t>(cluster)];
            const bool flipped =
                sample.right_a.size() == sample.a.size() && sample.right_b.size() == sample.a.size();
            const auto tokens = static_cast<double>(whole.tokens);
            std::array<double, width> together{};
            for (std::size_t i = begin; i < end; ++i) {
                double* row = rows.by_cluster() ? together.data() : rows.of_token(number);
                const double x = sample.a[i] - mean_a;
                const double y = sample.b[i] - mean_b;
                put(row, x, y);
                put(row + ranks, (rank_a_->rank(sample.a[i]) - mean_rank) / n,
                    (rank_b_->rank(sample.b[i]) - mean_rank) / n);
                row[bytes] += sample.bytes[i];
                row[document_a] += x / tokens;
                row[document_b] += y / tokens;
                row[document] += 1 / tokens;
                if (whole.bytes > 0) {
                    row[document_rate_a] += sample.a[i] / whole.bytes / std::numbers::ln2;
                    row[document_rate_b] += sample.b[i] / whole.bytes / std::numbers::ln2;
                }
                if (flipped) {
                    row[flips] +=
                        static_cast<double>(sample.right_a[i]) - static_cast<double>(sample.right_b[i]);
                }
            }
            if (!rows.by_cluster()) {
                return {};
            }
            return [&rows, number, together, count = static_cast<std::int64_t>(end - begin)] {
                rows.add(number, together, count);
            };
        },
        {});
    return std::move(rows).sums(layout);
}

/// Mean over documents of what a column adds up to in each.
Statistic document_mean(std::size_t column, double centre = 0) {
    return [=](std::span<const double> sums, std::int64_t) {
        return centre + sums[column] / sums[PairedSums::document];
    };
}

Statistic minus(Statistic a, Statistic b) {
    return [a = std::move(a), b = std::move(b)](std::span<const double> sums, std::int64_t tokens) {
        return a(sums, tokens) - b(sums, tokens);
    };
}

Flips flips_of(const PairedTotals& all, const Estimate& difference, const UnitSums& units) {
    Flips flips;
    flips.tokens = all.tokens;
    flips.both_right = all.both_right;
    flips.only_a = all.only_a;
    flips.only_b = all.only_b;
    flips.both_wrong = all.both_wrong;
    flips.difference = difference;
    flips.p = sign_flip_p(units.column(PairedSums::flips));
    flips.mcnemar = mcnemar_p(flips.only_a, flips.only_b);
    return flips;
}

/// \p result: with its resampling, and the notices that come first. \p layout: of the tokens, where blocks
/// are drawn.
void compare(const PairedSums& pairs, const TokenLayout& layout, const BootstrapOptions& options,
             std::optional<double> margin, PairedComparison& result) {
    using Columns = PairedSums;
    const double mean_a = pairs.mean_a;
    const double mean_b = pairs.mean_b;
    const double mean_difference = mean_a - mean_b;
    const double none = std::numeric_limits<double>::quiet_NaN();
    const double documents_with_text = pairs.every_document_has_bytes() ? 0 : none;
    const Statistic rate_a = bits_per_byte(0, Columns::bytes, mean_a);
    const Statistic rate_b = bits_per_byte(1, Columns::bytes, mean_b);
    const Statistic document_a = document_mean(Columns::document_a, mean_a);
    const Statistic document_b = document_mean(Columns::document_b, mean_b);
    const Statistic document_rate_a = document_mean(Columns::document_rate_a, documents_with_text);
    const Statistic document_rate_b = document_mean(Columns::document_rate_b, documents_with_text);
    const std::vector<std::pair<Estimate*, Statistic>> wanted = {
        {&result.mean_a, mean_of(0, mean_a)},
        {&result.mean_b, mean_of(1, mean_b)},
        {&result.difference,
         [=](std::span<const double> s, std::int64_t tokens) {
             return mean_difference + (s[0] - s[1]) / static_cast<double>(tokens);
         }},
        {&result.bits_per_byte_a, rate_a},
        {&result.bits_per_byte_b, rate_b},
        {&result.bits_per_byte_difference, minus(rate_a, rate_b)},
        {&result.documents.a, document_a},
        {&result.documents.b, document_b},
        {&result.documents.difference, minus(document_a, document_b)},
        {&result.documents.bits_per_byte_a, document_rate_a},
        {&result.documents.bits_per_byte_b, document_rate_b},
        {&result.documents.bits_per_byte_difference, minus(document_rate_a, document_rate_b)},
        {&result.pearson, correlation(0)},
        {&result.spearman, correlation(Columns::ranks)},
    };
    std::vector<Statistic> statistics;
    for (const auto& [to, statistic] : wanted) {
        statistics.push_back(statistic);
    }
    statistics.push_back(mean_of(Columns::flips));
    const PrefixSums sums = pairs.sums(result.resampling, layout);
    const std::vector<Estimate> estimates = bootstrap(sums, statistics, result.resampling.apply(options));
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        *wanted[i].first = estimates[i];
    }
    const PairedTotals& all = pairs.all;
    const auto n = static_cast<double>(all.tokens);
    result.tokens = all.tokens;
    result.perplexity_a = exponential(result.mean_a);
    result.perplexity_b = exponential(result.mean_b);
    result.perplexity_ratio = exponential(result.difference);
    result.share_b_better = static_cast<double>(all.b_better) / n;
    result.share_equal = static_cast<double>(all.equal) / n;

    const UnitSums units = unit_sums(sums, result.resampling);
    std::vector<double> differences = units.column(0);
    const std::vector<double> of_b = units.column(1);
    for (std::size_t u = 0; u < differences.size(); ++u) {
        differences[u] += mean_difference * units.tokens[u] - of_b[u];
    }
    const bool same = all.equal == all.tokens;
    result.p = same ? 1 : sign_flip_p(differences);
    if (margin) {
        result.equivalence = equivalence_test(differences, units.tokens, *margin, (1 - options.level));
    }
    if (all.both_right + all.only_a + all.only_b + all.both_wrong == all.tokens) {
        result.flips = flips_of(all, estimates.back(), units);
    }
    for (const std::string& about : result.resampling.notices()) {
        result.notices.push_back(about);
    }
    if (const auto ranks = rank_notice(all.tokens)) {
        result.notices.push_back(*ranks);
    }
    if (same) {
        result.notices.emplace_back("Every token has the same NLL in both: the runs are the same.");
    }
}

} // namespace

Estimate exponential(const Estimate& mean) {
    return {std::exp(mean.value), std::exp(mean.low), std::exp(mean.high),
            std::exp(mean.value) * mean.standard_error};
}

PairedComparison compare_paired(const PairedSample& sample, const BootstrapOptions& options,
                                std::optional<double> margin) {
    if (sample.a.empty()) {
        throw InputError("expected tokens that both runs scored, found none.");
    }
    std::vector<double> apart(sample.a.size());
    for (std::size_t i = 0; i < apart.size(); ++i) {
        apart[i] = sample.a[i] - sample.b[i];
    }
    const std::span<const double> series[] = {sample.a, sample.b, apart};
    PairedComparison result;
    result.resampling = choose_resampling(sample.layout, series, options);
    result.notices = sample.notices;
    const PairedSums pairs(source_of(sample), 1, static_cast<std::int64_t>(sample.a.size()),
                           sample.layout.clusters());
    compare(pairs, sample.layout, options, margin, result);
    return result;
}

PairedComparison compare_runs(const TraceReader& trace_a, const RunInfo& run_a, const TraceReader& trace_b,
                              const RunInfo& run_b, const BootstrapOptions& options,
                              std::optional<double> margin) {
    const PairReading reading(trace_a, run_a, trace_b, run_b, options.progress, options.stop,
                              options.threads);
    if (draws_whole_clusters(options, reading.likely_clusters())) {
        const PairedSums pairs(source_of(reading.scan(), reading.pages()), reading.scan().workers(),
                               reading.most_tokens(), reading.most_clusters());
        PairedSample said;
        reading.finish(said, pairs.all.tokens);
        const TokenLayout clusters(pairs.cluster_tokens());
        if (draws_whole_clusters(options, clusters.clusters())) {
            PairedComparison result;
            result.resampling = choose_resampling(clusters, {}, options);
            result.notices = std::move(said.notices);
            compare(pairs, clusters, options, margin, result);
            return result;
        }
    }
    return compare_paired(reading.sample(), options, margin);
}

} // namespace ponderscope
