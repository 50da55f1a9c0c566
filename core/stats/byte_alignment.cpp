// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/byte_alignment.h"

#include "core/base/error.h"

#include <algorithm>
#include <cmath>

namespace ponderscope {
namespace {

/// The scored targets of a sequence, in order.
std::vector<ScoredSpan> scored_spans(const TraceReader& trace, const RunInfo& run, std::int64_t sequence,
                                     const std::stop_token& stop) {
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
                spans.push_back({tokens.begin[i + 1], tokens.end[i + 1], tokens.nll[i],
                                 static_cast<double>(tokens.steps[i])});
            }
        }
        if (static_cast<std::int64_t>(tokens.size()) <= page) {
            return spans;
        }
    }
}

/// InputError unless both runs are of one text, which both have. Their names.
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
        AlignedSegment segment{a[i].begin, a[i].begin};
        const std::size_t first_a = i;
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
        for (std::size_t token = first_a; token < i; ++token) {
            segment.steps_a += a[token].steps / static_cast<double>(i - first_a);
        }
        segment.end = end_a;
        segment.follows = !segments.empty() && segments.back().end == segment.begin;
        segments.push_back(segment);
    }
    return segments;
}

PairedSample pair_runs_by_bytes(const TraceReader& trace_a, const RunInfo& run_a, const TraceReader& trace_b,
                                const RunInfo& run_b, const ReadOptions& options) {
    const std::string both = check_one_text(trace_a, run_a, trace_b, run_b);
    const std::vector<SequenceInfo> sequences_a = trace_a.sequences(run_a.id);
    const std::vector<SequenceInfo> sequences_b = trace_b.sequences(run_b.id);
    const std::size_t common = std::min(sequences_a.size(), sequences_b.size());
    PairedSample sample;
    ClusterNumbers clusters;
    double bytes = 0;
    for (std::size_t s = 0; s < common; ++s) {
        const auto number = static_cast<std::int64_t>(s);
        for (const AlignedSegment& segment :
             align_by_bytes(scored_spans(trace_a, run_a, number, options.stop),
                            scored_spans(trace_b, run_b, number, options.stop))) {
            sample.layout.add(clusters.of(sequences_a[s], sequences_b[s], both), segment.follows);
            sample.a.push_back(segment.nll_a);
            sample.b.push_back(segment.nll_b);
            sample.steps_a.push_back(segment.steps_a);
            sample.bytes.push_back(static_cast<double>(segment.end - segment.begin));
            bytes += sample.bytes.back();
        }
        if (options.progress) {
            options.progress({"reading", number + 1, static_cast<std::int64_t>(common), "sequences"});
        }
    }
    if (sample.a.empty()) {
        throw InputError(
            both +
            ": expected text that both scored, found none; wait until both recordings have more tokens.");
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

} // namespace ponderscope
