// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/panels.h"
#include "app/desktop/shell.h"

#include <QPoint>

class QAction;
class QComboBox;
class QMenu;

namespace ponderscope {

class TopBar;

/// The commands of a window: actions of the menu bar, which the palette and the list of shortcuts read.
class MainMenu : public ShellPart {
    Q_OBJECT
public:
    MainMenu(const Shell& shell, const WindowParts& parts, TopBar& top);

public Q_SLOTS:
    void showPalette(); ///< Ctrl+K: runs an action by its name
    void showShortcuts();
    void showAbout();
    /// Shows help on the focused panel, or on the text if no panel has the focus.
    void showHelp();
    /// Copies the command that reproduces \p panel. A message confirms this, or says why there is no command.
    void copyCommand(QWidget* panel);
    void showTextMenu(qint64 token, const QPoint& place);

Q_SIGNALS:
    void newWindowWanted();

private:
    void buildViewMenu(QMenu* view);
    void fillRecent(QMenu* menu);
    /// Whenever \p menu opens, fills it with the entries of a combo box.
    void fillFrom(QMenu* menu, QComboBox& box);
    /// The focused panel, otherwise the text.
    [[nodiscard]] QWidget* focusedPanel() const;

    WindowParts parts_;
    TopBar& top_;
    QAction* undo_ = nullptr;
    QAction* redo_ = nullptr;
};

/// Clears a menu and its submenus.
void empty_menu(QMenu& menu);

} // namespace ponderscope
