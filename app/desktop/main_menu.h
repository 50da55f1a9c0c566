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

/// The commands of a window. Each is an action of the menu bar: the palette, the list of shortcuts and the
/// keyboard take them from there.
class MainMenu : public ShellPart {
    Q_OBJECT
public:
    MainMenu(const Shell& shell, const WindowParts& parts, TopBar& top);

public Q_SLOTS:
    void showPalette(); ///< Ctrl+K: any action by its name
    void showShortcuts();
    void showAbout();
    /// Help on the panel that has the focus; on the text otherwise.
    void showHelp();
    /// Copies the command that reproduces \p panel to the clipboard. A message confirms it, or gives the
    /// reason why there is no command.
    void copyCommand(QWidget* panel);
    void showTextMenu(qint64 token, const QPoint& place);

Q_SIGNALS:
    void openFilesWanted();
    void openWanted(const QString& path);
    void openLocationWanted();
    void newWindowWanted();

private:
    void buildViewMenu(QMenu* view);
    void fillRecent(QMenu* menu);
    /// Fills \p menu with the entries of a drop-down list whenever it opens.
    void fillFrom(QMenu* menu, QComboBox& box);
    /// The panel that has the focus; the text otherwise.
    [[nodiscard]] QWidget* focusedPanel() const;

    WindowParts parts_;
    TopBar& top_;
    QAction* undo_ = nullptr;
    QAction* redo_ = nullptr;
};

/// Clears a menu and its submenus.
void empty_menu(QMenu& menu);

} // namespace ponderscope
