// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/live_view.h"

namespace ponderscope {

void LiveView::setOnScreen(bool on) {
    if (on == onScreen_) {
        return;
    }
    onScreen_ = on;
    screenChanged();
    if (on && due_) {
        changed();
    }
}

void LiveView::changed() {
    due_ = !onScreen_;
    if (onScreen_) {
        renew();
    }
}

void LiveView::follow(QObject& self, const ViewContext& context, Follows whom) {
    const Selection* selection = &context.selection;
    QObject::connect(selection, &Selection::runsChanged, &self, [this] { changed(); });
    const auto of_trace = [this, selection, whom](const QString& trace) {
        if (whom == Follows::all || trace == selection->runA().trace ||
            (whom == Follows::both && trace == selection->runB().trace)) {
            changed();
        }
    };
    QObject::connect(&context.data, &TraceData::traceOpened, &self, of_trace);
    QObject::connect(&context.data, &TraceData::traceClosed, &self, of_trace);
    if (whom == Follows::all) {
        QObject::connect(&context.data, &TraceData::traceChanged, &self, of_trace);
        return;
    }
    QObject::connect(
        &context.data, &TraceData::runChanged, &self, [this, selection, whom](const RunKey& run) {
            if (run == selection->runA() || (whom == Follows::both && run == selection->runB())) {
                changed();
            }
        });
}

} // namespace ponderscope
