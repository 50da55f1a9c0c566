// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/inspector/inspector_view.h"

#include "views/inspector/inspector_canvas.h"

namespace ponderscope {

InspectorView::InspectorView(ViewContext context, QWidget* parent)
    : QScrollArea(parent),
      data_(context.data),
      selection_(context.selection),
      theme_(context.theme),
      canvas_(new InspectorCanvas(context.theme)) {
    setWidgetResizable(true);
    setWidget(canvas_);
    setFrameShape(QFrame::NoFrame);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setMinimumWidth(240);
    setAccessibleName(tr("Inspector"));

    // Many changes can arrive in one turn of the event loop (a hover, then its signals); one paint is enough.
    pending_.setSingleShot(true);
    pending_.setInterval(0);
    connect(&pending_, &QTimer::timeout, this, &InspectorView::refresh);
    connect(&selection_, &Selection::runsChanged, this, &InspectorView::schedule);
    connect(&selection_, &Selection::sequenceChanged, this, &InspectorView::schedule);
    connect(&selection_, &Selection::tokenChanged, this, &InspectorView::schedule);
    connect(&selection_, &Selection::hoverChanged, this, &InspectorView::schedule);
    connect(&selection_, &Selection::stepChanged, this, &InspectorView::schedule);
    connect(&selection_, &Selection::attributionChanged, this, &InspectorView::schedule);
    connect(&data_, &TraceData::traceOpened, this, &InspectorView::schedule);
    connect(&data_, &TraceData::traceChanged, this, &InspectorView::schedule);
    connect(&data_, &TraceData::traceClosed, this, &InspectorView::schedule);
    connect(&data_, &TraceData::sequenceReady, this, &InspectorView::schedule);
    connect(&data_, &TraceData::signalReady, this, &InspectorView::schedule);
    connect(&data_, &TraceData::tokenLabelsReady, this, &InspectorView::schedule);
    connect(canvas_, &InspectorCanvas::candidatesClicked, this,
            [this] { setCandidatesShown(most_ == 3 ? 10 : 3); });
    connect(canvas_, &InspectorCanvas::stepClicked, &selection_, &Selection::setStep);
    refresh();
}

void InspectorView::setCandidatesShown(int most) {
    most_ = most;
    canvas_->setExpanded(most > 3);
    schedule();
}

QSize InspectorView::sizeHint() const {
    return {320, 600};
}

void InspectorView::schedule() {
    pending_.start();
}

void InspectorView::refresh() {
    pending_.stop();
    report_ = token_report(data_, selection_, most_);
    canvas_->setReport(&report_);
}

} // namespace ponderscope
