// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/shell.h"
#include "app/desktop/view_state.h"

#include <QList>
#include <QTimer>

#include <optional>
#include <vector>

class QDockWidget;
class QLabel;
class QMenu;
class QShortcut;

namespace ponderscope {

class DockLayout;
class Opener;

/// Views (selection, search, zoom): undo and redo, saved views, presentation, and session files.
class SessionState : public ShellPart {
    Q_OBJECT
public:
    SessionState(const Shell& shell, DockLayout& docks, Opener& opener);
    [[nodiscard]] ViewState viewState() const;
    /// False when it could not be written; a message says why.
    bool saveSessionTo(const QString& file);
    void openSession(const QString& file);
    [[nodiscard]] const std::vector<SavedView>& views() const { return views_; }
    void fillViews(QMenu* menu);
    [[nodiscard]] bool isPresenting() const { return presenting_.has_value(); }
    [[nodiscard]] bool canUndo() const;
    [[nodiscard]] bool canRedo() const { return history_.canRedo(); }

public Q_SLOTS:
    /// Undo and redo of selection, search and zoom.
    void undo();
    void redo();
    void saveSession();
    /// Saves the current view, for presentations and the session.
    void keepView();
    /// Large letters and nothing but the text, or the panel that fills the window; Page down and Page up go
    /// through the saved views, Escape ends it. The same again ends it, too.
    void present();
    void presentView(int by);

Q_SIGNALS:
    void historyChanged();
    void presentationStarted();
    void statusShown(bool on); ///< the status line gives way to the caption of a slide
    void openWanted(const QString& path);
    void failed(const QString& sentence);

private:
    void showState(const ViewState& state);
    void showCaption();

    DockLayout& docks_;
    Opener& opener_;
    ViewHistory history_;
    QTimer settling_;         ///< until what changes is at rest
    bool travelling_ = false; ///< undo and redo change what is looked at, and are no step of their own
    std::vector<SavedView> views_;
    /// The view before the presentation.
    struct Presenting {
        ViewState view;
        Qt::WindowStates window;
        QDockWidget* filled; ///< the panel that filled the window; null: none
        QByteArray layout;
        int at = -1; ///< of views_; -1: what was looked at
        QList<QShortcut*> keys = {};
    };
    std::optional<Presenting> presenting_;
    QLabel* caption_; ///< the views of the presentation
};

} // namespace ponderscope
