// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/selection.h"

#include <algorithm>

namespace ponderscope {

Selection::Selection(QObject* parent) : QObject(parent) {}

template <class Value, class... Said>
void Selection::set(Value& own, const Value& value, void (Selection::*changed)(Said...)) {
    if (own == value) {
        return;
    }
    own = value;
    if constexpr (sizeof...(Said) == 0) {
        Q_EMIT(this->*changed)();
    } else {
        Q_EMIT(this->*changed)(own);
    }
}

void Selection::setRunA(const RunKey& run) {
    set(runA_, run, &Selection::runsChanged);
}

void Selection::setRunB(const RunKey& run) {
    set(runB_, run, &Selection::runsChanged);
}

void Selection::setSequence(qint64 sequence) {
    if (sequence == sequence_) {
        return;
    }
    sequence_ = sequence;
    // A token of another sequence means nothing here; listeners hear of the sequence first, so that they
    // never look up an old token.
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

void Selection::setToken(qint64 token) {
    set(token_, std::max<qint64>(token, -1), &Selection::tokenChanged);
}

void Selection::setHover(qint64 token) {
    set(hover_, std::max<qint64>(token, -1), &Selection::hoverChanged);
}

void Selection::setStep(int step) {
    set(step_, step, &Selection::stepChanged);
}

void Selection::setLayer(int layer) {
    set(layer_, layer, &Selection::depthChanged);
}

void Selection::setHead(int head) {
    set(head_, head, &Selection::depthChanged);
}

void Selection::setAttribution(Attribution attribution) {
    set(attribution_, attribution, &Selection::attributionChanged);
}

void Selection::setLook(const TextLook& look) {
    set(look_, look, &Selection::lookChanged);
}

} // namespace ponderscope
