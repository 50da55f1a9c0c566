// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/paired.h"

#include "core/base/error.h"
#include "core/base/not_a_number.h"
#include "core/stats/rank_correlation.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

namespace ponderscope {
namespace {

// Columns of the sums: x, y, xx, yy, xy of the centred values; bytes; +1 if only A is right, -1 if only B is
// right.
constexpr std::size_t byte_column = 5;
constexpr std::size_t flips_column = 6;
constexpr std::size_t pair_columns = 7;

bool ranks_are_known(const PairedSample& sample) {
    return sample.right_a.size() == sample.a.size() && sample.right_b.size() == sample.a.size();
}

PrefixSums paired_sums(const PairedSample& sample, const Resampling& how, double mean_a, double mean_b) {
    const bool flips = ranks_are_known(sample);
    return sums_of(sample.layout, how, pair_columns, [&](std::size_t i, double* row) {
        const double x = sample.a[i] - mean_a;
        const double y = sample.b[i] - mean_b;
        row[0] += x;
        row[1] += y;
        row[2] += x * x;
        row[3] += y * y;
        row[4] += x * y;
        row[byte_column] += sample.bytes[i];
        if (flips) {
            row[flips_column] +=
                static_cast<double>(sample.right_a[i]) - static_cast<double>(sample.right_b[i]);
        }
    });
}

Flips flips_of(const PairedSample& sample, const Estimate& difference, const UnitSums& units) {
    Flips flips;
    flips.tokens = static_cast<std::int64_t>(sample.a.size());
    for (std::size_t i = 0; i < sample.a.size(); ++i) {
        const bool by_a = sample.right_a[i] != 0;
        const bool by_b = sample.right_b[i] != 0;
        ++(by_a ? (by_b ? flips.both_right : flips.only_a) : (by_b ? flips.only_b : flips.both_wrong));
    }
    flips.difference = difference;
    flips.p = sign_flip_p(units.column(flips_column));
    flips.mcnemar = mcnemar_p(flips.only_a, flips.only_b);
    return flips;
}

/// Tokens read at once, so that long sequences do not need more memory.
constexpr std::int64_t tokens_a_page = 1 << 16;

void check_same_text(const TraceReader& trace_a, const RunInfo& a, const TraceReader& trace_b,
                     const RunInfo& b, const std::string& both) {
    if (a.text_digest != b.text_digest) {
        throw InputError(ErrorId::compare_text,
                         both + ": expected two runs of one text, found runs of " +
                             (a.text_source == b.text_source ? "two versions of " + a.text_source
                                                             : a.text_source + " and of " + b.text_source) +
                             "; record both on the same text.");
    }
    if (!have_same_tokens(trace_a, a, trace_b, b)) {
        throw InputError(ErrorId::compare_tokens,
                         both + ": expected two runs of one tokenizer, found two tokenizers; compare the "
                                "bits per byte that ponderscope stats prints for each.");
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

double mean_of_values(const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

Statistic bits_per_byte(std::size_t nll, std::size_t bytes, double centre) {
    return [=](std::span<const double> sums, std::int64_t tokens) {
        const double nats = sums[nll] + centre * static_cast<double>(tokens);
        return sums[bytes] > 0 ? nats / sums[bytes] / std::numbers::ln2 : not_a_number;
    };
}

Estimate exponential(const Estimate& mean) {
    return {std::exp(mean.value), std::exp(mean.low), std::exp(mean.high),
            std::exp(mean.value) * mean.standard_error};
}

PairedComparison compare_paired(const PairedSample& sample, const BootstrapOptions& options) {
    if (sample.a.empty()) {
        throw InputError(ErrorId::run_unscored,
                         "expected tokens that both runs scored, found none; compare runs over one text.");
    }
    const auto n = static_cast<double>(sample.a.size());
    PairedComparison result;
    std::vector<double> apart(sample.a.size());
    std::int64_t equal = 0;
    std::int64_t b_better = 0;
    for (std::size_t i = 0; i < apart.size(); ++i) {
        apart[i] = sample.a[i] - sample.b[i];
        equal += sample.a[i] == sample.b[i];
        b_better += sample.b[i] < sample.a[i];
    }
    const std::span<const double> series[] = {sample.a, sample.b, apart};
    result.resampling = choose_resampling(sample.layout, series, options);
    result.notices = sample.notices;
    const double mean_a = mean_of_values(sample.a);
    const double mean_b = mean_of_values(sample.b);
    const double mean_difference = mean_a - mean_b;
    const Statistic rate_a = bits_per_byte(0, byte_column, mean_a);
    const Statistic rate_b = bits_per_byte(1, byte_column, mean_b);
    Estimate flips_difference;
    const PrefixSums sums = paired_sums(sample, result.resampling, mean_a, mean_b);
    bootstrap(sums,
              {{&result.mean_a, mean_of(0, mean_a)},
               {&result.mean_b, mean_of(1, mean_b)},
               {&result.difference,
                [=](std::span<const double> s, std::int64_t tokens) {
                    return mean_difference + (s[0] - s[1]) / static_cast<double>(tokens);
                }},
               {&result.bits_per_byte_a, rate_a},
               {&result.bits_per_byte_b, rate_b},
               {&result.bits_per_byte_difference, difference_of(rate_a, rate_b)},
               {&result.pearson, correlation(0)},
               {&flips_difference, mean_of(flips_column)}},
              result.resampling.apply(options));
    result.tokens = static_cast<std::int64_t>(sample.a.size());
    result.perplexity_a = exponential(result.mean_a);
    result.perplexity_b = exponential(result.mean_b);
    result.perplexity_ratio = exponential(result.difference);
    result.share_b_better = static_cast<double>(b_better) / n;

    const UnitSums units = unit_sums(sums, result.resampling);
    std::vector<double> differences = units.column(0);
    const std::vector<double> of_b = units.column(1);
    for (std::size_t u = 0; u < differences.size(); ++u) {
        differences[u] += mean_difference * units.tokens[u] - of_b[u];
    }
    const bool same = equal == result.tokens;
    result.p = same ? 1 : sign_flip_p(differences);
    if (ranks_are_known(sample)) {
        result.flips = flips_of(sample, flips_difference, units);
    }
    append_to(result.notices, result.resampling.notices());
    if (same) {
        result.notices.push_back({NoticeId::compare_same_nll,
                                  "Every token has the same NLL in both runs: the runs are the same."});
    }
    return result;
}

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

void PairedSample::append(const PairedSample& more) {
    append_to(a, more.a);
    append_to(b, more.b);
    append_to(bytes, more.bytes);
    append_to(right_a, more.right_a);
    append_to(right_b, more.right_b);
    append_to(steps_a, more.steps_a);
    append_to(steps_b, more.steps_b);
    append_to(flops_b, more.flops_b);
    append_to(places, more.places);
    layout.append(more.layout);
}

PairedSample pair_runs(const TraceReader& trace_a, const RunInfo& run_a, const TraceReader& trace_b,
                       const RunInfo& run_b, const ReadOptions& options) {
    const std::string both = trace_a.short_name_of(run_a) + " and " + trace_b.short_name_of(run_b);
    check_same_text(trace_a, run_a, trace_b, run_b, both);
    const std::vector<SequenceInfo> sequences_a = trace_a.sequences(run_a.id);
    const std::vector<SequenceInfo> sequences_b = trace_b.sequences(run_b.id);
    const std::vector<std::int64_t> lengths = common_tokens(sequences_a, sequences_b);
    ClusterNumbers numbers;
    std::vector<std::int64_t> clusters; // for each common sequence
    for (std::size_t s = 0; s < lengths.size(); ++s) {
        clusters.push_back(numbers.of(sequences_a[s], sequences_b[s], both));
    }
    const auto read = [&](std::span<const TraceReader* const> readers, std::int64_t number,
                          std::int64_t begin, std::int64_t end, PairedSample& into) {
        // One more token, which is the target of the last one.
        const TokenColumns a = readers[0]->tokens(run_a.id, number, begin, end + 1);
        const TokenColumns b = readers[1]->tokens(run_b.id, number, begin, end + 1);
        for (std::size_t i = 0; i < static_cast<std::size_t>(end - begin); ++i) {
            const std::int64_t position = begin + static_cast<std::int64_t>(i);
            const bool targets = i + 1 < a.size() && i + 1 < b.size();
            if (a.id[i] != b.id[i] || (targets && a.id[i + 1] != b.id[i + 1])) {
                const std::size_t at = a.id[i] != b.id[i] ? i : i + 1;
                throw InputError(ErrorId::compare_tokens,
                                 both + ": expected the same tokens, found " + std::to_string(a.id[at]) +
                                     " and " + std::to_string(b.id[at]) + " at token " +
                                     std::to_string(begin + static_cast<std::int64_t>(at)) + " of sequence " +
                                     std::to_string(number) +
                                     "; record both on the same text with the same tokenizer.");
            }
            if (std::isnan(a.nll[i]) || std::isnan(b.nll[i])) {
                continue;
            }
            into.layout.add(clusters[static_cast<std::size_t>(number)], into.last + 1 == position);
            into.last = position;
            into.a.push_back(a.nll[i]);
            into.b.push_back(b.nll[i]);
            if (a.rank[i] > 0 && b.rank[i] > 0) { // 0 at a scored token: unknown
                into.right_a.push_back(a.rank[i] == 1 ? 1 : 0);
                into.right_b.push_back(b.rank[i] == 1 ? 1 : 0);
            }
            into.steps_a.push_back(a.steps[i]);
            into.steps_b.push_back(b.steps[i]);
            into.flops_b.push_back(static_cast<double>(b.flops[i]));
            into.places.push_back({static_cast<std::int32_t>(number), static_cast<std::int32_t>(position)});
            into.bytes.push_back(target_bytes(i + 1 < a.size() ? a : b, i));
        }
    };
    PairedSample all = read_sample<PairedSample>({&trace_a, &trace_b}, lengths, read, options);
    const auto count = static_cast<std::int64_t>(all.a.size());
    const auto rest = [&](const std::vector<SequenceInfo>& sequences) {
        std::int64_t scored = 0;
        for (const SequenceInfo& sequence : sequences) {
            scored += sequence.scored_tokens;
        }
        return std::max<std::int64_t>(0, scored - count);
    };
    all.only_a = rest(sequences_a);
    all.only_b = rest(sequences_b);
    if (all.only_a > 0 || all.only_b > 0) {
        all.notices.push_back({NoticeId::compare_common_tokens,
                               "Only the " + std::to_string(count) +
                                   " tokens that both runs scored are compared; " +
                                   std::to_string(all.only_a) + " of " + run_a.name + " and " +
                                   std::to_string(all.only_b) + " of " + run_b.name + " are left out."});
    }
    for (const RunInfo* run : {&run_a, &run_b}) {
        if (!run->complete) {
            all.notices.push_back({NoticeId::run_partial, "Run " + run->name + " is partial."});
        }
    }
    if (run_a.scoring != run_b.scoring) {
        all.notices.push_back(
            {NoticeId::compare_scoring, "The runs were scored in different ways: " + run_a.name + " " +
                                            run_a.scoring + ", " + run_b.name + " " + run_b.scoring + "."});
    }
    if (count == 0) {
        throw InputError(ErrorId::run_unscored, both + ": expected tokens that both runs scored, found none; "
                                                       "wait until both recordings have more tokens.");
    }
    return all;
}

} // namespace ponderscope
