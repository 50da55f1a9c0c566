// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/library/library_panel.h"

#include "views/common/controls.h"
#include "views/common/format.h"
#include "views/common/paths.h"
#include "views/library/library_model.h"
#include "views/library/library_rows.h"
#include "views/library/sequence_model.h"

#include <QClipboard>
#include <QGuiApplication>
#include <QHeaderView>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QListView>
#include <QMenu>
#include <QMouseEvent>
#include <QTimer>
#include <QTreeView>

#include <algorithm>

using namespace Qt::StringLiterals;

namespace ponderscope {

LibraryPanel::LibraryPanel(const ViewContext& context, QWidget* parent)
    : QWidget(parent),
      context_(context),
      model_(new LibraryModel(context, this)),
      sequenceModel_(new SequenceModel(context, this)),
      runs_(new QTreeView(this)),
      sequences_(new QListView(this)),
      sequenceHeader_(new QLabel(this)),
      hint_(soft_label(this, u"Nothing is open. Drop a trace or a checkpoint folder on the window, or choose "
                             "File → Open."_s)) {
    hint_->setAlignment(Qt::AlignCenter);
    hint_->setMargin(14);
    runs_->setModel(model_);
    runs_->setItemDelegate(new RunRows(runs_));
    runs_->setHeaderHidden(true);
    runs_->setIndentation(10);
    runs_->setIconSize({10, 10});
    runs_->setTextElideMode(Qt::ElideMiddle); // names often differ only at their ends
    runs_->header()->setStretchLastSection(false);
    runs_->header()->setMinimumSectionSize(24);
    runs_->setFrameShape(QFrame::NoFrame);
    runs_->setMouseTracking(true);
    runs_->setContextMenuPolicy(Qt::CustomContextMenu);
    runs_->setAccessibleName(u"Traces and runs"_s);
    runs_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    runs_->setVerticalScrollMode(QAbstractItemView::ScrollPerPixel);
    runs_->installEventFilter(this);
    runs_->viewport()->installEventFilter(this);
    sequences_->setModel(sequenceModel_);
    sequences_->setItemDelegate(new SequenceRows(context_.theme, sequences_));
    sequences_->setFrameShape(QFrame::NoFrame);
    sequences_->setMouseTracking(true);
    sequences_->setUniformItemSizes(true);
    sequences_->setAccessibleName(u"Sequences of run A"_s);
    sequences_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    sequences_->setVerticalScrollMode(QAbstractItemView::ScrollPerPixel);

    sequenceHeader_->setContentsMargins(14, 8, 14, 2);
    sequenceHeader_->setForegroundRole(QPalette::PlaceholderText);
    make_column(this, {}, 0, {runs_, sequenceHeader_, {sequences_, 1}, {hint_, 1}});

    connect(model_, &QAbstractItemModel::rowsInserted, runs_,
            [this](const QModelIndex& above, int first, int last) {
                // Expand new traces. Traces that the user collapsed stay collapsed.
                for (int row = first; !above.isValid() && row <= last; ++row) {
                    runs_->expand(model_->index(row, 0));
                }
                runs_->header()->setSectionResizeMode(0, QHeaderView::Stretch);
                runs_->header()->setSectionResizeMode(1, QHeaderView::Fixed);
                runs_->header()->resizeSection(1, 24);
                if (above.isValid() && model_->rowCount(above) == last - first + 1) {
                    runs_->expand(above);
                }
                fitRuns();
                showHint();
            });
    connect(model_, &QAbstractItemModel::rowsRemoved, this, [this] {
        fitRuns();
        showHint();
    });
    connect(model_, &LibraryModel::renameRequested, this, &LibraryPanel::renameRequested);
    runs_->setEditTriggers(QAbstractItemView::EditKeyPressed);
    connect(runs_, &QTreeView::expanded, this, &LibraryPanel::fitRuns);
    connect(runs_, &QTreeView::collapsed, this, &LibraryPanel::fitRuns);
    connect(sequences_->selectionModel(), &QItemSelectionModel::currentChanged, this,
            [this](const QModelIndex& now) {
                if (now.isValid()) {
                    context_.selection.setSequence(now.data(SequenceModel::SequenceRole).toLongLong());
                }
            });
    connect(runs_, &QWidget::customContextMenuRequested, this, &LibraryPanel::showMenu);
    connect(&context_.selection, &Selection::runsChanged, this, &LibraryPanel::showRun);
    // Scroll after the list has its new height.
    connect(&context_.selection, &Selection::runsChanged, runs_,
            [this] { QTimer::singleShot(0, runs_, [this] { runs_->scrollTo(runs_->currentIndex()); }); });
    connect(runs_->itemDelegate(), &QAbstractItemDelegate::closeEditor, this, &LibraryPanel::showRun,
            Qt::QueuedConnection);
    connect(&context_.selection, &Selection::sequenceChanged, this, &LibraryPanel::showSequence);
    connect(sequenceModel_, &QAbstractItemModel::rowsInserted, this, [this] {
        if (!sequences_->currentIndex().isValid()) {
            showSequence(); // the sequence was selected before it existed
        }
        showCounts();
    });
    connect(sequenceModel_, &QAbstractItemModel::modelReset, this, [this] {
        showSequence();
        showCounts();
    });
    context_.theme.dress(this, [this] {
        sequenceHeader_->setFont(context_.theme.caps());
        QPalette pale = runs_->palette();
        pale.setColor(QPalette::Highlight, context_.theme.colours().selected);
        pale.setColor(QPalette::HighlightedText, context_.theme.colours().text); // also for the name editor
        runs_->setPalette(pale);
        runs_->viewport()->update();
        sequences_->viewport()->update();
    });
    runs_->expandAll();
    showRun();
    showSequence();
    showCounts();
}

void LibraryPanel::fitRuns() {
    int needed = 8;
    QModelIndex row = model_->index(0, 0);
    while (row.isValid()) {
        needed += runs_->sizeHintForIndex(row).height();
        row = runs_->indexBelow(row);
    }
    // With few sequences, the runs get more room.
    const int sequences = sequenceModel_->rowCount() * std::max(sequences_->sizeHintForRow(0), 0);
    const int rest =
        height() - sequenceHeader_->sizeHint().height() - std::clamp(sequences, 0, height() * 40 / 100);
    runs_->setFixedHeight(std::clamp(needed, 40, std::max(rest, 80)));
}

void LibraryPanel::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    fitRuns();
}

void LibraryPanel::choose(const QModelIndex& index, bool asB) {
    const auto key = index.data(LibraryModel::KeyRole).value<RunKey>();
    if (!key.isValid()) {
        return;
    }
    if (!asB) {
        if (key == context_.selection.runB()) {
            context_.selection.setRunB(context_.selection.runA()); // swap A and B
        }
        context_.selection.setRunA(key);
    } else if (key == context_.selection.runB()) {
        context_.selection.setRunB({});
    } else {
        context_.selection.setRunB(key);
    }
}

void LibraryPanel::showRun() {
    // Another current row would commit a half-typed name. closeEditor calls this function again.
    if (const auto* name = runs_->viewport()->findChild<QLineEdit*>(); name != nullptr && name->isVisible()) {
        return;
    }
    const QModelIndex run = model_->indexOf(context_.selection.runA());
    if (run.isValid()) {
        runs_->selectionModel()->setCurrentIndex(run, QItemSelectionModel::ClearAndSelect |
                                                          QItemSelectionModel::Rows);
    } else {
        runs_->selectionModel()->clear();
    }
}

void LibraryPanel::showSequence() {
    const QModelIndex sequence = sequenceModel_->indexOf(context_.selection.sequence());
    if (sequence.isValid()) {
        sequences_->selectionModel()->setCurrentIndex(sequence, QItemSelectionModel::ClearAndSelect);
        sequences_->scrollTo(sequence);
    }
}

void LibraryPanel::showCounts() {
    showHint();
    fitRuns();
    const int count = sequenceModel_->rowCount();
    sequenceHeader_->setText(count > 0 ? u"SEQUENCES  %1"_s.arg(format_count(count)) : u"SEQUENCES"_s);
}

void LibraryPanel::showHint() {
    const bool open = model_->rowCount() > 0;
    runs_->setVisible(open);
    sequenceHeader_->setVisible(open);
    sequences_->setVisible(open);
    hint_->setVisible(!open);
}

void LibraryPanel::showMenu(const QPoint& position) {
    const QModelIndex index = runs_->indexAt(position);
    if (!index.isValid()) {
        return;
    }
    QMenu menu(this);
    fillMenu(menu, index);
    menu.exec(runs_->viewport()->mapToGlobal(position));
}

void LibraryPanel::fillMenu(QMenu& menu, const QModelIndex& index) {
    const auto key = index.data(LibraryModel::KeyRole).value<RunKey>();
    if (key.isValid()) {
        // Find the row by its key: rows may move during a recording while the menu is open.
        menu.addAction(u"Show as A"_s, this, [this, key] { choose(model_->indexOf(key), false); });
        menu.addAction(key == context_.selection.runB() ? u"Stop Comparing"_s : u"Compare as B"_s, this,
                       [this, key] { choose(model_->indexOf(key), true); });
        menu.addSeparator();
        menu.addAction(u"Copy TRACE#RUN"_s, this, [name = key.trace + u'#' + index.data().toString()] {
            QGuiApplication::clipboard()->setText(name);
        });
        menu.addSeparator();
        const bool elsewhere = is_elsewhere(key.trace);
        menu.addAction(elsewhere                            ? u"Copy to This Machine…"_s
                       : context_.data.isScratch(key.trace) ? u"Save to Trace…"_s
                                                            : u"Copy to Trace…"_s,
                       this, [this, key] { Q_EMIT keepRequested(key); });
        menu.addAction(u"Rename"_s, this, [this, key] { runs_->edit(model_->indexOf(key)); })
            ->setDisabled(elsewhere); // remote traces are read-only
        menu.addAction(u"Remove from Trace…"_s, this, [this, key] { Q_EMIT removeRequested(key); })
            ->setDisabled(elsewhere);
    } else {
        menu.addAction(u"Copy Path"_s, this, [key] { QGuiApplication::clipboard()->setText(key.trace); });
        menu.addAction(u"Close Trace"_s, this, [this, key] { context_.data.close(key.trace); });
    }
}

bool LibraryPanel::eventFilter(QObject* watched, QEvent* event) {
    if (watched == runs_->viewport() && event->type() == QEvent::MouseButtonRelease) {
        const auto* mouse = static_cast<QMouseEvent*>(event);
        const QModelIndex index = runs_->indexAt(mouse->pos());
        if (index.isValid() && mouse->button() == Qt::LeftButton) {
            const bool isA = index.data(LibraryModel::KeyRole).value<RunKey>() == context_.selection.runA();
            choose(index, (index.column() == 1 && !isA) || (mouse->modifiers() & Qt::ControlModifier) != 0);
        }
    } else if (watched == runs_ && event->type() == QEvent::KeyPress) {
        const auto* key = static_cast<QKeyEvent*>(event);
        if (key->key() == Qt::Key_Return || key->key() == Qt::Key_Enter || key->key() == Qt::Key_A) {
            choose(runs_->currentIndex(), false);
            return true;
        }
        if (key->key() == Qt::Key_B) {
            choose(runs_->currentIndex(), true);
            return true;
        }
    }
    return QWidget::eventFilter(watched, event);
}

ViewCommand LibraryPanel::viewCommand() const {
    QList<QStringList> lines;
    for (const QString& trace : context_.data.traces()) {
        lines << QStringList{u"inspect"_s, trace};
    }
    return lines.isEmpty() ? no_command(why_no_run(context_.data, context_.selection)) : shell_view(lines);
}

} // namespace ponderscope
