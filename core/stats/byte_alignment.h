// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/stats/paired.h"

#include <cstdint>
#include <span>
#include <vector>

namespace ponderscope {

/// The target of a scored prediction: its bytes in the text and what it cost.
struct ScoredSpan {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    double nll = 0;   ///< nats
    double steps = 0; ///< of the token that predicts it
};

/// The smallest stretches of text at whose ends both tokenizations have a boundary.
struct AlignedSegment {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    double nll_a = 0; ///< nats, the sum over A's tokens in the segment
    double nll_b = 0;
    double steps_a = 0;   ///< mean over A's tokens that predict the segment
    bool follows = false; ///< begins at the end of the segment before: both belong to one stretch
};

/// Segments that both runs scored without a gap. Spans are sorted and do not overlap; a segment with a gap in
/// one of the runs (an unscored token, the beginning of the text) is left out. Tokens without bytes (end of
/// text) cost what they cost: they join the segment that they stand in or before.
std::vector<AlignedSegment> align_by_bytes(std::span<const ScoredSpan> a, std::span<const ScoredSpan> b);

/// Two runs of one text with different tokenizers, compared on the bytes that both scored. A PairedSample
/// whose units are aligned segments: `a`, `b` nats a segment, `bytes` its length, `steps_a` means. Only its
/// bits per byte are meaningful. InputError: different texts, runs without text, nothing in common.
PairedSample pair_runs_by_bytes(const TraceReader& trace_a, const RunInfo& run_a, const TraceReader& trace_b,
                                const RunInfo& run_b, const ReadOptions& options = {});

} // namespace ponderscope
