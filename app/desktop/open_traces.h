// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/opener.h"
#include "app/desktop/run_follower.h"
#include "app/desktop/shell.h"
#include "app/desktop/trace_watch.h"
#include "views/common/task.h"

#include <QTimer>

#include <functional>
#include <utility>

namespace ponderscope {

/// The traces of a window: what opens them, what shows the runs that this window makes, and what becomes of
/// files that change while they are open.
class OpenTraces : public ShellPart {
    Q_OBJECT
public:
    /// After all views, which then know what is selected when a trace has opened.
    explicit OpenTraces(const Shell& shell);
    [[nodiscard]] Opener& opener() { return opener_; }
    [[nodiscard]] RunFollower& follower() { return follower_; }
    void setRecording(std::function<bool()> isRecording) { isRecording_ = std::move(isRecording); }
    /// Another file lies under the same name now, by our own doing.
    void reopen(const QString& trace);

public Q_SLOTS:
    void poll();

private:
    void follow(const TraceWatch::Change& change);

    Opener opener_{data_, selection_};
    RunFollower follower_{data_, selection_, opener_};
    std::function<bool()> isRecording_ = [] { return false; };
    QTimer poll_;
    TraceWatch watch_;
    Task watching_{this}; ///< what the file system says of the open files
};

} // namespace ponderscope
