// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/selection.h"

namespace ponderscope {

void Selection::setSequence(qint64 sequence) {
    if (sequence == sequence_) {
        return;
    }
    sequence_ = sequence;
    // First the sequence's signal, so that listeners never look up a token of the old sequence.
    const bool hadHover = hover_ != -1;
    const bool hadToken = token_ != -1;
    hover_ = -1;
    token_ = -1;
    Q_EMIT sequenceChanged(sequence_);
    if (hadHover) {
        Q_EMIT hoverChanged(-1);
    }
    if (hadToken) {
        Q_EMIT tokenChanged(-1);
    }
}

} // namespace ponderscope
