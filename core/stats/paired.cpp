// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/paired.h"

#include "core/base/error.h"
#include "core/stats/rank_correlation.h"
#include "core/stats/ranks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

namespace ponderscope {
namespace {

/// The mean of a column that holds the values less \p centre.
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

namespace {

/// Tokens read at once, so that a sequence of any length takes the same memory.
constexpr std::int64_t tokens_a_page = 1 << 16;

void check_same_text(const TraceReader& trace_a, const RunInfo& a, const TraceReader& trace_b,
                     const RunInfo& b, const std::string& both) {
    if (a.text_digest != b.text_digest) {
        throw InputError(both + ": expected two runs of one text, found runs of " +
                         (a.text_source == b.text_source ? "two versions of " + a.text_source
                                                         : a.text_source + " and of " + b.text_source) +
                         "; record both on the same text.");
    }
    if (!have_same_tokens(trace_a, a, trace_b, b)) {
        throw InputError(both +
                         ": expected two runs of one tokenizer, found two tokenizers; ponderscope compare "
                         "compares their bits per byte.");
    }
}

std::vector<std::int64_t> common_tokens(const std::vector<SequenceInfo>& a,
                                        const std::vector<SequenceInfo>& b) {
    std::vector<std::int64_t> tokens;
    for (std::size_t s = 0; s < std::min(a.size(), b.size()); ++s) {
        tokens.push_back(std::min(a[s].tokens, b[s].tokens));
    }
    return tokens;
}

} // namespace

bool have_same_tokens(const TraceReader& trace_a, const RunInfo& run_a, const TraceReader& trace_b,
                      const RunInfo& run_b) {
    if (run_a.tokenizer_digest == run_b.tokenizer_digest) {
        return true;
    }
    const std::vector<std::int64_t> common =
        common_tokens(trace_a.sequences(run_a.id), trace_b.sequences(run_b.id));
    for (std::size_t s = 0; s < common.size(); ++s) {
        const auto number = static_cast<std::int64_t>(s);
        for (std::int64_t begin = 0; begin < common[s]; begin += tokens_a_page) {
            const std::int64_t end = std::min(begin + tokens_a_page, common[s]);
            const TokenColumns a = trace_a.tokens(run_a.id, number, begin, end);
            const TokenColumns b = trace_b.tokens(run_b.id, number, begin, end);
            if (a.id != b.id || a.begin != b.begin || a.end != b.end) {
                return false;
            }
        }
    }
    return std::ranges::any_of(common, [](std::int64_t tokens) { return tokens > 0; });
}

PairReading::PairReading(const TraceReader& trace_a, const RunInfo& run_a, const TraceReader& trace_b,
                         const RunInfo& run_b, const ProgressSink& progress, const std::stop_token& stop,
                         int threads)
    : run_a_(run_a),
      run_b_(run_b),
      name_a_(trace_a.short_name_of(run_a)),
      name_b_(trace_b.short_name_of(run_b)),
      sequences_a_((check_same_text(trace_a, run_a, trace_b, run_b, both()), trace_a.sequences(run_a.id))),
      sequences_b_(trace_b.sequences(run_b.id)),
      scan_({&trace_a, &trace_b}, common_tokens(sequences_a_, sequences_b_), progress, stop, threads) {
    ClusterNumbers clusters;
    ClusterNumbers scored;
    for (std::size_t s = 0; s < scan_.sequences(); ++s) {
        const SequenceInfo& a = sequences_a_[s];
        const SequenceInfo& b = sequences_b_[s];
        cluster_.push_back(clusters.of(a, b, both()));
        if (a.scored_tokens > 0 && b.scored_tokens > 0) {
            (void)scored.of(a, b, both());
        }
        most_tokens_ += std::min(a.scored_tokens, b.scored_tokens);
    }
    most_clusters_ = clusters.count();
    likely_clusters_ = scored.count();
}

std::string PairReading::both() const {
    return name_a_ + " and " + name_b_;
}

ReadPage<PairedSample> PairReading::pages() const {
    return [this](std::span<const TraceReader* const> readers, std::int64_t number, std::int64_t& from,
                  PairedSample& into) {
        const auto s = static_cast<std::size_t>(number);
        const std::int64_t tokens = std::min(sequences_a_[s].tokens, sequences_b_[s].tokens);
        const std::int64_t begin = from;
        const std::int64_t end = std::min(begin + tokens_a_page, tokens);
        from = end;
        // One more for the target of the last.
        const TokenColumns a = readers[0]->tokens(run_a_.id, number, begin, end + 1);
        const TokenColumns b = readers[1]->tokens(run_b_.id, number, begin, end + 1);
        for (std::size_t i = 0; i < static_cast<std::size_t>(end - begin); ++i) {
            const std::int64_t position = begin + static_cast<std::int64_t>(i);
            const bool in_a = !std::isnan(a.nll[i]);
            const bool in_b = !std::isnan(b.nll[i]);
            const bool targets = i + 1 < a.size() && i + 1 < b.size();
            if (a.id[i] != b.id[i] || (targets && a.id[i + 1] != b.id[i + 1])) {
                const std::size_t at = a.id[i] != b.id[i] ? i : i + 1;
                throw InputError(both() + ": expected the same tokens, found " + std::to_string(a.id[at]) +
                                 " and " + std::to_string(b.id[at]) + " at token " +
                                 std::to_string(begin + static_cast<std::int64_t>(at)) + " of sequence " +
                                 std::to_string(number) +
                                 "; record both on the same text with the same tokenizer.");
            }
            if (!in_a || !in_b) {
                continue;
            }
            into.layout.add(cluster_[s], into.last + 1 == position);
            into.last = position;
            into.a.push_back(a.nll[i]);
            into.b.push_back(b.nll[i]);
            if (a.rank[i] > 0 && b.rank[i] > 0) { // 0 at a scored token: the writer did not know it
                into.right_a.push_back(a.rank[i] == 1 ? 1 : 0);
                into.right_b.push_back(b.rank[i] == 1 ? 1 : 0);
            }
            into.steps_a.push_back(a.steps[i]);
            const TokenColumns& with_target = i + 1 < a.size() ? a : b;
            into.bytes.push_back(target_bytes(with_target, i));
        }
        return end < tokens;
    };
}

void PairReading::finish(PairedSample& sample, std::int64_t count) const {
    const auto rest = [&](const std::vector<SequenceInfo>& sequences) {
        std::int64_t scored = 0;
        for (const SequenceInfo& sequence : sequences) {
            scored += sequence.scored_tokens;
        }
        return std::max<std::int64_t>(0, scored - count);
    };
    sample.only_a = rest(sequences_a_);
    sample.only_b = rest(sequences_b_);
    if (sample.only_a > 0 || sample.only_b > 0) {
        sample.notices.push_back("Only the " + std::to_string(count) +
                                 " tokens that both runs scored are compared; " +
                                 std::to_string(sample.only_a) + " of " + run_a_.name + " and " +
                                 std::to_string(sample.only_b) + " of " + run_b_.name + " are left out.");
    }
    for (const RunInfo* run : {&run_a_, &run_b_}) {
        if (!run->complete) {
            sample.notices.push_back("Run " + run->name + " is partial.");
        }
    }
    if (run_a_.scoring != run_b_.scoring) {
        sample.notices.push_back("The runs were scored in different ways: " + run_a_.name + " " +
                                 run_a_.scoring + ", " + run_b_.name + " " + run_b_.scoring + ".");
    }
    if (count == 0) {
        throw InputError(
            both() +
            ": expected tokens that both scored, found none; wait until both recordings have more tokens.");
    }
}

void PairedSample::append(const PairedSample& more) {
    append_to(a, more.a);
    append_to(b, more.b);
    append_to(bytes, more.bytes);
    append_to(right_a, more.right_a);
    append_to(right_b, more.right_b);
    append_to(steps_a, more.steps_a);
    layout.append(more.layout);
}

PairedSample pair_runs(const TraceReader& trace_a, const RunInfo& run_a, const TraceReader& trace_b,
                       const RunInfo& run_b, const ProgressSink& progress, const std::stop_token& stop) {
    return PairReading(trace_a, run_a, trace_b, run_b, progress, stop).sample();
}

PairedSample PairReading::sample() const {
    PairedSample all = read_all(scan_, pages());
    finish(all, static_cast<std::int64_t>(all.a.size()));
    return all;
}

} // namespace ponderscope
