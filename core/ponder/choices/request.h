// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/records.h"

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ponderscope {

/// The signals that a run records. `basic`: the signals that need no extra computation. `steps`: also the
/// read-out after every step, which costs a head product for each step and changes no result. `nll`: only
/// NLL, rank, steps and FLOPs, for a perplexity or as the baseline for the cost of recording.
enum class RecordLevel : std::uint8_t { basic, steps, nll };

/// Consecutive tokens of one sequence that the model sees at once. A token's target is the next id.
struct Window {
    std::span<const std::int32_t> ids;
    std::int64_t report_begin = 0; ///< ids [report_begin, report_end) are read out; the others are context
    std::int64_t report_end = 0;
    // The window's location in its text, for start states, patches and halting rules that read positions.
    std::int64_t sequence = -1; ///< number of the sequence in the run; -1: the window's index in the call
    std::int64_t first = 0;     ///< position of ids[0] in the sequence
    std::int64_t sequence_length = 0; ///< tokens of the sequence; 0: tokens of the window
    std::int32_t next = -1;           ///< id after the window, the last token's target; -1: none
};

/// Appends rows [first, first + count) of \p chunk to \p all, which is empty or has the same type and shape.
void append_rows(SignalChunk& all, const SignalChunk& chunk, std::size_t first, std::size_t count);

/// The results of a window's reported tokens. `tokens.begin/end` are empty, because only the caller knows the
/// byte spans.
struct WindowResult {
    TokenColumns tokens;
    std::vector<std::pair<std::string, SignalChunk>> signals;

    /// Appends rows [first, first + count) of another result.
    void append(const WindowResult& other, std::size_t first, std::size_t count);
};

/// The location of a state: after a layer at a step of a token, or at the end of the step.
struct StatePlace {
    static constexpr std::int64_t end_of_step = -1; ///< value of `layer`
    std::int64_t sequence = 0;                      ///< number in the run, from 0
    std::int64_t token = 0;                         ///< position in the sequence
    std::int64_t step = 0;
    std::int64_t layer = end_of_step;
    bool operator==(const StatePlace&) const = default;
};

/// "sequence 0, token 12, step 1, layer 3".
std::string to_string(const StatePlace& place);

/// A state that replaces a computed state. All later computation uses the new state.
struct StatePatch {
    StatePlace to;
    std::vector<float> state;
};

} // namespace ponderscope
