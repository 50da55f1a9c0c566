// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/record_command.h"
#include "app/desktop/recorder.h"
#include "app/desktop/shell.h"
#include "app/desktop/thinker.h"
#include "core/trace/records.h"
#include "views/common/selection.h"

#include <QPointer>
#include <QString>

#include <utility>

namespace ponderscope {

class DockLayout;
class OpenTraces;
class RecordDialog;
class RecordingStatus;
class RunEdits;
class RunFollower;
class ThinkPanel;

/// The recording that repeats a run with another policy: the same checkpoint, windows, precision, steps and
/// start state. \p kv: what later tokens see of a stopped token. The text is left open.
RecordRequest rerun_request(const RunInfo& run, const QString& trace, const QString& policy,
                            const QString& kv);

/// The checkpoint folder of a run: as it is named, else relative to the trace's folder or one above it; empty
/// when it is nowhere.
QString find_checkpoint(const RunInfo& run, const QString& trace);

/// The file for temporary runs: what-ifs, reruns, generations. One a window, in the user's cache; the folder
/// is made when needed; files of earlier sessions are removed after two weeks.
class Scratch {
public:
    Scratch();
    [[nodiscard]] const QString& trace() const { return trace_; } ///< absolute; perhaps not there yet
    /// Makes its folder. Why it cannot be written, one sentence; empty: it can.
    [[nodiscard]] QString prepare() const;
    /// The same for runs on \p machine ("ssh://host"): a file in /tmp there. Empty: trace().
    [[nodiscard]] QString on(const QString& machine) const;

private:
    QString trace_;
};

/// Makes runs: recordings, exact reruns, generations. Owns the processes and where temporary runs go.
class RunController : public ShellPart {
    Q_OBJECT
public:
    RunController(const Shell& shell, OpenTraces& traces, RunEdits& edits, DockLayout& docks);
    ~RunController() override;
    [[nodiscard]] Recorder& recorder() { return recorder_; }
    [[nodiscard]] Thinker& thinker() { return thinker_; }
    [[nodiscard]] const Scratch& scratch() const { return scratch_; }
    [[nodiscard]] RunFollower& follower();
    [[nodiscard]] RecordDialog* recordDialog() const; ///< null unless it is open
    [[nodiscard]] ThinkPanel& thinkPanel() { return *think_; }
    void attachThink(ThinkPanel& panel);
    /// Asks whether a recording or a generation may be stopped.
    [[nodiscard]] bool mayClose();

    /// The checkpoint folder of a run where it is now; empty: not known.
    [[nodiscard]] QString checkpointOf(const RunKey& key) const;
    /// Prepares the trace of temporary runs. False, with a message, if that fails.
    [[nodiscard]] bool scratchReady();
    /// The trace of temporary runs, on the machine that computes them.
    [[nodiscard]] QString scratchFor(const QString& lies);

public Q_SLOTS:
    void showRecordDialog(const ponderscope::RecordRequest& wanted = {});
    void cancelRecording();
    /// Records the tokens of a run again under another policy, as B.
    void rerun(const ponderscope::RunKey& key, const QString& policy);
    /// Lets a model continue a prompt, token by token; the panel that asks for one.
    void think(const ponderscope::ThinkRequest& request);
    void showThink();

Q_SIGNALS:
    void started(); ///< a run starts: hide the welcome page
    void rerunProgressed(int perMille);
    void rerunEnded(bool done);

private:
    /// Checkpoint folders: of the runs on the screen, of the samples, then recently used ones.
    [[nodiscard]] QStringList offeredCheckpoints();
    /// Says what A − B is, of the runs that A and B are now; taken back when they are others.
    void sayPair();
    void unsayPair();

    OpenTraces& traces_;
    RunEdits& edits_;
    DockLayout& docks_;
    Recorder recorder_;
    bool rerunning_ = false; ///< the current recording is the lab's rerun
    Thinker thinker_;
    Scratch scratch_;
    RecordingStatus* recording_;
    QPointer<RecordDialog> recordDialog_;
    ThinkPanel* think_ = nullptr;
    QString pairSaid_; ///< of pairSaidOf_; empty: nothing
    std::pair<RunKey, RunKey> pairSaidOf_;
};

} // namespace ponderscope
