// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/records.h"

namespace ponderscope {

/// Runs that read the same text, cut in the same way: only those can be compared token by token.
inline bool same_text(const RunInfo& a, const RunInfo& b) {
    return a.text_digest == b.text_digest && a.tokenizer_digest == b.tokenizer_digest;
}

} // namespace ponderscope
