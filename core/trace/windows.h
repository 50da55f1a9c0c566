// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <vector>

namespace ponderscope {

/// One window of a long sequence: tokens [begin, end) are computed together, position 0 being `begin`; only
/// this window reads out [report_begin, report_end). All four count tokens of the sequence.
struct WindowSpan {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::int64_t report_begin = 0;
    std::int64_t report_end = 0;
};

/// The windows of a sequence of \p tokens tokens (strided perplexity): they start at 0, stride, 2·stride, …
/// and are \p context long; the last one ends with the sequence. A token's prediction is read out in the
/// first window that holds the token and its successor, so that every token with a predecessor is scored at
/// most once; a token whose successor shares no window with it (stride = context) is read out without a
/// target. Every token is read out exactly once. Needs 1 <= stride <= context (InputError otherwise). No
/// tokens: no windows.
std::vector<WindowSpan> plan_windows(std::int64_t tokens, std::int64_t context, std::int64_t stride);

} // namespace ponderscope
