// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/records.h"

#include <QString>

namespace ponderscope {

using Qt::StringLiterals::operator""_s;

/// A stamp that changes with the contents of the run: if the run has more tokens, or if another run took its
/// place. (Run numbers and token counts are not enough: a replaced file can have the same.)
inline QString run_stamp(const RunInfo& run) {
    return u"%1 %2 %3"_s.arg(run.scored_tokens)
        .arg(run.nll_sum, 0, 'g', 17)
        .arg(QString::fromStdString(run.checkpoint_digest));
}

/// Whether both runs read the same text with the same tokens, so that they can be compared token by token.
inline bool same_text(const RunInfo& a, const RunInfo& b) {
    return a.text_digest == b.text_digest && a.tokenizer_digest == b.tokenizer_digest;
}

} // namespace ponderscope
