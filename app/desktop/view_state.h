// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/colour_ranges.h"
#include "views/common/selection.h"
#include "views/text/quantity.h"
#include "views/text/text_panel.h"

#include <QByteArray>
#include <QJsonObject>
#include <QString>
#include <QStringList>

#include <optional>
#include <vector>

namespace ponderscope {

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
    /// Nothing happens when it is the state that is current.
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
/// By its name; what is inside is looked at when it is opened.
bool is_session_file(const QString& path);

} // namespace ponderscope
