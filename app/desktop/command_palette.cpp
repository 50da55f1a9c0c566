// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/command_palette.h"

#include "views/common/controls.h"
#include "views/common/theme.h"

#include <QApplication>
#include <QKeyEvent>
#include <QMenu>
#include <QRegularExpression>

#include <algorithm>
#include <utility>

using namespace Qt::StringLiterals;

namespace ponderscope {

namespace {

/// Removes mnemonics: "&x" becomes "x", "&&" becomes "&".
QString plain(QString text) {
    static const QRegularExpression mark(u"&(.)"_s);
    return text.replace(mark, u"\\1"_s);
}

void collect(QMenu* menu, const QString& path, std::vector<Command>& into) {
    Q_EMIT menu->aboutToShow();
    const QList<QAction*> actions = menu->actions();
    for (QAction* action : actions) {
        if (action->menu() != nullptr) {
            if (action->isEnabled()) {
                collect(action->menu(), path + u" → "_s + plain(action->text()), into);
            }
        } else if (!action->isSeparator() && action->isVisible() && !action->text().isEmpty()) {
            into.push_back({action, path, plain(action->text())});
        }
    }
}

} // namespace

int command_score(const QString& typed, const QString& text) {
    int score = 0;
    qsizetype next = 0; // position after the previous letter
    const auto begins = [&](qsizetype i) { return i == 0 || !text[i - 1].isLetterOrNumber(); };
    for (const QChar wanted : typed) {
        if (wanted.isSpace()) {
            continue;
        }
        const auto find = [&](auto&& fits) {
            qsizetype i = next;
            while (i < text.size() && !(text[i].toCaseFolded() == wanted.toCaseFolded() && fits(i))) {
                ++i;
            }
            return i;
        };
        // First try beginnings of words and the position after the previous letter, then any position.
        qsizetype found = find([&](qsizetype i) { return begins(i) || i == next; });
        const bool near = found < text.size();
        found = near ? found : find([](qsizetype) { return true; });
        if (found == text.size()) {
            return -1;
        }
        score += !near ? 1 : begins(found) ? 8 : 5;
        next = found + 1;
    }
    return score;
}

std::vector<Command> commands_of(const QList<QAction*>& menus) {
    std::vector<Command> all;
    for (QAction* menu : menus) {
        if (menu->menu() != nullptr) {
            collect(menu->menu(), plain(menu->text()), all);
        }
    }
    return all;
}

CommandPalette::CommandPalette(std::vector<Command> commands, const Theme& theme, QWidget* parent)
    : QDialog(parent, Qt::Popup), commands_(std::move(commands)), theme_(theme) {
    setAttribute(Qt::WA_DeleteOnClose);
    setAccessibleName(u"Command palette"_s);
    edit_->setPlaceholderText(u"Type a command or text to find"_s);
    edit_->setAccessibleName(u"Command"_s);
    edit_->installEventFilter(this);
    list_->setColumnCount(3);
    list_->setHeaderHidden(true);
    list_->setRootIsDecorated(false);
    list_->setUniformRowHeights(true);
    list_->setFocusPolicy(Qt::NoFocus);
    list_->setAccessibleName(u"Commands"_s);
    make_column(this, {10, 10, 10, 10}, 6, {edit_, {list_, 1}});
    resize(560, 380);
    connect(edit_, &QLineEdit::textChanged, this, &CommandPalette::fill);
    connect(list_, &QTreeWidget::itemClicked, this, &CommandPalette::run);
    fill();
    edit_->setFocus();
}

void CommandPalette::fill() {
    const QString typed = edit_->text();
    std::vector<std::pair<int, const Command*>> fitting;
    for (const Command& command : commands_) {
        const int own = command_score(typed, command.text);
        const int whole = command_score(typed, command.path + u' ' + command.text);
        if (const int score = std::max(own < 0 ? own : own + 1, whole); score >= 0) {
            fitting.emplace_back(score, &command);
        }
    }
    std::ranges::stable_sort(fitting, [](const auto& a, const auto& b) { return a.first > b.first; });
    list_->clear();
    for (const auto& [score, command] : fitting) {
        if (const QPointer<QAction> action = command->action) {
            auto* item = new QTreeWidgetItem(
                list_, {command->text, command->path, action->shortcut().toString(QKeySequence::NativeText)});
            item->setData(0, Qt::UserRole, QVariant::fromValue(action));
            item->setDisabled(!action->isEnabled());
            item->setForeground(1, theme_.colours().soft);
            item->setForeground(2, theme_.colours().soft);
        }
    }
    if (!typed.trimmed().isEmpty()) {
        new QTreeWidgetItem(list_, {u"Find “%1” in the text"_s.arg(typed)});
    }
    list_->resizeColumnToContents(0);
    list_->resizeColumnToContents(1);
    list_->setCurrentItem(list_->topLevelItem(0));
}

void CommandPalette::run() {
    const QTreeWidgetItem* item = list_->currentItem();
    if (item == nullptr || item->isDisabled()) {
        return;
    }
    const QVariant action = item->data(0, Qt::UserRole);
    close(); // first, because closing would also close a dialog that the action opens
    if (!action.isValid()) {
        Q_EMIT findWanted(edit_->text());
    } else if (const auto found = action.value<QPointer<QAction>>()) {
        QMetaObject::invokeMethod(
            found, [found] { found->trigger(); }, Qt::QueuedConnection);
    }
}

bool CommandPalette::eventFilter(QObject* watched, QEvent* event) {
    if (watched == edit_ && event->type() == QEvent::KeyPress) {
        switch (static_cast<QKeyEvent*>(event)->key()) {
        case Qt::Key_Down:
        case Qt::Key_Up:
        case Qt::Key_PageDown:
        case Qt::Key_PageUp:
            return QApplication::sendEvent(list_, event);
        case Qt::Key_Return:
        case Qt::Key_Enter:
            run();
            return true;
        default:
            break;
        }
    }
    return QDialog::eventFilter(watched, event);
}

} // namespace ponderscope
