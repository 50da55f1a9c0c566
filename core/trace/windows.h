// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <vector>

namespace ponderscope {

/// One window of a long sequence. Tokens [begin, end) are computed together, and the model sees `begin` at
/// position 0. This window alone reads out tokens [report_begin, report_end). All four members are positions
/// in the sequence.
struct WindowSpan {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::int64_t report_begin = 0;
    std::int64_t report_end = 0;
};

/// The windows of a sequence of \p tokens tokens (strided perplexity). Windows start at 0, stride, 2·stride,
/// … and have \p context tokens. The last window ends with the sequence. A token is read out in the first
/// window that contains the token and its successor. So each token with a predecessor is scored at most once.
/// A token that shares no window with its successor (stride = context) is read out without a target. Every
/// token is read out exactly once. InputError unless 1 <= stride <= context. No windows for 0 tokens.
std::vector<WindowSpan> plan_windows(std::int64_t tokens, std::int64_t context, std::int64_t stride);

} // namespace ponderscope
