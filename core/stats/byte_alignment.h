// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/stats/paired.h"

#include <cstdint>
#include <span>
#include <vector>

namespace ponderscope {

/// The target of a scored prediction: its bytes in the text, and its NLL and steps.
struct ScoredSpan {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    double nll = 0;   ///< nats
    double steps = 0; ///< steps of the predicting token
};

/// A smallest part of the text with a token boundary of both tokenizations at each end.
struct AlignedSegment {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    double nll_a = 0; ///< nats, summed over A's tokens in the segment
    double nll_b = 0;
    double steps_a = 0;   ///< mean over the tokens of A that predict the segment
    bool follows = false; ///< the segment directly follows the previous one, in the same stretch
};

/// The segments that both runs scored without a gap. Spans are sorted and do not overlap. Segments with a gap
/// in one of the runs (an unscored token, the beginning of the text) are left out. The NLL of tokens without
/// bytes (end of text) counts in the segment that contains or follows them.
std::vector<AlignedSegment> align_by_bytes(std::span<const ScoredSpan> a, std::span<const ScoredSpan> b);

/// Compares two runs of one text with different tokenizers on the bytes that both scored. The units of the
/// PairedSample are aligned segments: `a` and `b` are nats per segment, `bytes` is its length, `steps_a` are
/// means. Only bits per byte are meaningful. InputError: different texts, runs without text, no common bytes.
PairedSample pair_runs_by_bytes(const TraceReader& trace_a, const RunInfo& run_a, const TraceReader& trace_b,
                                const RunInfo& run_b, const ReadOptions& options = {});

} // namespace ponderscope
