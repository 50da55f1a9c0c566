// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/byte_alignment.h"

#include "core/base/error.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace ponderscope {
namespace {

float nll_of(const TokenColumns& tokens, std::size_t i) {
    return tokens.nll[i];
}

/// The scored targets of a sequence, in order, each with a value of the token that predicts it.
template <typename Value = decltype(&nll_of)>
std::vector<ScoredSpan> scored_spans(const TraceReader& trace, const RunInfo& run, std::int64_t sequence,
                                     const std::stop_token& stop, Value value = nll_of) {
    constexpr std::int64_t page = 1 << 16;
    std::vector<ScoredSpan> spans;
    for (std::int64_t begin = 0;; begin += page) {
        if (stop.stop_requested()) {
            throw Cancelled();
        }
        const TokenColumns tokens = trace.tokens(run.id, sequence, begin, begin + page + 1);
        const auto here = std::min<std::size_t>(tokens.size(), page);
        for (std::size_t i = 0; i < here && i + 1 < tokens.size(); ++i) {
            if (!std::isnan(tokens.nll[i])) {
                spans.push_back(
                    {tokens.begin[i + 1], tokens.end[i + 1], static_cast<double>(value(tokens, i))});
            }
        }
        if (static_cast<std::int64_t>(tokens.size()) <= page) {
            return spans;
        }
    }
}

/// InputError unless both runs are of one text, which both have.
std::string check_one_text(const TraceReader& trace_a, const RunInfo& run_a, const TraceReader& trace_b,
                           const RunInfo& run_b) {
    std::string both = trace_a.short_name_of(run_a) + " and " + trace_b.short_name_of(run_b);
    if (run_a.text_digest != run_b.text_digest) {
        throw InputError(both + ": expected two runs of one text, found runs of " + run_a.text_source +
                         " and of " + run_b.text_source + "; record both on the same text.");
    }
    if (run_a.scored_bytes == 0 || run_b.scored_bytes == 0) {
        throw InputError(both +
                         ": expected runs with their text, so that tokens of different tokenizers can be "
                         "aligned by bytes, found token ids only; record both with --text.");
    }
    return both;
}

} // namespace

std::vector<AlignedSegment> align_by_bytes(std::span<const ScoredSpan> a, std::span<const ScoredSpan> b) {
    std::vector<AlignedSegment> segments;
    std::size_t i = 0;
    std::size_t j = 0;
    while (i < a.size() && j < b.size()) {
        // Both must begin at one byte.
        if (a[i].begin != b[j].begin) {
            (a[i].begin < b[j].begin ? i : j) += 1;
            continue;
        }
        AlignedSegment segment{a[i].begin, a[i].begin, 0, 0, false};
        std::uint64_t end_a = segment.begin;
        std::uint64_t end_b = segment.begin;
        bool sound = true;
        // Takes tokens of whoever is behind, until both end at one byte. A run with a gap breaks the segment.
        do {
            const bool take_a = end_a <= end_b;
            std::span<const ScoredSpan> spans = take_a ? a : b;
            std::size_t& next = take_a ? i : j;
            std::uint64_t& end = take_a ? end_a : end_b;
            if (next >= spans.size() || spans[next].begin != end) {
                sound = false;
                break;
            }
            (take_a ? segment.nll_a : segment.nll_b) += spans[next].nll;
            end = spans[next].end;
            ++next;
        } while (end_a != end_b || end_b == segment.begin);
        if (!sound) {
            // The rest of the broken stretch cannot be told apart from what follows the gap: both go on
            // behind it.
            const std::uint64_t from = std::max(end_a, end_b);
            while (i < a.size() && a[i].begin < from) {
                ++i;
            }
            while (j < b.size() && b[j].begin < from) {
                ++j;
            }
            continue;
        }
        // Tokens without bytes at the end belong here.
        for (; i < a.size() && a[i].begin == end_a && a[i].end == end_a; ++i) {
            segment.nll_a += a[i].nll;
        }
        for (; j < b.size() && b[j].begin == end_b && b[j].end == end_b; ++j) {
            segment.nll_b += b[j].nll;
        }
        segment.end = end_a;
        segment.follows = !segments.empty() && segments.back().end == segment.begin;
        segments.push_back(segment);
    }
    return segments;
}

PairedSample pair_runs_by_bytes(const TraceReader& trace_a, const RunInfo& run_a, const TraceReader& trace_b,
                                const RunInfo& run_b, const ProgressSink& progress,
                                const std::stop_token& stop) {
    const std::string both = check_one_text(trace_a, run_a, trace_b, run_b);
    const std::vector<SequenceInfo> sequences_a = trace_a.sequences(run_a.id);
    const std::vector<SequenceInfo> sequences_b = trace_b.sequences(run_b.id);
    const std::size_t common = std::min(sequences_a.size(), sequences_b.size());
    PairedSample sample;
    ClusterNumbers clusters;
    double bytes = 0;
    for (std::size_t s = 0; s < common; ++s) {
        const auto number = static_cast<std::int64_t>(s);
        const std::size_t before = sample.a.size();
        for (const AlignedSegment& segment : align_by_bytes(scored_spans(trace_a, run_a, number, stop),
                                                            scored_spans(trace_b, run_b, number, stop))) {
            sample.layout.add(clusters.of(sequences_a[s], sequences_b[s], both), segment.follows);
            sample.a.push_back(segment.nll_a);
            sample.b.push_back(segment.nll_b);
            sample.bytes.push_back(static_cast<double>(segment.end - segment.begin));
            bytes += sample.bytes.back();
        }
        sample.sequences += sample.a.size() > before;
        if (progress) {
            progress({"reading", number + 1, static_cast<std::int64_t>(common), "sequences"});
        }
    }
    if (sample.a.empty()) {
        throw InputError(both +
                         ": expected text that both scored, found none; let both recordings get further.");
    }
    sample.notices.push_back("The runs have different tokenizers: they are compared on " +
                             std::to_string(static_cast<std::int64_t>(bytes)) + " bytes in " +
                             std::to_string(sample.a.size()) +
                             " stretches of text at whose ends both have a token boundary.");
    for (const RunInfo* run : {&run_a, &run_b}) {
        if (!run->complete) {
            sample.notices.push_back("Run " + run->name + " is partial.");
        }
        const double missing = static_cast<double>(run->scored_bytes) - bytes;
        if (missing > 0) {
            sample.notices.push_back(std::to_string(static_cast<std::int64_t>(missing)) + " bytes of " +
                                     run->name + " are left out: the other did not score them.");
        }
    }
    return sample;
}

AlignedSteps align_steps_by_bytes(const TraceReader& trace_a, const RunInfo& run_a,
                                  const TraceReader& trace_b, const RunInfo& run_b,
                                  const std::stop_token& stop) {
    const std::string both = check_one_text(trace_a, run_a, trace_b, run_b);
    const auto steps_of = [](const TokenColumns& tokens, std::size_t i) { return tokens.steps[i]; };
    const auto one_each = [](const TokenColumns&, std::size_t) { return 1; };
    const std::vector<SequenceInfo> sequences_a = trace_a.sequences(run_a.id);
    const std::vector<SequenceInfo> sequences_b = trace_b.sequences(run_b.id);
    const std::size_t common = std::min(sequences_a.size(), sequences_b.size());
    ClusterNumbers clusters;
    AlignedSteps result;
    for (std::size_t s = 0; s < common; ++s) {
        const auto number = static_cast<std::int64_t>(s);
        const std::vector<ScoredSpan> surprise = scored_spans(trace_b, run_b, number, stop);
        // How spans align does not depend on their values.
        const std::vector<AlignedSegment> steps =
            align_by_bytes(scored_spans(trace_a, run_a, number, stop, steps_of), surprise);
        const std::vector<AlignedSegment> tokens =
            align_by_bytes(scored_spans(trace_a, run_a, number, stop, one_each), surprise);
        for (std::size_t i = 0; i < steps.size(); ++i) {
            result.layout.add(clusters.of(sequences_a[s], sequences_b[s], both), steps[i].follows);
            result.steps.push_back(steps[i].nll_a / tokens[i].nll_a);
            result.nll.push_back(steps[i].nll_b);
        }
    }
    if (result.steps.empty()) {
        throw InputError(both +
                         ": expected text that both scored, found none; let both recordings get further.");
    }
    return result;
}

ByteComparison compare_by_bytes(const PairedSample& sample, const BootstrapOptions& options) {
    const std::size_t n = sample.a.size();
    if (n == 0) {
        throw InputError("expected text that both runs scored, found none.");
    }
    constexpr std::size_t width = 3;
    std::vector<double> columns;
    columns.reserve(n * width);
    ByteComparison result;
    for (std::size_t i = 0; i < n; ++i) {
        columns.insert(columns.end(), {sample.a[i], sample.b[i], sample.bytes[i]});
        result.bytes += static_cast<std::int64_t>(sample.bytes[i]);
    }
    result.segments = static_cast<std::int64_t>(n);
    const auto rate = [](auto nats) -> Statistic {
        return [nats](std::span<const double> sums, std::int64_t) {
            return sums[2] > 0 ? nats(sums) / sums[2] / std::numbers::ln2
                               : std::numeric_limits<double>::quiet_NaN();
        };
    };
    const std::vector<Statistic> statistics{
        rate([](std::span<const double> sums) { return sums[0]; }),
        rate([](std::span<const double> sums) { return sums[1]; }),
        rate([](std::span<const double> sums) { return sums[0] - sums[1]; }),
    };
    std::vector<double> apart;
    for (std::size_t i = 0; i < n; ++i) {
        apart.push_back(sample.a[i] - sample.b[i]);
    }
    const std::span<const double> series[] = {sample.a, sample.b, apart};
    result.resampling = choose_resampling(sample.layout, series, options);
    const PrefixSums sums(columns, width, sample.layout);
    const std::vector<Estimate> estimates = bootstrap(sums, statistics, result.resampling.apply(options));
    result.bits_per_byte_a = estimates[0];
    result.bits_per_byte_b = estimates[1];
    result.difference = estimates[2];
    result.p = sign_flip_p(unit_sums(PrefixSums(apart, 1, sample.layout), result.resampling).column(0));
    result.notices = sample.notices;
    const std::vector<std::string> about = result.resampling.notices();
    result.notices.insert(result.notices.end(), about.begin(), about.end());
    return result;
}

} // namespace ponderscope
