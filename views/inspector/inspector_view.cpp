// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/inspector/inspector_view.h"

#include "views/common/same_runs.h"
#include "views/inspector/inspector_page.h"

#include <QMimeData>
#include <QScrollBar>

using namespace Qt::StringLiterals;

namespace ponderscope {

InspectorView::InspectorView(ViewContext context, QWidget* parent)
    : QTextBrowser(parent), data_(context.data), selection_(context.selection), theme_(context.theme) {
    setOpenLinks(false);
    setUndoRedoEnabled(false);
    setTextInteractionFlags(Qt::TextBrowserInteraction | Qt::TextSelectableByKeyboard);
    setFrameShape(QFrame::NoFrame);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setMinimumWidth(240);
    setAccessibleName(u"Inspector"_s);

    // Many changes can arrive in one turn of the event loop (a hover, then its signals); one paint is enough.
    pending_.setSingleShot(true);
    pending_.setInterval(0);
    connect(&pending_, &QTimer::timeout, this, &InspectorView::refresh);
    follow(*this, context, Follows::both);
    const auto renewed = [this] { changed(); };
    connect(&selection_, &Selection::sequenceChanged, this, renewed);
    connect(&selection_, &Selection::tokenChanged, this, renewed);
    connect(&selection_, &Selection::hoverChanged, this, renewed);
    connect(&selection_, &Selection::stepChanged, this, renewed);
    connect(&selection_, &Selection::attributionChanged, this, renewed);
    const auto of_run = [this](const RunKey& run, qint64 sequence) {
        if (sequence == selection_.sequence() && (run == selection_.runA() || run == selection_.runB())) {
            changed();
        }
    };
    connect(&data_, &TraceData::sequenceReady, this, of_run);
    connect(&data_, &TraceData::failed, this, renewed);
    connect(&data_, &TraceData::signalReady, this, of_run);
    connect(&data_, &TraceData::rowsReady, this, of_run);
    connect(&data_, &TraceData::tokenLabelsReady, this, [this](const RunKey& run) {
        if (run == selection_.runA()) {
            changed();
        }
    });
    connect(&theme_, &Theme::changed, this, renewed);
    connect(this, &QTextBrowser::anchorClicked, this, [this](const QUrl& link) {
        if (link.scheme() == u"step") {
            selection_.setStep(link.path().toInt());
        } else {
            setCandidatesShown(most_ == 3 ? 10 : 3);
        }
    });
    refresh();
}

void InspectorView::setCandidatesShown(int most) {
    most_ = most;
    changed();
}

void InspectorView::refresh() {
    pending_.stop();
    report_ = token_report(data_, selection_, most_);
    written_width_ = width();
    const int place = verticalScrollBar()->value();
    // Always leave room for the scroll bar.
    write_report(*document(), report_, theme_, width() - verticalScrollBar()->sizeHint().width(), most_ > 3,
                 devicePixelRatioF());
    verticalScrollBar()->setValue(place);
}

QMimeData* InspectorView::createMimeDataFromSelection() const {
    QMimeData* copied = QTextBrowser::createMimeDataFromSelection();
    copied->setText(copied->text().remove(QChar::ObjectReplacementCharacter)); // without bars
    return copied;
}

void InspectorView::resizeEvent(QResizeEvent* event) {
    QTextBrowser::resizeEvent(event);
    if (width() != written_width_) {
        changed();
    }
}

ViewCommand InspectorView::viewCommand() const {
    const qint64 token = selection_.shown();
    const qint64 row = token < 0 ? -1 : selection_.rowOf(token);
    // A newly chosen run may have fewer tokens.
    const SequenceInfo* sequence = data_.sequenceInfo(selection_.runA(), selection_.sequence());
    if (row < 0 || sequence == nullptr || row >= sequence->tokens) {
        return no_command(u"Choose a word first. The command refers to one token."_s);
    }
    // B has the same row if both runs have the same text and tokens.
    const RunInfo* a = data_.run(selection_.runA());
    const RunInfo* b = data_.run(selection_.runB());
    const bool both = a != nullptr && b != nullptr && same_text(*a, *b);
    return python_view(
        data_, selection_,
        {u"sequence, row = %1, %2"_s.arg(selection_.sequence()).arg(row),
         u"for run in %1:"_s.arg(both ? u"(a, b)"_s : u"(a,)"_s),
         u"    print(run.name, {k: v[0] for k, v in run.columns(sequence, row, row + 1).items()})"_s,
         u"    for name, axes in run.signals.items():"_s,
         u"        print(name, axes[1:], run.signal(name, sequence, row, row + 1)[0])"_s},
        both);
}

} // namespace ponderscope
