// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/shell.h"
#include "views/common/task.h"

#include <functional>
#include <set>
#include <vector>

namespace ponderscope {

class OpenTraces;

/// Edits of runs: save, rename, remove, and find a moved checkpoint.
class RunEdits : public ShellPart {
    Q_OBJECT
public:
    RunEdits(const Shell& shell, OpenTraces& traces) : ShellPart(shell), traces_(traces) {}
    [[nodiscard]] bool isBusy() const { return edits_.isBusy(); }
    /// Asks for the moved checkpoint of a run, checks its digest, stores the folder and calls \p then.
    void locateCheckpoint(const RunKey& key, const std::function<void()>& then);
    /// Whether the window may close. Asks the user if temporary runs would be lost.
    [[nodiscard]] bool leavesScratch();

public Q_SLOTS:
    void renameRun(const ponderscope::RunKey& key, const QString& name);
    void removeRun(const ponderscope::RunKey& key);
    void keepRun(const ponderscope::RunKey& key);
    void keepTree(const std::vector<ponderscope::RunKey>& keys); ///< parents first

private:
    /// Edits a trace in the background and reads it again. On success, shows the text that \p edit returns
    /// and calls \p then.
    using RunEdit = std::function<QString(const std::stop_token&, const Task::Tell&)>;
    void editRuns(RunEdit edit, const QString& trace, const std::function<void()>& then = {});
    /// Asks for a trace and copies runs into it. \p then: called when all runs are copied.
    void keep(const QString& title, const std::vector<RunKey>& keys, const std::function<void()>& then);
    [[nodiscard]] std::vector<RunKey> runsNotKept() const; ///< temporary runs that were not copied

    OpenTraces& traces_;
    std::set<RunKey> kept_;     ///< temporary runs that were copied elsewhere
    bool scratchAsked_ = false; ///< the user agreed to lose temporary runs
    Task edits_{this};
    Task locating_{this};
};

} // namespace ponderscope
