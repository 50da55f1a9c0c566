// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/records.h"

#include <QString>

namespace ponderscope {

using Qt::StringLiterals::operator""_s;

/// Another one where a run holds other numbers: more tokens, or those of a run that took its place. A file
/// that was replaced has the same numbers of runs, and the same text the same number of tokens.
inline QString run_stamp(const RunInfo& run) {
    return u"%1 %2 %3"_s.arg(run.scored_tokens)
        .arg(run.nll_sum, 0, 'g', 17)
        .arg(QString::fromStdString(run.checkpoint_digest));
}

/// Runs that read the same text, cut in the same way: only those can be compared token by token.
inline bool same_text(const RunInfo& a, const RunInfo& b) {
    return a.text_digest == b.text_digest && a.tokenizer_digest == b.tokenizer_digest;
}

} // namespace ponderscope
