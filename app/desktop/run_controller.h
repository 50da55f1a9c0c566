// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/desktop/record_command.h"
#include "app/desktop/recorder.h"
#include "app/desktop/shell.h"
#include "app/desktop/thinker.h"
#include "core/trace/records.h"

#include <QPointer>
#include <QString>

#include <functional>
#include <optional>

namespace ponderscope {

class DockLayout;
class OpenTraces;
class RecordDialog;
class RecordingStatus;
class RunEdits;
class ThinkPanel;

/// A recording that repeats a run of \p trace with another policy: the same windows, precision, steps and
/// start state. \p kv: the KV policy for stopped tokens. The caller sets text, checkpoint and trace.
RecordRequest rerun_request(const RunInfo& run, const QString& trace, const QString& policy,
                            const QString& kv);

/// Makes runs: recordings, exact reruns, generations. Owns the processes and the file of temporary runs.
class RunController : public ShellPart {
    Q_OBJECT
public:
    RunController(const Shell& shell, OpenTraces& traces, RunEdits& edits, DockLayout& docks);
    ~RunController() override;
    [[nodiscard]] Recorder& recorder() { return recorder_; }
    [[nodiscard]] Thinker& thinker() { return thinker_; }
    /// The file of temporary runs: what-ifs, reruns, generations. One for each window, in the user's cache.
    /// The file may not exist yet. Files of earlier sessions are removed after two weeks.
    [[nodiscard]] const QString& scratch() const { return scratch_; }
    [[nodiscard]] RecordDialog* recordDialog() const; ///< null: not open
    [[nodiscard]] ThinkPanel& thinkPanel() { return *think_; }
    void attachThink(ThinkPanel& panel);
    /// Asks the user whether a running recording or generation may be stopped.
    [[nodiscard]] bool mayClose();

    /// The current checkpoint folder of a run. Tries the recorded path, which may be relative to the trace's
    /// folder or a folder above, then the folder that the user chose for a moved checkpoint. Empty: unknown.
    [[nodiscard]] QString checkpointOf(const RunKey& key) const;
    /// A request that repeats run A over its tokens with the same settings, but without forced steps. No
    /// value: A is not recorded yet, as a message says, or the checkpoint is missing. Then a dialog asks for
    /// it and calls \p again.
    [[nodiscard]] std::optional<RecordRequest> requestLikeA(std::function<void()> again);
    /// Records a what-if about run \p question into the trace of temporary runs, and shows both runs.
    void ask(RecordRequest request, const RunKey& question);

public Q_SLOTS:
    void showRecordDialog(const ponderscope::RecordRequest& wanted = {});
    void cancelRecording();
    /// Records the tokens of a run again under another policy, and shows the result as B.
    void rerun(const ponderscope::RunKey& key, const QString& policy);
    /// Starts a generation that shows each new token.
    void think(const ponderscope::ThinkRequest& request);
    /// Continues run A with the token \p id at position \p at.
    void branch(qint64 at, int id);
    void showThink();

Q_SIGNALS:
    void started(); ///< a run starts, so the welcome page is hidden
    void rerunProgressed(int perMille);
    void rerunEnded(bool done);

private:
    /// Checkpoint folders of the shown runs, then of the samples, then recently used folders.
    [[nodiscard]] QStringList offeredCheckpoints();
    [[nodiscard]] std::optional<RecordRequest> requestLike(const RunKey& key, const QString& policy,
                                                           const std::string& kv,
                                                           const std::function<void()>& again);
    /// Prepares the trace of temporary runs on the machine of path \p lies. Empty: failed, with a message.
    [[nodiscard]] QString scratchFor(const QString& lies);
    void recordingEnded(bool done);
    void generate(ThinkRequest wanted);

    OpenTraces& traces_;
    RunEdits& edits_;
    DockLayout& docks_;
    Recorder recorder_;
    bool rerunning_ = false; ///< the current recording is a rerun for the policy lab
    Thinker thinker_;
    RunKey parent_;   ///< run that the generation continues; invalid: a prompt
    QString scratch_; ///< absolute
    RecordingStatus* recording_;
    QPointer<RecordDialog> recordDialog_;
    std::optional<RecordRequest> asked_; ///< the dialog's recording, while it runs
    ThinkPanel* think_ = nullptr;
};

} // namespace ponderscope
