// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/records.h"

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ponderscope {

/// How much a run records, and what it costs: `basic` is the method's own computation; `steps` adds read-outs
/// that are made only for the record (head products of their own, no change of any result). `nll` records
/// only each token's NLL, rank, steps and FLOPs: enough for a perplexity, and the baseline for the cost of
/// recording.
enum class RecordLevel : std::uint8_t { basic, steps, nll };

/// Consecutive tokens of one sequence that the model sees at once. Position 0 is ids[0].
struct Window {
    std::span<const std::int32_t> ids;
    std::int64_t report_begin =
        0; ///< the window's tokens [report_begin, report_end) are read out; the others are context only
    std::int64_t report_end = 0; ///< a token's target is the next id of the window; that of the last is `next`
    // The place of the window in its text; only halting rules that look at places read it.
    std::int64_t sequence = -1;       ///< number of its sequence in the run; -1: the window's own in the call
    std::int64_t first = 0;           ///< position of ids[0] in the sequence
    std::int64_t sequence_length = 0; ///< tokens of the sequence; 0: the window's
    std::int32_t next = -1;           ///< the id behind the window, which its last token predicts; -1: none
};

/// The results of a window's reported tokens. `tokens.begin/end` are empty: the caller knows the spans.
struct WindowResult {
    TokenColumns tokens;
    std::vector<std::pair<std::string, SignalChunk>> signals;

    /// Appends rows [first, first + count) of another result.
    void append(const WindowResult& other, std::size_t first, std::size_t count);
};

} // namespace ponderscope
