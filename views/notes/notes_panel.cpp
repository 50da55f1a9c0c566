// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/notes/notes_panel.h"

#include "views/common/format.h"
#include "views/common/row_delegate.h"

#include <QDialog>
#include <QDialogButtonBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QListView>
#include <QMessageBox>
#include <QPainter>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QShortcut>
#include <QStandardPaths>
#include <QToolButton>
#include <QVBoxLayout>

#include <algorithm>
#include <tuple>

namespace ponderscope {

namespace {

/// The word in bold, what was noted below it.
class NoteRows : public RowDelegate {
public:
    NoteRows(Theme& theme, QObject* parent) : RowDelegate(theme, QSize(120, 42), parent) {}

protected:
    void paintRow(QPainter& painter, const QRect& rect, const QModelIndex& index) const override {
        const Palette& colours = theme_.colours();
        const QRect room = rect.adjusted(14, 4, -14, -4);
        const auto line = [&](const QFont& font, const QColor& colour, const QString& text,
                              Qt::Alignment where) {
            painter.setFont(font);
            painter.setPen(colour);
            painter.drawText(room, static_cast<int>(where),
                             QFontMetrics(font).elidedText(text, Qt::ElideRight, room.width()));
        };
        line(theme_.strong(), colours.text, index.data(NotesModel::WordRole).toString(),
             Qt::AlignLeft | Qt::AlignTop);
        line(theme_.small(), colours.soft,
             NotesPanel::tr("seq. %1, token %2")
                 .arg(format_count(index.data(NotesModel::SequenceRole).toLongLong() + 1),
                      format_count(index.data(NotesModel::TokenRole).toLongLong())),
             Qt::AlignRight | Qt::AlignTop);
        line(theme_.small(), colours.soft, index.data(Qt::DisplayRole).toString().simplified(),
             Qt::AlignLeft | Qt::AlignBottom);
    }
};

/// Written by keyboard alone: Ctrl+Enter saves, Tab leaves the text, Esc asks before a text is lost.
class NoteDialog : public QDialog {
public:
    NoteDialog(const QString& text, QWidget* parent)
        : QDialog(parent), edit_(new QPlainTextEdit(text, this)), before_(text) {
        setObjectName(QStringLiteral("note"));
        setWindowTitle(NotesPanel::tr("Note on a word"));
        edit_->setTabChangesFocus(true);
        edit_->setAccessibleName(windowTitle());
        auto* buttons = new QDialogButtonBox(QDialogButtonBox::Save | QDialogButtonBox::Cancel, this);
        buttons->button(QDialogButtonBox::Save)->setToolTip(NotesPanel::tr("Ctrl+Enter"));
        auto* column = new QVBoxLayout(this);
        column->addWidget(edit_);
        column->addWidget(buttons);
        for (const int key : {Qt::Key_Return, Qt::Key_Enter}) {
            connect(new QShortcut(QKeySequence(Qt::CTRL | key), this), &QShortcut::activated, this,
                    &QDialog::accept);
        }
        connect(buttons, &QDialogButtonBox::accepted, this, &QDialog::accept);
        connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
        resize(420, 200);
    }
    [[nodiscard]] QString text() const { return edit_->toPlainText(); }

    void reject() override {
        if (text() == before_) {
            QDialog::reject();
            return;
        }
        QMessageBox question(QMessageBox::Question, windowTitle(), NotesPanel::tr("Save the note?"),
                             QMessageBox::Save | QMessageBox::Discard | QMessageBox::Cancel, this);
        question.setDefaultButton(QMessageBox::Save);
        const int answer = question.exec();
        if (answer == QMessageBox::Save) {
            accept();
        } else if (answer == QMessageBox::Discard) {
            QDialog::reject();
        }
    }

private:
    QPlainTextEdit* edit_;
    QString before_;
};

} // namespace

NotesPanel::NotesPanel(const ViewContext& context, QWidget* parent)
    : QWidget(parent),
      context_(context),
      notes_(new Notes(context,
                       QStandardPaths::writableLocation(QStandardPaths::AppLocalDataLocation) +
                           QStringLiteral("/notes"),
                       this)),
      model_(new NotesModel(context, *notes_, this)),
      list_(new QListView(this)),
      hint_(new QLabel(this)),
      add_(new QToolButton(this)),
      mark_(new QToolButton(this)),
      remove_(new QToolButton(this)) {
    list_->setModel(model_);
    list_->setItemDelegate(new NoteRows(context.theme, list_));
    list_->setUniformItemSizes(true);
    list_->setFrameShape(QFrame::NoFrame);
    list_->setAccessibleName(tr("Notes and bookmarks"));
    list_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    hint_->setWordWrap(true);
    hint_->setAlignment(Qt::AlignCenter);
    hint_->setForegroundRole(QPalette::PlaceholderText);
    const auto button = [](QToolButton* made, const QString& text, const QString& tip) {
        made->setText(text);
        made->setToolTip(tip);
        made->setAccessibleName(tip);
        made->setAutoRaise(true);
    };
    button(add_, tr("Note…"), tr("Write a note on the selected word (Ctrl+M)"));
    button(mark_, tr("Bookmark"), tr("Bookmark the selected word, or take the bookmark away (Ctrl+B)"));
    button(remove_, tr("Remove"), tr("Remove the note that is chosen in the list"));
    auto* row = new QHBoxLayout;
    row->setContentsMargins(8, 2, 8, 4);
    row->setSpacing(4);
    row->addWidget(add_);
    row->addWidget(mark_);
    row->addStretch(1);
    row->addWidget(remove_);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    column->addLayout(row);
    column->addWidget(list_, 1);
    column->addWidget(hint_, 1);
    connect(add_, &QToolButton::clicked, this, &NotesPanel::editSelected);
    connect(mark_, &QToolButton::clicked, this, &NotesPanel::toggleBookmark);
    connect(remove_, &QToolButton::clicked, this, &NotesPanel::removeCurrent);
    connect(list_, &QListView::clicked, this, &NotesPanel::goTo);
    connect(list_, &QListView::activated, this, &NotesPanel::goTo);
    connect(model_, &QAbstractItemModel::modelReset, this, &NotesPanel::showState);
    connect(&context_.selection, &Selection::tokenChanged, this, &NotesPanel::showState);
    connect(&context_.selection, &Selection::runsChanged, this, &NotesPanel::showState);
    showState();
}

qint64 NotesPanel::token() const {
    const RunKey run = context_.selection.runA();
    return run.isValid() && !context_.data.isLive(run.trace) ? context_.selection.token() : -1;
}

void NotesPanel::showState() {
    const bool any = model_->rowCount() > 0;
    list_->setVisible(any);
    hint_->setVisible(!any);
    hint_->setText(context_.data.traces().isEmpty()
                       ? tr("Open a trace; notes on its words are kept in a file beside it.")
                       : tr("Click a word of the text, then write a note on it or bookmark it."));
    const bool word = token() >= 0;
    add_->setEnabled(word);
    mark_->setEnabled(word);
    remove_->setEnabled(any);
}

void NotesPanel::editSelected() {
    const qint64 at = token();
    if (at < 0) {
        return;
    }
    const RunKey run = context_.selection.runA();
    const qint64 sequence = context_.selection.sequence();
    const Note* known = notes_->find(run, sequence, at);
    NoteDialog dialog(known == nullptr ? QString() : known->text, this);
    if (dialog.exec() == QDialog::Accepted) {
        notes_->put(run, sequence, at, dialog.text().trimmed());
    }
}

void NotesPanel::toggleBookmark() {
    const qint64 at = token();
    if (at < 0) {
        return;
    }
    const RunKey run = context_.selection.runA();
    const Note* known = notes_->find(run, context_.selection.sequence(), at);
    if (known == nullptr) {
        notes_->put(run, context_.selection.sequence(), at, {});
    } else if (known->text.isEmpty()) {
        notes_->remove(run.trace, *known);
    } // a note is not taken away by a keystroke
}

void NotesPanel::removeCurrent() {
    if (const NotesModel::Entry* entry = model_->entry(list_->currentIndex())) {
        const NotesModel::Entry gone = *entry;
        notes_->remove(gone.trace, gone.note);
    }
}

void NotesPanel::goTo(const QModelIndex& index) {
    const NotesModel::Entry* entry = model_->entry(index);
    if (entry == nullptr) {
        return;
    }
    const RunKey now = context_.selection.runA();
    const RunInfo* shown = context_.data.run(now);
    if (shown == nullptr || now.trace != entry->trace ||
        QString::fromStdString(shown->text_digest) != entry->note.textDigest) {
        for (const RunInfo& run : context_.data.runs(entry->trace)) {
            if (QString::fromStdString(run.text_digest) == entry->note.textDigest) {
                context_.selection.setRunA({entry->trace, run.id});
                break;
            }
        }
    }
    const qint64 token = entry->note.token;
    context_.selection.setSequence(entry->note.sequence);
    context_.selection.setToken(token);
}

void NotesPanel::step(int direction) {
    const auto place = [&](const NotesModel::Entry& entry) {
        return std::tuple(entry.note.sequence, entry.note.token);
    };
    const auto here = std::tuple(context_.selection.sequence(), context_.selection.token());
    QModelIndex best;
    for (int row = 0; row < model_->rowCount(); ++row) {
        const QModelIndex index = model_->index(row);
        const NotesModel::Entry& entry = *model_->entry(index);
        if (entry.trace != context_.selection.runA().trace) {
            continue;
        }
        if (direction > 0 && place(entry) > here && !best.isValid()) {
            best = index;
        } else if (direction < 0 && place(entry) < here) {
            best = index;
        }
    }
    if (best.isValid()) {
        list_->setCurrentIndex(best);
        goTo(best);
    }
}

ViewCommand NotesPanel::viewCommand() const {
    const QString trace = context_.selection.runA().trace;
    if (notes_->of(trace).empty()) {
        return no_command(tr("There are no notes on this trace."));
    }
    return {ViewCommand::Kind::python,
            QStringLiteral("import json\n\nnotes = json.load(open(%1, encoding=\"utf-8\"))\n"
                           "print(json.dumps(notes, indent=1, ensure_ascii=False))\n")
                .arg(python_quoted(notes_->file(trace)))};
}

} // namespace ponderscope
