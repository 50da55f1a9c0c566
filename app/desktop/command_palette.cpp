// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/command_palette.h"

#include "views/common/theme.h"

#include <QKeyEvent>
#include <QLineEdit>
#include <QListView>
#include <QMenu>
#include <QPainter>
#include <QStyledItemDelegate>
#include <QVBoxLayout>

#include <algorithm>
#include <utility>

using namespace Qt::StringLiterals;

namespace ponderscope {

namespace {

constexpr int deepest_menu = 6;

QString plain(QString text) {
    // "&&" is an ampersand, "&x" a mnemonic.
    QString out;
    for (qsizetype i = 0; i < text.size(); ++i) {
        if (text[i] == u'&' && i + 1 < text.size()) {
            ++i;
        }
        out += text[i];
    }
    return out;
}

void collect(QMenu* menu, const QString& path, int depth, std::vector<CommandModel::Command>& into) {
    if (depth > deepest_menu) {
        return;
    }
    Q_EMIT menu->aboutToShow();
    const QList<QAction*> actions = menu->actions();
    for (QAction* action : actions) {
        if (action->menu() != nullptr) {
            if (action->isEnabled()) {
                collect(action->menu(), path + u" → "_s + plain(action->text()), depth + 1, into);
            }
        } else if (!action->isSeparator() && action->isVisible() && !action->text().isEmpty()) {
            into.push_back({action, path, plain(action->text())});
        }
    }
}

class CommandRows : public QStyledItemDelegate {
public:
    CommandRows(Theme& theme, QObject* parent) : QStyledItemDelegate(parent), theme_(theme) {}
    [[nodiscard]] QSize sizeHint(const QStyleOptionViewItem&, const QModelIndex&) const override {
        return {300, theme_.scaled(30)};
    }
    void paint(QPainter* painter, const QStyleOptionViewItem& option,
               const QModelIndex& index) const override {
        const Palette& colours = theme_.colours();
        painter->save();
        const bool chosen = (option.state & QStyle::State_Selected) != 0;
        painter->fillRect(option.rect, chosen ? colours.selected : colours.panel);
        const bool on = (index.flags() & Qt::ItemIsEnabled) != 0;
        QRect room = option.rect.adjusted(14, 0, -14, 0);
        const QString shortcut = index.data(CommandModel::ShortcutRole).toString();
        painter->setFont(theme_.small());
        painter->setPen(colours.soft);
        painter->drawText(room, Qt::AlignRight | Qt::AlignVCenter, shortcut);
        room.setRight(room.right() - QFontMetrics(theme_.small()).horizontalAdvance(shortcut) - 12);
        const QString text = index.data(Qt::DisplayRole).toString();
        painter->setFont(theme_.body());
        painter->setPen(on ? colours.text : colours.soft);
        painter->drawText(room, Qt::AlignLeft | Qt::AlignVCenter, text);
        const int used = QFontMetrics(theme_.body()).horizontalAdvance(text) + 10;
        painter->setFont(theme_.small());
        painter->setPen(colours.soft);
        painter->drawText(room.adjusted(used, 0, 0, 0), Qt::AlignLeft | Qt::AlignVCenter,
                          index.data(CommandModel::PathRole).toString());
        painter->restore();
    }

private:
    Theme& theme_;
};

} // namespace

int command_score(const QString& typed, const QString& text) {
    int score = 0;
    qsizetype at = 0;
    qsizetype last = -2;
    for (const QChar wanted : typed) {
        if (wanted.isSpace()) {
            continue;
        }
        // The beginning of a word, if one is left; else anywhere.
        qsizetype found = -1;
        for (qsizetype i = at; i < text.size() && found < 0; ++i) {
            const bool begins = i == 0 || !text[i - 1].isLetterOrNumber();
            if (text[i].toCaseFolded() == wanted.toCaseFolded() && (begins || i == last + 1)) {
                found = i;
                score += begins ? 8 : 5;
            }
        }
        for (qsizetype i = at; i < text.size() && found < 0; ++i) {
            if (text[i].toCaseFolded() == wanted.toCaseFolded()) {
                found = i;
                score += 1;
            }
        }
        if (found < 0) {
            return -1;
        }
        last = found;
        at = found + 1;
    }
    return score;
}

std::vector<CommandModel::Command> commands_of(const QList<QAction*>& menus) {
    std::vector<CommandModel::Command> all;
    for (QAction* menu : menus) {
        if (menu->menu() != nullptr) {
            collect(menu->menu(), plain(menu->text()), 0, all);
        }
    }
    return all;
}

void CommandModel::setCommands(std::vector<Command> commands) {
    beginResetModel();
    shown_.clear();
    commands_ = std::move(commands);
    endResetModel();
    setFilter(filter_);
}

void CommandModel::setFilter(const QString& text) {
    filter_ = text;
    std::vector<std::pair<int, std::size_t>> fitting;
    for (std::size_t i = 0; i < commands_.size(); ++i) {
        const int own = command_score(text, commands_[i].text);
        const int whole = command_score(text, commands_[i].path + u' ' + commands_[i].text);
        const int score = std::max(own < 0 ? own : own + 1, whole);
        if (score >= 0) {
            fitting.emplace_back(score, i);
        }
    }
    std::stable_sort(fitting.begin(), fitting.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    beginResetModel();
    shown_.clear();
    for (const auto& [score, at] : fitting) {
        shown_.push_back(&commands_[at]);
    }
    if (typed_ && !text.trimmed().isEmpty()) {
        extra_ = typed_(text);
        shown_.push_back(&extra_);
    }
    endResetModel();
}

QAction* CommandModel::action(const QModelIndex& index) const {
    return index.isValid() && index.row() < static_cast<int>(shown_.size())
               ? shown_[static_cast<std::size_t>(index.row())]->action.data()
               : nullptr;
}

int CommandModel::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(shown_.size());
}

QVariant CommandModel::data(const QModelIndex& index, int role) const {
    if (!index.isValid() || index.row() >= static_cast<int>(shown_.size())) {
        return {};
    }
    const Command& command = *shown_[static_cast<std::size_t>(index.row())];
    switch (role) {
    case Qt::DisplayRole:
        return command.text;
    case Qt::AccessibleTextRole:
        return QString(command.path + u": "_s + command.text);
    case PathRole:
        return command.path;
    case ShortcutRole:
        return command.action ? command.action->shortcut().toString(QKeySequence::NativeText) : QString();
    default:
        return {};
    }
}

Qt::ItemFlags CommandModel::flags(const QModelIndex& index) const {
    if (!index.isValid()) {
        return Qt::NoItemFlags;
    }
    const QAction* one = action(index);
    return one != nullptr && one->isEnabled() ? Qt::ItemIsEnabled | Qt::ItemIsSelectable
                                              : Qt::ItemIsSelectable;
}

CommandPalette::CommandPalette(std::vector<CommandModel::Command> commands, Theme& theme, QWidget* parent)
    : QDialog(parent, Qt::Popup),
      theme_(theme),
      edit_(new QLineEdit(this)),
      list_(new QListView(this)),
      model_(new CommandModel(this)) {
    setAttribute(Qt::WA_DeleteOnClose);
    setAccessibleName(u"Command palette"_s);
    edit_->setPlaceholderText(u"Type a command or text to find"_s);
    edit_->setAccessibleName(u"Command"_s);
    edit_->installEventFilter(this);
    list_->setModel(model_);
    list_->setItemDelegate(new CommandRows(theme, list_));
    list_->setUniformItemSizes(true);
    list_->setFrameShape(QFrame::NoFrame);
    list_->setFocusPolicy(Qt::NoFocus);
    list_->setAccessibleName(u"Commands"_s);
    list_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(10, 10, 10, 10);
    column->setSpacing(6);
    column->addWidget(edit_);
    column->addWidget(list_, 1);
    resize(560, 380);
    model_->setCommands(std::move(commands));
    const auto first = [this] { list_->setCurrentIndex(model_->index(0)); };
    connect(edit_, &QLineEdit::textChanged, this, [this, first](const QString& text) {
        model_->setFilter(text);
        first();
    });
    connect(list_, &QListView::clicked, this, &CommandPalette::run);
    first();
    edit_->setFocus();
}

void CommandPalette::paintEvent(QPaintEvent* event) {
    QDialog::paintEvent(event);
    QPainter painter(this);
    painter.setPen(theme_.colours().border);
    painter.drawRect(rect().adjusted(0, 0, -1, -1));
}

void CommandPalette::run(const QModelIndex& index) {
    QPointer<QAction> action = model_->action(index);
    if (action == nullptr || !action->isEnabled()) {
        return;
    }
    close();
    // After the palette is gone, so that what the action opens is not closed with it.
    QMetaObject::invokeMethod(
        action, [action] { action->trigger(); }, Qt::QueuedConnection);
}

bool CommandPalette::eventFilter(QObject* watched, QEvent* event) {
    if (watched == edit_ && event->type() == QEvent::KeyPress) {
        const int key = static_cast<QKeyEvent*>(event)->key();
        const int rows = model_->rowCount();
        const int row = list_->currentIndex().row();
        const auto go = [&](int to) {
            if (rows > 0) {
                list_->setCurrentIndex(model_->index(std::clamp(to, 0, rows - 1)));
            }
        };
        switch (key) {
        case Qt::Key_Down:
            go(row + 1);
            return true;
        case Qt::Key_Up:
            go(row - 1);
            return true;
        case Qt::Key_PageDown:
            go(row + 10);
            return true;
        case Qt::Key_PageUp:
            go(row - 10);
            return true;
        case Qt::Key_Return:
        case Qt::Key_Enter:
            run(list_->currentIndex());
            return true;
        default:
            break;
        }
    }
    return QDialog::eventFilter(watched, event);
}

} // namespace ponderscope
