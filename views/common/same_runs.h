// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/records.h"

#include <QString>

namespace ponderscope {

using Qt::StringLiterals::operator""_s;

/// A stamp that changes if the run grows, or if another run takes its place. Run numbers and token counts are
/// not enough, because a file that replaces the trace may have the same numbers and counts.
inline QString run_stamp(const RunInfo& run) {
    return u"%1 %2 %3"_s.arg(run.scored_tokens)
        .arg(run.nll_sum, 0, 'g', 17)
        .arg(QString::fromStdString(run.checkpoint_digest));
}

/// Whether both runs have the same text and tokens, so that a comparison by token is possible.
inline bool same_text(const RunInfo& a, const RunInfo& b) {
    return a.text_digest == b.text_digest && a.tokenizer_digest == b.tokenizer_digest;
}

} // namespace ponderscope
