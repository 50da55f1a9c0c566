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
    PairedSample sample;
    std::int64_t read = 0;
    for (std::size_t s = 0; s < common; ++s) {
        const auto number = static_cast<std::int64_t>(s);
        const std::int64_t tokens = std::min(sequences_a[s].tokens, sequences_b[s].tokens);
        std::int64_t last = -2; // position of the last common token
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
                if (last + 1 != position) {
                    sample.stretches.push_back(0);
                }
                last = position;
                ++sample.stretches.back();
                sample.a.push_back(a.nll[i]);
                sample.b.push_back(b.nll[i]);
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

PairedComparison compare_paired(const PairedSample& sample, const BootstrapOptions& options) {
    const std::size_t n = sample.a.size();
    if (n == 0) {
        throw InputError("expected tokens that both runs scored, found none.");
    }
    // Columns: x, y, xx, yy, xy of the centred values, the same of their centred and scaled ranks, bytes.
    constexpr std::size_t width = 11;
    constexpr std::size_t ranks_first = 5;
    constexpr std::size_t bytes_column = 10;
    const std::vector<double> rank_a = average_ranks(sample.a);
    const std::vector<double> rank_b = average_ranks(sample.b);
    const double mean_a = mean(sample.a);
    const double mean_b = mean(sample.b);
    const double mean_rank = (static_cast<double>(n) + 1) / 2;
    std::vector<double> columns(n * width);
    const auto put = [&](double* to, double x, double y) {
        to[0] = x;
        to[1] = y;
        to[2] = x * x;
        to[3] = y * y;
        to[4] = x * y;
    };
    std::int64_t better = 0;
    std::int64_t equal = 0;
    for (std::size_t i = 0; i < n; ++i) {
        double* row = columns.data() + i * width;
        row[bytes_column] = sample.bytes[i];
        put(row, sample.a[i] - mean_a, sample.b[i] - mean_b);
        put(row + ranks_first, (rank_a[i] - mean_rank) / static_cast<double>(n),
            (rank_b[i] - mean_rank) / static_cast<double>(n));
        better += sample.b[i] < sample.a[i];
        equal += sample.b[i] == sample.a[i];
    }
    const PrefixSums sums(columns, width, sample.stretches);
    const double mean_difference = mean_b - mean_a;
    const std::vector<Statistic> statistics = {
        mean_of(0, mean_a),
        mean_of(1, mean_b),
        [=](std::span<const double> s, std::int64_t tokens) {
            return mean_difference + (s[1] - s[0]) / static_cast<double>(tokens);
        },
        bits_per_byte(0, bytes_column, mean_a),
        bits_per_byte(1, bytes_column, mean_b),
        correlation(0),
        correlation(ranks_first),
    };
    const std::vector<Estimate> estimates = block_bootstrap(sums, statistics, options);
    PairedComparison result;
    result.tokens = static_cast<std::int64_t>(n);
    result.mean_a = estimates[0];
    result.mean_b = estimates[1];
    result.difference = estimates[2];
    result.perplexity_a = exponential(estimates[0]);
    result.perplexity_b = exponential(estimates[1]);
    result.perplexity_ratio = exponential(estimates[2]);
    result.bits_per_byte_a = estimates[3];
    result.bits_per_byte_b = estimates[4];
    result.pearson = estimates[5];
    result.spearman = estimates[6];
    result.share_b_better = static_cast<double>(better) / static_cast<double>(n);
    result.share_equal = static_cast<double>(equal) / static_cast<double>(n);
    result.notices = sample.notices;
    const std::vector<std::string> about = interval_notices(sample.stretches, options);
    result.notices.insert(result.notices.end(), about.begin(), about.end());
    if (equal == static_cast<std::int64_t>(n)) {
        result.notices.emplace_back("Every token has the same NLL in both: the runs are the same.");
    }
    if (const std::string beside = interval_warning(result.difference, "the difference"); !beside.empty()) {
        result.notices.push_back(beside);
    }
    return result;
}

RunEstimate estimate_run(const TraceReader& trace, const RunInfo& run, const BootstrapOptions& options) {
    constexpr std::size_t width = 3; // nll, bytes, steps
    std::vector<double> columns;
    std::vector<std::int64_t> stretches;
    std::int64_t read = 0;
    for (const SequenceInfo& sequence : trace.sequences(run.id)) {
        std::int64_t last = -2;
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
                if (last + 1 != position) {
                    stretches.push_back(0);
                }
                last = position;
                ++stretches.back();
                columns.insert(columns.end(), {double{tokens.nll[i]}, target_bytes(tokens, i),
                                               static_cast<double>(tokens.steps[i])});
            }
            read += end - begin;
            if (options.progress) {
                options.progress({"reading", read, run.tokens, "tokens"});
            }
        }
    }
    RunEstimate result;
    const PrefixSums sums(columns, width, stretches);
    result.scored_tokens = sums.tokens();
    if (result.scored_tokens == 0) {
        throw InputError(named(trace, run) +
                         ": expected scored tokens, found none; let the recording get further.");
    }
    const std::vector<Statistic> statistics = {mean_of(0), bits_per_byte(0, 1), mean_of(2)};
    const std::vector<Estimate> estimates = block_bootstrap(sums, statistics, options);
    result.mean_nll = estimates[0];
    result.perplexity = exponential(estimates[0]);
    result.bits_per_byte = estimates[1];
    result.mean_steps = estimates[2];
    result.notices = interval_notices(stretches, options);
    if (const std::string beside = interval_warning(result.mean_nll, "the mean NLL"); !beside.empty()) {
        result.notices.push_back(beside);
    }
    if (!run.complete) {
        result.notices.insert(result.notices.begin(), "Run " + run.name + " is partial.");
    }
    return result;
}

} // namespace ponderscope
