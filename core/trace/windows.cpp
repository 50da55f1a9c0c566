// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/windows.h"

#include "core/base/error.h"

#include <algorithm>
#include <string>

namespace ponderscope {

std::vector<WindowSpan> plan_windows(std::int64_t tokens, std::int64_t context, std::int64_t stride) {
    if (context < 1) {
        throw InputError(ErrorId::usage_value, "--context: expected a positive number of tokens, found " +
                                                   std::to_string(context) + ".");
    }
    if (stride < 1 || stride > context) {
        throw InputError(ErrorId::usage_value, "--stride: expected a number from 1 to the context (" +
                                                   std::to_string(context) + "), found " +
                                                   std::to_string(stride) + ".");
    }
    std::vector<WindowSpan> windows;
    std::int64_t reported = 0;
    for (std::int64_t begin = 0; reported < tokens; begin += stride) {
        WindowSpan window;
        window.begin = begin;
        window.end = std::min(begin + context, tokens);
        window.report_begin = reported;
        // If the next window contains this window's last token, it reads out this token, because it contains
        // the token's successor, too.
        const bool next_holds_last = window.end < tokens && begin + stride < window.end;
        window.report_end = next_holds_last ? window.end - 1 : window.end;
        if (window.report_end > window.report_begin) {
            reported = window.report_end;
            windows.push_back(window);
        }
    }
    return windows;
}

} // namespace ponderscope
