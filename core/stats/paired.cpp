// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/paired.h"

#include "core/base/error.h"
#include "core/stats/correlation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

namespace ponderscope {
namespace {

/// Tokens read at once, so that a sequence of any length takes the same memory.
constexpr std::int64_t page = 1 << 16;

std::string named(const TraceReader& trace, const RunInfo& run) {
    return trace.path().filename().string() + "#" + run.name;
}

void check_same_text(const TraceReader& trace_a, const RunInfo& a, const TraceReader& trace_b,
                     const RunInfo& b) {
    const std::string both = named(trace_a, a) + " and " + named(trace_b, b);
    if (a.text_digest != b.text_digest) {
        throw InputError(both + ": expected two runs of one text, found runs of " +
                         (a.text_source == b.text_source ? "two versions of " + a.text_source
                                                         : a.text_source + " and of " + b.text_source) +
                         "; record both on the same text.");
    }
    if (a.tokenizer_digest != b.tokenizer_digest) {
        throw InputError(both + ": expected two runs of one tokenizer, found different ones, so that tokens "
                                "have no partners; "
                                "ponderscope compare sets their bits per byte against each other.");
    }
}

/// Bytes under the target of each token: the span of the next one.
double target_bytes(const TokenColumns& tokens, std::size_t i) {
    return i + 1 < tokens.size() ? static_cast<double>(tokens.end[i + 1] - tokens.begin[i + 1]) : 0;
}

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

/// From sums of x, y, xx, yy, xy from \p first on. The values were centred before, so little cancels.
Statistic correlation(std::size_t first) {
    return [first](std::span<const double> sums, std::int64_t tokens) {
        const auto n = static_cast<double>(tokens);
        const double* s = sums.data() + first;
        const double xx = s[2] - s[0] * s[0] / n;
        const double yy = s[3] - s[1] * s[1] / n;
        const double xy = s[4] - s[0] * s[1] / n;
        // A variance of rounding errors is none.
        const double least = 1e-12;
        if (!(xx > least * s[2]) || !(yy > least * s[3])) {
            return std::numeric_limits<double>::quiet_NaN();
        }
        return std::clamp(xy / std::sqrt(xx) / std::sqrt(yy), -1.0, 1.0);
    };
}

/// exp is monotone, so quantiles of the mean become quantiles of the perplexity.
Estimate exponential(const Estimate& mean) {
    return {std::exp(mean.value), std::exp(mean.low), std::exp(mean.high),
            std::exp(mean.value) * mean.standard_error};
}

double mean(std::span<const double> values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

} // namespace

PairedSample pair_runs(const TraceReader& trace_a, const RunInfo& run_a, const TraceReader& trace_b,
                       const RunInfo& run_b, const ProgressSink& progress, const std::stop_token& stop) {
    check_same_text(trace_a, run_a, trace_b, run_b);
    const std::vector<SequenceInfo> sequences_a = trace_a.sequences(run_a.id);
    const std::vector<SequenceInfo> sequences_b = trace_b.sequences(run_b.id);
    const std::size_t common = std::min(sequences_a.size(), sequences_b.size());
    const std::string both = named(trace_a, run_a) + " and " + named(trace_b, run_b);
    PairedSample sample;
    ClusterNumbers clusters;
    std::int64_t read = 0;
    for (std::size_t s = 0; s < common; ++s) {
        const auto number = static_cast<std::int64_t>(s);
        const std::int64_t tokens = std::min(sequences_a[s].tokens, sequences_b[s].tokens);
        std::int64_t last = -2; // position of the last common token
        std::int64_t cluster = -1;
        const std::size_t before = sample.a.size();
        for (std::int64_t begin = 0; begin < tokens; begin += page) {
            if (stop.stop_requested()) {
                throw Cancelled();
            }
            const std::int64_t end = std::min(begin + page, tokens);
            // One more for the target of the last.
            const TokenColumns a = trace_a.tokens(run_a.id, number, begin, end + 1);
            const TokenColumns b = trace_b.tokens(run_b.id, number, begin, end + 1);
            for (std::size_t i = 0; i < static_cast<std::size_t>(end - begin); ++i) {
                const std::int64_t position = begin + static_cast<std::int64_t>(i);
                const bool in_a = !std::isnan(a.nll[i]);
                const bool in_b = !std::isnan(b.nll[i]);
                const bool targets = i + 1 < a.size() && i + 1 < b.size();
                if (a.id[i] != b.id[i] || (targets && a.id[i + 1] != b.id[i + 1])) {
                    const std::size_t at = a.id[i] != b.id[i] ? i : i + 1;
                    throw InputError(named(trace_a, run_a) + " and " + named(trace_b, run_b) +
                                     ": expected the same tokens, found " + std::to_string(a.id[at]) +
                                     " and " + std::to_string(b.id[at]) + " at token " +
                                     std::to_string(begin + static_cast<std::int64_t>(at)) + " of sequence " +
                                     std::to_string(number) +
                                     "; record both on the same text with the same tokenizer.");
                }
                if (!in_a || !in_b) {
                    continue;
                }
                cluster = cluster < 0 ? clusters.of(sequences_a[s], sequences_b[s], both) : cluster;
                sample.layout.add(cluster, last + 1 == position);
                last = position;
                sample.a.push_back(a.nll[i]);
                sample.b.push_back(b.nll[i]);
                sample.right_a.push_back(a.rank[i] == 1 ? 1 : 0);
                sample.right_b.push_back(b.rank[i] == 1 ? 1 : 0);
                sample.bytes.push_back(i + 1 < a.size() ? target_bytes(a, i) : target_bytes(b, i));
            }
            read += end - begin;
            if (progress) {
                progress({"reading", read, std::min(run_a.tokens, run_b.tokens), "tokens"});
            }
        }
        sample.sequences += sample.a.size() > before;
    }
    const auto count = static_cast<std::int64_t>(sample.a.size());
    const auto rest = [&](const std::vector<SequenceInfo>& sequences) {
        std::int64_t scored = 0;
        for (const SequenceInfo& sequence : sequences) {
            scored += sequence.scored_tokens;
        }
        return std::max<std::int64_t>(0, scored - count);
    };
    sample.only_a = rest(sequences_a);
    sample.only_b = rest(sequences_b);
    if (sample.only_a > 0 || sample.only_b > 0) {
        sample.notices.push_back("Only the " + std::to_string(count) +
                                 " tokens that both runs scored are compared; " +
                                 std::to_string(sample.only_a) + " of " + run_a.name + " and " +
                                 std::to_string(sample.only_b) + " of " + run_b.name + " are left out.");
    }
    for (const RunInfo* run : {&run_a, &run_b}) {
        if (!run->complete) {
            sample.notices.push_back("Run " + run->name + " is partial.");
        }
    }
    if (run_a.scoring != run_b.scoring) {
        sample.notices.push_back("The runs were scored in different ways: " + run_a.name + " " +
                                 run_a.scoring + ", " + run_b.name + " " + run_b.scoring + ".");
    }
    if (count == 0) {
        throw InputError(named(trace_a, run_a) + " and " + named(trace_b, run_b) +
                         ": expected tokens that both scored, found none; let both recordings get further.");
    }
    return sample;
}

namespace {

/// The sums that everything said of a pair is made from, and what each column holds.
class PairedColumns {
public:
    // x, y, xx, yy, xy of the centred values, the same of their centred and scaled ranks, bytes; weights by
    // document: x, y, one, bits per byte of both; tokens that only one gets right.
    static constexpr std::size_t ranks = 5;
    static constexpr std::size_t bytes = 10;
    static constexpr std::size_t document_a = 11;
    static constexpr std::size_t document_b = 12;
    static constexpr std::size_t document = 13;
    static constexpr std::size_t document_rate_a = 14;
    static constexpr std::size_t document_rate_b = 15;
    static constexpr std::size_t flips = 16; ///< only B right less only A right
    static constexpr std::size_t width = 17;

    explicit PairedColumns(const PairedSample& sample)
        : mean_a(mean(sample.a)), mean_b(mean(sample.b)), sums_(make(sample, mean_a, mean_b)) {}

    [[nodiscard]] const PrefixSums& sums() const { return sums_; }

    double mean_a, mean_b;

private:
    static PrefixSums make(const PairedSample& sample, double mean_a, double mean_b);
    PrefixSums sums_;
};

PrefixSums PairedColumns::make(const PairedSample& sample, double mean_a, double mean_b) {
    const std::size_t n = sample.a.size();
    const std::vector<double> rank_a = average_ranks(sample.a);
    const std::vector<double> rank_b = average_ranks(sample.b);
    const double mean_rank = (static_cast<double>(n) + 1) / 2;
    std::vector<double> document_tokens(static_cast<std::size_t>(sample.layout.clusters()));
    std::vector<double> document_bytes(document_tokens.size());
    const auto for_each_token = [&](auto use) {
        std::size_t i = 0;
        for (std::size_t s = 0; s < sample.layout.stretches.size(); ++s) {
            for (std::int64_t t = 0; t < sample.layout.stretches[s] && i < n; ++t, ++i) {
                use(i, static_cast<std::size_t>(sample.layout.cluster_of[s]));
            }
        }
    };
    for_each_token([&](std::size_t i, std::size_t cluster) {
        document_tokens[cluster] += 1;
        document_bytes[cluster] += sample.bytes[i];
    });
    std::vector<double> columns(n * width);
    const auto put = [&](double* to, double x, double y) {
        to[0] = x;
        to[1] = y;
        to[2] = x * x;
        to[3] = y * y;
        to[4] = x * y;
    };
    const bool flipped = sample.right_a.size() == n && sample.right_b.size() == n;
    for_each_token([&](std::size_t i, std::size_t cluster) {
        double* row = columns.data() + i * width;
        put(row, sample.a[i] - mean_a, sample.b[i] - mean_b);
        put(row + ranks, (rank_a[i] - mean_rank) / static_cast<double>(n),
            (rank_b[i] - mean_rank) / static_cast<double>(n));
        row[bytes] = sample.bytes[i];
        row[document_a] = row[0] / document_tokens[cluster];
        row[document_b] = row[1] / document_tokens[cluster];
        row[document] = 1 / document_tokens[cluster];
        if (document_bytes[cluster] > 0) {
            row[document_rate_a] = sample.a[i] / document_bytes[cluster] / std::numbers::ln2;
            row[document_rate_b] = sample.b[i] / document_bytes[cluster] / std::numbers::ln2;
        }
        row[flips] =
            flipped ? static_cast<double>(sample.right_b[i]) - static_cast<double>(sample.right_a[i]) : 0;
    });
    return {columns, width, sample.layout};
}

/// Mean over documents of what a column adds up to in each.
Statistic document_mean(std::size_t column, double centre = 0) {
    return [=](std::span<const double> sums, std::int64_t) {
        return centre + sums[column] / sums[PairedColumns::document];
    };
}

Statistic minus(Statistic b, Statistic a) {
    return
        [=](std::span<const double> sums, std::int64_t tokens) { return b(sums, tokens) - a(sums, tokens); };
}

bool every_document_has_bytes(const PairedSample& sample) {
    std::vector<double> bytes(static_cast<std::size_t>(sample.layout.clusters()));
    std::size_t i = 0;
    for (std::size_t s = 0; s < sample.layout.stretches.size(); ++s) {
        for (std::int64_t t = 0; t < sample.layout.stretches[s]; ++t, ++i) {
            bytes[static_cast<std::size_t>(sample.layout.cluster_of[s])] += sample.bytes[i];
        }
    }
    return std::all_of(bytes.begin(), bytes.end(), [](double one) { return one > 0; });
}

Flips flips_of(const PairedSample& sample, const Estimate& difference, const UnitSums& units) {
    Flips flips;
    flips.tokens = static_cast<std::int64_t>(sample.right_a.size());
    for (std::size_t i = 0; i < sample.right_a.size(); ++i) {
        const bool a = sample.right_a[i] != 0;
        const bool b = sample.right_b[i] != 0;
        ++(a ? (b ? flips.both_right : flips.only_a) : (b ? flips.only_b : flips.both_wrong));
    }
    flips.difference = difference;
    flips.p = sign_flip_p(units.column(PairedColumns::flips));
    flips.mcnemar = mcnemar_p(flips.only_a, flips.only_b);
    return flips;
}

} // namespace

PairedComparison compare_paired(const PairedSample& sample, const BootstrapOptions& options,
                                std::optional<double> margin) {
    const std::size_t n = sample.a.size();
    if (n == 0) {
        throw InputError("expected tokens that both runs scored, found none.");
    }
    using Columns = PairedColumns;
    const Columns columns(sample);
    std::vector<double> apart(n);
    std::int64_t better = 0;
    std::int64_t equal = 0;
    for (std::size_t i = 0; i < n; ++i) {
        apart[i] = sample.b[i] - sample.a[i];
        better += sample.b[i] < sample.a[i];
        equal += sample.b[i] == sample.a[i];
    }
    PairedComparison result;
    const std::span<const double> series[] = {sample.a, sample.b, apart};
    result.resampling = choose_resampling(sample.layout, series, options);
    const double mean_difference = columns.mean_b - columns.mean_a;
    const double none = std::numeric_limits<double>::quiet_NaN();
    const double documents_with_text = every_document_has_bytes(sample) ? 0 : none;
    const Statistic rate_a = bits_per_byte(0, Columns::bytes, columns.mean_a);
    const Statistic rate_b = bits_per_byte(1, Columns::bytes, columns.mean_b);
    const Statistic document_a = document_mean(Columns::document_a, columns.mean_a);
    const Statistic document_b = document_mean(Columns::document_b, columns.mean_b);
    const Statistic document_rate_a = document_mean(Columns::document_rate_a, documents_with_text);
    const Statistic document_rate_b = document_mean(Columns::document_rate_b, documents_with_text);
    const std::vector<std::pair<Estimate*, Statistic>> wanted = {
        {&result.mean_a, mean_of(0, columns.mean_a)},
        {&result.mean_b, mean_of(1, columns.mean_b)},
        {&result.difference,
         [=](std::span<const double> s, std::int64_t tokens) {
             return mean_difference + (s[1] - s[0]) / static_cast<double>(tokens);
         }},
        {&result.bits_per_byte_a, rate_a},
        {&result.bits_per_byte_b, rate_b},
        {&result.bits_per_byte_difference, minus(rate_b, rate_a)},
        {&result.documents.a, document_a},
        {&result.documents.b, document_b},
        {&result.documents.difference, minus(document_b, document_a)},
        {&result.documents.bits_per_byte_a, document_rate_a},
        {&result.documents.bits_per_byte_b, document_rate_b},
        {&result.documents.bits_per_byte_difference, minus(document_rate_b, document_rate_a)},
        {&result.pearson, correlation(0)},
        {&result.spearman, correlation(Columns::ranks)},
    };
    std::vector<Statistic> statistics;
    for (const auto& [to, statistic] : wanted) {
        statistics.push_back(statistic);
    }
    statistics.push_back(mean_of(Columns::flips));
    const std::vector<Estimate> estimates =
        bootstrap(columns.sums(), statistics, result.resampling.apply(options));
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        *wanted[i].first = estimates[i];
    }
    result.tokens = static_cast<std::int64_t>(n);
    result.perplexity_a = exponential(result.mean_a);
    result.perplexity_b = exponential(result.mean_b);
    result.perplexity_ratio = exponential(result.difference);
    result.share_b_better = static_cast<double>(better) / static_cast<double>(n);
    result.share_equal = static_cast<double>(equal) / static_cast<double>(n);

    const UnitSums units = unit_sums(columns.sums(), result.resampling);
    std::vector<double> differences = units.column(1);
    const std::vector<double> of_a = units.column(0);
    for (std::size_t u = 0; u < differences.size(); ++u) {
        differences[u] += mean_difference * units.tokens[u] - of_a[u];
    }
    result.p = equal == static_cast<std::int64_t>(n) ? 1 : sign_flip_p(differences);
    if (margin) {
        result.equivalence = equivalence_test(differences, units.tokens, *margin, (1 - options.level));
    }
    if (sample.right_a.size() == n && sample.right_b.size() == n) {
        result.flips = flips_of(sample, estimates.back(), units);
    }
    result.notices = sample.notices;
    const std::vector<std::string> about = result.resampling.notices();
    result.notices.insert(result.notices.end(), about.begin(), about.end());
    if (equal == static_cast<std::int64_t>(n)) {
        result.notices.emplace_back("Every token has the same NLL in both: the runs are the same.");
    }
    return result;
}

RunEstimate estimate_run(const TraceReader& trace, const RunInfo& run, const BootstrapOptions& options,
                         bool sensitivity) {
    constexpr std::size_t width = 5; // nll, bytes, steps; nll and one by document
    std::vector<double> nll, bytes, steps;
    TokenLayout layout;
    ClusterNumbers clusters;
    std::int64_t read = 0;
    for (const SequenceInfo& sequence : trace.sequences(run.id)) {
        std::int64_t last = -2;
        std::int64_t cluster = -1;
        for (std::int64_t begin = 0; begin < sequence.tokens; begin += page) {
            if (options.stop.stop_requested()) {
                throw Cancelled();
            }
            const std::int64_t end = std::min(begin + page, sequence.tokens);
            const TokenColumns tokens = trace.tokens(run.id, sequence.index, begin, end + 1);
            for (std::size_t i = 0; i < static_cast<std::size_t>(end - begin); ++i) {
                const std::int64_t position = begin + static_cast<std::int64_t>(i);
                if (std::isnan(tokens.nll[i])) {
                    continue;
                }
                cluster = cluster < 0 ? clusters.of(sequence) : cluster;
                layout.add(cluster, last + 1 == position);
                last = position;
                nll.push_back(double{tokens.nll[i]});
                bytes.push_back(target_bytes(tokens, i));
                steps.push_back(static_cast<double>(tokens.steps[i]));
            }
            read += end - begin;
            if (options.progress) {
                options.progress({"reading", read, run.tokens, "tokens"});
            }
        }
    }
    RunEstimate result;
    result.scored_tokens = static_cast<std::int64_t>(nll.size());
    if (result.scored_tokens == 0) {
        throw InputError(named(trace, run) +
                         ": expected scored tokens, found none; let the recording get further.");
    }
    std::vector<double> document_tokens(static_cast<std::size_t>(layout.clusters()));
    for (std::size_t s = 0; s < layout.stretches.size(); ++s) {
        document_tokens[static_cast<std::size_t>(layout.cluster_of[s])] +=
            static_cast<double>(layout.stretches[s]);
    }
    std::vector<double> columns;
    columns.reserve(nll.size() * width);
    std::size_t i = 0;
    for (std::size_t s = 0; s < layout.stretches.size(); ++s) {
        const double weight = 1 / document_tokens[static_cast<std::size_t>(layout.cluster_of[s])];
        for (std::int64_t t = 0; t < layout.stretches[s]; ++t, ++i) {
            columns.insert(columns.end(), {nll[i], bytes[i], steps[i], nll[i] * weight, weight});
        }
    }
    const std::span<const double> series[] = {nll, steps};
    result.resampling = choose_resampling(layout, series, options);
    const std::vector<Statistic> statistics = {
        mean_of(0), bits_per_byte(0, 1), mean_of(2),
        [](std::span<const double> sums, std::int64_t) { return sums[3] / sums[4]; }};
    const std::vector<Estimate> estimates =
        bootstrap(PrefixSums(columns, width, layout), statistics, result.resampling.apply(options));
    result.mean_nll = estimates[0];
    result.perplexity = exponential(estimates[0]);
    result.bits_per_byte = estimates[1];
    result.mean_steps = estimates[2];
    result.document_mean_nll = estimates[3];
    if (sensitivity) {
        result.by_block = block_sensitivity(nll, layout, options);
    }
    result.notices = result.resampling.notices();
    if (!run.complete) {
        result.notices.insert(result.notices.begin(), "Run " + run.name + " is partial.");
    }
    return result;
}

} // namespace ponderscope
