// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/records.h"
#include "views/common/selection.h"

#include <QHash>
#include <QObject>
#include <QString>
#include <QStringList>

#include <map>
#include <memory>
#include <span>
#include <vector>

namespace ponderscope {

struct RunContents;

/// An annotation of the tokens of a sequence (core/trace/tools/annotations.h).
struct TokenAnnotation {
    QString name;
    bool category = false;
    QStringList classes;        ///< for a category
    std::vector<double> values; ///< value of each token: a number, or the index of its class; NaN: no value
};

/// A sequence of a run, loaded whole. Immutable; shared between views.
struct SequenceData {
    RunKey run;
    qint64 sequence = 0;
    TokenColumns tokens;
    std::string text; ///< UTF-8; token spans are byte offsets in it. Empty for runs with ids only.
    std::vector<TokenAnnotation> annotations; ///< sorted by name; only annotations of this run's tokens

    [[nodiscard]] const TokenAnnotation* annotation(const QString& name) const; ///< null: none
};

/// The steps of one sequence's tokens under a halting policy, by replay.
struct ReplayedSteps {
    RunKey run;
    qint64 sequence = -1; ///< -1: no replay
    QString policy;       ///< "entropy:theta=1.37"
    qint64 maxSteps = 0;
    std::vector<std::int32_t> steps; ///< last step of each row of the sequence
};

/// A run of one sequence that is being computed and is in no file yet. New tokens need a new LiveRun.
struct LiveRun {
    RunInfo info; ///< has id 1, and scored_tokens 0, so that Compare does not look for the run in a file
    std::vector<SignalInfo> signalInfos;
    SequenceInfo sequence; ///< index 0
    std::shared_ptr<const SequenceData> tokens;
    std::map<QString, std::shared_ptr<const SignalChunk>> chunks; ///< by signal
    QHash<int, QString> labels;                                   ///< labels of candidates, by token id
};

/// All open traces. Lives on the GUI thread, reads on its own worker, and returns shared immutable blocks.
///
/// If a block is not loaded yet, its getter returns null and starts to load it. A `…Ready` signal follows. So
/// views paint loaded blocks and never wait.
class TraceData : public QObject {
    Q_OBJECT
public:
    /// \p cacheBytes: beyond this size, drops data that no view uses, least recently used first.
    explicit TraceData(QObject* parent = nullptr, std::size_t cacheBytes = std::size_t{768} << 20);
    ~TraceData() override;

    /// Starts to open a trace; emits traceOpened or failed. If the trace is open, reads it again.
    void open(const QString& path);
    void close(const QString& path);
    /// Shows a run as the only run of a trace called \p name. This trace is not a file and is not listed in
    /// traces(). The next call with this name replaces it. Emits traceOpened or runChanged, and …Ready.
    void showLive(const QString& name, LiveRun run);
    void closeLive(const QString& name);
    [[nodiscard]] bool isLive(const QString& trace) const;
    [[nodiscard]] QStringList liveNames() const;
    /// Sets the trace of temporary runs: what-ifs, reruns, generations. Call it before the trace is opened.
    void setScratch(const QString& trace);
    [[nodiscard]] bool isScratch(const QString& trace) const;
    /// Looks for new runs, sequences and tokens of a trace, or of all traces, and emits the changes.
    void refresh(const QString& trace);
    void refresh();
    [[nodiscard]] bool isOpen(const QString& trace) const;
    [[nodiscard]] std::size_t cachedBytes() const;
    /// Whether no read is running or waiting. Replies may still be in the event loop.
    [[nodiscard]] bool idle() const;

    [[nodiscard]] const QStringList& traces() const; ///< absolute paths, in the order of opening
    /// The files of a trace: itself, or its shards.
    [[nodiscard]] QStringList files(const QString& trace) const;
    [[nodiscard]] std::vector<RunInfo> runs(const QString& trace) const;           ///< after traceOpened
    [[nodiscard]] std::vector<TrainingInfo> trainings(const QString& trace) const; ///< after traceOpened
    [[nodiscard]] const RunInfo* run(const RunKey& key) const; ///< null: unknown; valid until the next event
    /// The sequences by index. Valid until the next event, like the results of the next two functions.
    [[nodiscard]] std::span<const SequenceInfo> sequences(const RunKey& key) const;
    [[nodiscard]] const SequenceInfo* sequenceInfo(const RunKey& key, qint64 sequence) const; ///< or null
    [[nodiscard]] std::span<const SignalInfo> signalsOf(const RunKey& key) const;
    /// The contents of a run as an immutable object, replaced when the run grows. Null: unknown.
    [[nodiscard]] std::shared_ptr<const RunContents> contents(const RunKey& key) const;
    /// Whether the run is being computed or recorded and has no data yet.
    [[nodiscard]] bool isBeginning(const RunKey& key) const;
    /// Faults of the recording, one sentence each.
    [[nodiscard]] QStringList faults(const RunKey& key) const;

    [[nodiscard]] std::shared_ptr<const SequenceData> sequence(const RunKey& key, qint64 sequence);
    /// Whether reading the sequence failed; failed() gave the reason.
    [[nodiscard]] bool isUnreadable(const RunKey& key, qint64 sequence) const;
    [[nodiscard]] std::shared_ptr<const SignalChunk> signal(const RunKey& key, qint64 sequence,
                                                            const QString& name);
    /// Rows of a signal around a token's row: all rows of a short sequence, a page of a long one. Null: not
    /// loaded yet; rowsReady follows (signalReady for a short sequence).
    [[nodiscard]] std::shared_ptr<const SignalChunk> signalAt(const RunKey& key, qint64 sequence,
                                                              const QString& name, qint64 row);
    /// A token's text for lists, made visible ("␣the", "⏎", "‹E2 80›"). Empty while unknown.
    [[nodiscard]] QString tokenLabel(const RunKey& key, int id);

Q_SIGNALS:
    void traceOpened(const QString& path);
    void traceChanged(const QString& path); ///< runs, sequences or trainings were added or have grown
    /// This run grew, was renamed, was annotated or became readable. Emitted before traceChanged.
    void runChanged(const ponderscope::RunKey& run);
    void traceClosed(const QString& path);
    void failed(const QString& path, const QString& sentence);
    void sequenceReady(const ponderscope::RunKey& run, qint64 sequence);
    /// Emitted also if the signal is absent or unreadable. Then signal() is null until the trace changes.
    void signalReady(const ponderscope::RunKey& run, qint64 sequence, const QString& name);
    void rowsReady(const ponderscope::RunKey& run, qint64 sequence, const QString& name);
    void tokenLabelsReady(const ponderscope::RunKey& run);

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace ponderscope
