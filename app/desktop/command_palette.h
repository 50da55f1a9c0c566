// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractListModel>
#include <QAction>
#include <QDialog>
#include <QPointer>

#include <functional>
#include <utility>
#include <vector>

class QLineEdit;
class QListView;

namespace ponderscope {

class Theme;

/// Actions whose names match the typed text, best match first.
class CommandModel : public QAbstractListModel {
    Q_OBJECT
public:
    enum Role {
        PathRole = Qt::UserRole, ///< "View → Appearance"
        ShortcutRole,            ///< "Ctrl+F", or empty
    };
    struct Command {
        QPointer<QAction> action;
        QString path;      ///< of the menus that lead to it
        QString text;      ///< without mnemonics
    };
    using Typed = std::function<Command(const QString& text)>;

    explicit CommandModel(QObject* parent = nullptr) : QAbstractListModel(parent) {}
    void setCommands(std::vector<Command> commands);
    void setFilter(const QString& text);
    /// A command made of the typed text; the last row.
    void setTyped(Typed typed) { typed_ = std::move(typed); }
    [[nodiscard]] QAction* action(const QModelIndex& index) const;

    [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
    [[nodiscard]] QVariant data(const QModelIndex& index, int role) const override;
    [[nodiscard]] Qt::ItemFlags flags(const QModelIndex& index) const override;

private:
    std::vector<Command> commands_;
    Command extra_; ///< made by typed_
    Typed typed_;
    std::vector<const Command*> shown_;
    QString filter_;
};

/// How well \p text fits \p typed: its letters in order, anywhere; beginnings of words count more. Negative:
/// not at all.
int command_score(const QString& typed, const QString& text);

/// Every action of these menus with its path. Emits aboutToShow, so that dynamic menus fill.
std::vector<CommandModel::Command> commands_of(const QList<QAction*>& menus);

/// Ctrl+K: any action of the program by typing a part of its name. Arrows choose, Enter does it, Escape
/// closes.
class CommandPalette : public QDialog {
    Q_OBJECT
public:
    CommandPalette(std::vector<CommandModel::Command> commands, Theme& theme, QWidget* parent);
    [[nodiscard]] QLineEdit& edit() { return *edit_; }
    [[nodiscard]] CommandModel& model() { return *model_; }

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;
    void paintEvent(QPaintEvent* event) override;

private:
    void run(const QModelIndex& index);

    const Theme& theme_;
    QLineEdit* edit_;
    QListView* list_;
    CommandModel* model_;
};

} // namespace ponderscope
