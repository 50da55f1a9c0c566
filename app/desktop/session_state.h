// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/shell.h"
#include "views/common/colour_ranges.h"
#include "views/common/selection.h"
#include "views/text/quantity.h"
#include "views/text/text_panel.h"

#include <QByteArray>
#include <QJsonObject>
#include <QList>
#include <QString>
#include <QStringList>
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

/// A view: the selection, search and zoom that undo restores and sessions store.
struct ViewState {
    RunKey a;
    RunKey b;
    qint64 sequence = 0;
    qint64 token = -1;
    int step = -1;
    int layer = -1;
    int head = -1;
    Attribution attribution = Attribution::predicted;
    TextLook look;
    ColourRanges::All ranges; ///< ends of colour scales that are held
    TextZoom zoom = TextZoom::text;
    int textSize = 19;
    QString find; ///< empty: the find bar is closed
    friend bool operator==(const ViewState&, const ViewState&) = default;
};

/// A history of views, as in a browser: a new view discards undone ones.
class ViewHistory {
public:
    /// Adds \p state to the history, unless it equals the current state.
    void record(const ViewState& state);
    [[nodiscard]] bool canUndo() const { return at_ > 0; }
    [[nodiscard]] bool canRedo() const { return at_ + 1 < states_.size(); }
    /// The state to go to; nothing at either end.
    std::optional<ViewState> undo();
    std::optional<ViewState> redo();

private:
    std::vector<ViewState> states_;
    std::size_t at_ = 0;
};

/// A view that was kept to be shown again: in a talk, one after the other.
struct SavedView {
    QString name;
    QString panel; ///< the one that filled the window; empty: the text
    ViewState view;
};

/// A session: open traces, view and layout, as a small JSON file. Paths of traces are relative to it where
/// possible.
struct Session {
    QStringList traces; ///< absolute
    ViewState view;
    QByteArray layout;
    std::vector<SavedView> views = {};
};

/// An error message, or empty.
QString save_session(const Session& session, const QString& file);
/// \p problem: why there is none.
std::optional<Session> load_session(const QString& file, QString& problem);
/// Whether \p path is named like a session file. Opening it checks the contents.
bool is_session_file(const QString& path);

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
    /// \p keepReplay: a replay that colours the text goes on, unless \p state has another look.
    void showState(const ViewState& state, bool keepReplay = false);
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
