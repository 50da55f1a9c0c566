// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/shell.h"
#include "views/common/colour_ranges.h"
#include "views/text/quantity.h"

#include <QByteArray>
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
class OpenTraces;

/// The state that undo restores and sessions store: selection, search and zoom.
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
    ColourRanges::All ranges; ///< fixed ends of colour scales
    TextZoom zoom = TextZoom::text;
    int textSize = 19;
    QString find; ///< empty: the find bar is closed
    friend bool operator==(const ViewState&, const ViewState&) = default;
};

/// A view that was saved for later, for example for a talk.
struct SavedView {
    QString name;
    QString panel; ///< the maximized panel; empty: the text
    ViewState view;
    friend bool operator==(const SavedView&, const SavedView&) = default;
};

/// A session: open traces, view and layout, as a small JSON file with relative trace paths if possible.
struct Session {
    QStringList traces; ///< absolute paths
    ViewState view;
    QByteArray layout;
    std::vector<SavedView> views = {};
};

/// Returns an error message; empty: success.
QString save_session(const Session& session, const QString& file);
/// \p problem: why there is no result.
std::optional<Session> load_session(const QString& file, QString& problem);
/// Whether the name belongs to a session file. load_session() checks the content.
bool is_session_file(const QString& path);

/// Handles views (selection, search, zoom): undo and redo, saved views, presentation, and session files.
class SessionState : public ShellPart {
    Q_OBJECT
public:
    SessionState(const Shell& shell, DockLayout& docks, OpenTraces& traces);
    [[nodiscard]] ViewState viewState() const;
    /// False, with a message, if the file could not be written.
    bool saveSessionTo(const QString& file);
    void openSession(const QString& file);
    [[nodiscard]] const std::vector<SavedView>& views() const { return views_; }
    void fillViews(QMenu* menu);
    [[nodiscard]] bool isPresenting() const { return presenting_.has_value(); }
    [[nodiscard]] bool canUndo() const { return at_ > 0 || settling_.isActive(); }
    [[nodiscard]] bool canRedo() const { return at_ + 1 < states_.size(); }

public Q_SLOTS:
    /// Undo and redo for selection, search and zoom.
    void undo();
    void redo();
    void saveSession();
    /// Saves the current view, for presentations and the session.
    void keepView();
    /// Starts or ends a presentation: large letters, and only the text or the maximized panel. Page Down and
    /// Page Up go through the saved views. Escape also ends the presentation.
    void present();
    void presentView(int by);

Q_SIGNALS:
    void historyChanged();
    void presentationStarted();
    void statusShown(bool on); ///< false: the caption of a slide replaces the status line
    void failed(const QString& sentence);

private:
    /// \p keepReplay: a replay keeps colouring the text, unless \p state changes the look.
    void showState(const ViewState& state, bool keepReplay = false);
    void showCaption();
    /// Adds the current view to the history unless it equals the last view. Discards undone views.
    void remember();

    DockLayout& docks_;
    OpenTraces& traces_;
    std::vector<ViewState> states_; ///< the history of views, as in a browser
    std::size_t at_ = 0;            ///< index of the current view in states_
    QTimer settling_;               ///< waits until changes have stopped
    bool travelling_ = false;       ///< undo or redo is running, so the change is not recorded
    std::vector<SavedView> views_;
    /// The view before the presentation.
    struct Presenting {
        ViewState view;
        Qt::WindowStates window;
        QDockWidget* filled; ///< the maximized panel; null: none
        QByteArray layout;
        int at = -1; ///< index in views_; -1: the view at the start
        QList<QShortcut*> keys = {};
    };
    std::optional<Presenting> presenting_;
    QLabel* caption_; ///< name and number of the shown view
};

} // namespace ponderscope
