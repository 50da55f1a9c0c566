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
    double nll = 0; ///< nats
};

/// The smallest stretches of text at whose ends both tokenizations have a boundary.
struct AlignedSegment {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    double nll_a = 0; ///< nats, the sum over A's tokens in the segment
    double nll_b = 0;
    bool follows = false; ///< begins where the segment before ended: both belong to one stretch
};

/// Segments that both runs scored without a gap. Spans are sorted and do not overlap; where one of the two
/// has a gap (a token that was not scored, the beginning of the text) the segment is left out. Tokens without
/// bytes (end of text) cost what they cost: they join the segment that they stand in or before.
std::vector<AlignedSegment> align_by_bytes(std::span<const ScoredSpan> a, std::span<const ScoredSpan> b);

/// Two runs of one text with different tokenizers, compared on the bytes that both scored. A PairedSample
/// whose units are aligned segments: `a`, `b` nats a segment, `bytes` its length. InputError: different
/// texts, runs without text, nothing in common. compare_by_bytes turns it into bits per byte.
PairedSample pair_runs_by_bytes(const TraceReader& trace_a, const RunInfo& run_a, const TraceReader& trace_b,
                                const RunInfo& run_b, const ProgressSink& progress = {},
                                const std::stop_token& stop = {});

/// Steps of A against what B found surprising, where their tokenizers differ: a value for each aligned
/// segment.
struct AlignedSteps {
    std::vector<double> steps; ///< mean over A's tokens that predict the segment
    std::vector<double> nll;   ///< of B, nats a segment
    TokenLayout layout;        ///< of segments
};
/// Errors as pair_runs_by_bytes.
AlignedSteps align_steps_by_bytes(const TraceReader& trace_a, const RunInfo& run_a,
                                  const TraceReader& trace_b, const RunInfo& run_b,
                                  const std::stop_token& stop = {});

/// Bits per byte of both and their difference, resampled together.
struct ByteComparison {
    std::int64_t segments = 0;
    std::int64_t bytes = 0;
    Estimate bits_per_byte_a;
    Estimate bits_per_byte_b;
    Estimate difference; ///< A - B, bits a byte
    double p = 0;        ///< two-sided, of no difference in nats: sign flips of the units' sums
    Resampling resampling;
    std::vector<std::string> notices;
};
ByteComparison compare_by_bytes(const PairedSample& sample, const BootstrapOptions& options = {});

} // namespace ponderscope
