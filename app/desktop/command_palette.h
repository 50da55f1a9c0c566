// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAction>
#include <QDialog>
#include <QPointer>

#include <vector>

class QLineEdit;
class QTreeWidget;

namespace ponderscope {

class Theme;

/// An action of a menu.
struct Command {
    QPointer<QAction> action;
    QString path; ///< of the menus that lead to it: "View → Appearance"
    QString text; ///< without mnemonics
};

/// How well \p text fits \p typed: its letters in order, anywhere; beginnings of words count more. Negative:
/// not at all.
int command_score(const QString& typed, const QString& text);

/// Every action of these menus with its path. Emits aboutToShow, so that dynamic menus fill.
std::vector<Command> commands_of(const QList<QAction*>& menus);

/// Ctrl+K: any action of the program by typing a part of its name, best match first. The last row finds the
/// typed text. Arrows choose, Enter triggers, Escape closes.
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
    QLineEdit* edit_;
    QTreeWidget* list_; ///< rows: text, path, shortcut
};

} // namespace ponderscope
