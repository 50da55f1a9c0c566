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

void LiveView::followSequence(QObject& self, const ViewContext& context, const std::function<void()>& read,
                              const std::function<bool(const QString&)>& uses) {
    const Selection* selection = &context.selection;
    QObject::connect(selection, &Selection::sequenceChanged, &self, read);
    QObject::connect(selection, &Selection::attributionChanged, &self, read);
    QObject::connect(&context.data, &TraceData::failed, &self, read);
    const auto is_shown = [selection](const RunKey& run, qint64 sequence) {
        return run == selection->runA() && sequence == selection->sequence();
    };
    QObject::connect(&context.data, &TraceData::sequenceReady, &self,
                     [=](const RunKey& run, qint64 sequence) {
                         if (is_shown(run, sequence)) {
                             read();
                         }
                     });
    QObject::connect(&context.data, &TraceData::signalReady, &self,
                     [=](const RunKey& run, qint64 sequence, const QString& signal) {
                         if (is_shown(run, sequence) && uses(signal)) {
                             read();
                         }
                     });
}

} // namespace ponderscope
