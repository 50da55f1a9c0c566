// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAction>
#include <QDialog>
#include <QLineEdit>
#include <QPointer>
#include <QTreeWidget>

#include <vector>

namespace ponderscope {

class Theme;

/// An action of a menu.
struct Command {
    QPointer<QAction> action;
    QString path; ///< path of its menus: "View → Appearance"
    QString text; ///< without mnemonics
};

/// How well \p text matches: it must contain the letters of \p typed in order. Letters at beginnings of words
/// score best. Negative: no match.
int command_score(const QString& typed, const QString& text);

/// All actions of these menus with their paths. Emits aboutToShow to fill dynamic menus.
std::vector<Command> commands_of(const QList<QAction*>& menus);

/// The command palette (Ctrl+K): runs an action of the program by a part of its name, best match first. The
/// last row searches for the typed text. Arrows choose, Enter runs, Escape closes.
class CommandPalette : public QDialog {
    Q_OBJECT
public:
    CommandPalette(std::vector<Command> commands, const Theme& theme, QWidget* parent);
    [[nodiscard]] QLineEdit& edit() { return *edit_; }
    [[nodiscard]] QTreeWidget& list() { return *list_; }

Q_SIGNALS:
    void findWanted(const QString& text);

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void fill();
    void run();

    std::vector<Command> commands_;
    const Theme& theme_;
    QLineEdit* edit_ = new QLineEdit(this);
    QTreeWidget* list_ = new QTreeWidget(this); ///< rows: text, path, shortcut
};

} // namespace ponderscope
