// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/selection.h"

namespace ponderscope {

Selection::Selection(QObject* parent) : QObject(parent) {}

void Selection::setRunA(const RunKey& run) {
    if (run == runA_) {
        return;
    }
    runA_ = run;
    Q_EMIT runsChanged();
}

void Selection::setRunB(const RunKey& run) {
    if (run == runB_) {
        return;
    }
    runB_ = run;
    Q_EMIT runsChanged();
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
    if (token < -1) {
        token = -1;
    }
    if (token == token_) {
        return;
    }
    token_ = token;
    Q_EMIT tokenChanged(token_);
}

void Selection::setHover(qint64 token) {
    if (token < -1) {
        token = -1;
    }
    if (token == hover_) {
        return;
    }
    hover_ = token;
    Q_EMIT hoverChanged(hover_);
}

void Selection::setStep(int step) {
    if (step == step_) {
        return;
    }
    step_ = step;
    Q_EMIT stepChanged(step_);
}

void Selection::setLayer(int layer) {
    if (layer == layer_) {
        return;
    }
    layer_ = layer;
    Q_EMIT depthChanged();
}

void Selection::setHead(int head) {
    if (head == head_) {
        return;
    }
    head_ = head;
    Q_EMIT depthChanged();
}

void Selection::setAttribution(Attribution attribution) {
    if (attribution == attribution_) {
        return;
    }
    attribution_ = attribution;
    Q_EMIT attributionChanged();
}

void Selection::setLook(const TextLook& look) {
    if (look == look_) {
        return;
    }
    look_ = look;
    Q_EMIT lookChanged();
}

} // namespace ponderscope
