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

/// Annotations of the tokens of a sequence (core/trace/tools/annotations.h).
struct TokenAnnotation {
    QString name;
    bool category = false;
    QStringList classes;        ///< of a category
    std::vector<double> values; ///< by token: a number, or that of a class; NaN: none
};

/// A sequence of a run, loaded whole and never changed afterwards. Shared between views.
struct SequenceData {
    RunKey run;
    qint64 sequence = 0;
    TokenColumns tokens;
    std::string text; ///< UTF-8; token spans are byte offsets into it. Empty for ids only.
    std::vector<TokenAnnotation> annotations; ///< by name; those that were made for this run's tokens

    [[nodiscard]] const TokenAnnotation* annotation(const QString& name) const; ///< null: none of that name
};

/// A run that is being computed and is in no file yet: one sequence. Blocks are never changed; more of it
/// comes as new ones.
struct LiveRun {
    RunInfo info; ///< id 1; scored_tokens 0, so that no reader expects them in a file
    std::vector<SignalInfo> signalInfos;
    SequenceInfo sequence; ///< index 0
    std::shared_ptr<const SequenceData> tokens;
    std::map<QString, std::shared_ptr<const SignalChunk>> chunks; ///< by signal
    QHash<int, QString> labels;                                   ///< of candidates, by id
};

/// All open traces. Lives on the GUI thread; reads on a worker thread of its own; hands out shared immutable
/// blocks.
///
/// The asking functions return what is there, or null and start to load it; `…Ready` says when to ask again.
/// Views therefore paint what they have and never wait.
class TraceData : public QObject {
    Q_OBJECT
public:
    /// \p cacheBytes: sequences and signals that no view holds any more are forgotten, oldest use first,
    /// beyond this.
    explicit TraceData(QObject* parent = nullptr, std::size_t cacheBytes = std::size_t{768} << 20);
    ~TraceData() override;

    /// Starts to open a trace; ends in traceOpened or failed. A trace that is open is read again.
    void open(const QString& path);
    void close(const QString& path);
    /// Shows a run under a name that no file has, as the only one of a trace that is not among traces(); the
    /// next call with that name replaces it. Emits what opening and growing traces emit.
    void showLive(const QString& name, LiveRun run);
    void closeLive(const QString& name);
    [[nodiscard]] bool isLive(const QString& trace) const;
    [[nodiscard]] QStringList liveNames() const;
    /// Names the trace of temporary runs: what-ifs, reruns, generations. Call this before the trace is
    /// opened.
    void setScratch(const QString& trace);
    [[nodiscard]] bool isScratch(const QString& trace) const;
    /// Looks for new runs, sequences and tokens of a trace that is still being written, or of all; emits what
    /// changed.
    void refresh(const QString& trace);
    void refresh();
    [[nodiscard]] bool isOpen(const QString& trace) const;
    [[nodiscard]] std::size_t cachedBytes() const;
    /// True if no read is running or waiting; replies may still be in the event loop.
    [[nodiscard]] bool idle() const;

    [[nodiscard]] QStringList traces() const; ///< absolute paths, in opening order
    /// The files of a trace: itself, or its shards.
    [[nodiscard]] QStringList files(const QString& trace) const;
    [[nodiscard]] std::vector<RunInfo>
    runs(const QString& trace) const; ///< after traceOpened
    [[nodiscard]] std::vector<TrainingInfo> trainings(const QString& trace) const; ///< likewise
    [[nodiscard]] const RunInfo*
    run(const RunKey& key) const; ///< valid until the next event; null when unknown
    /// The sequences by index; valid until the next event, as are the next two.
    [[nodiscard]] std::span<const SequenceInfo> sequences(const RunKey& key) const;
    [[nodiscard]] const SequenceInfo* sequenceInfo(const RunKey& key, qint64 sequence) const; ///< or null
    [[nodiscard]] std::span<const SignalInfo> signalsOf(const RunKey& key) const;
    /// The same, to be held: never changed, replaced when the run grows. Null when unknown.
    [[nodiscard]] std::shared_ptr<const RunContents> contents(const RunKey& key) const;
    /// The run is being computed or recorded and has nothing to show so far.
    [[nodiscard]] bool isBeginning(const RunKey& key) const;
    /// Faults while the run was recorded, a sentence each.
    [[nodiscard]] QStringList faults(const RunKey& key) const;

    [[nodiscard]] std::shared_ptr<const SequenceData> sequence(const RunKey& key, qint64 sequence);
    /// Whether the sequence was requested and its page of the file could not be read; failed() gave the
    /// reason.
    [[nodiscard]] bool isUnreadable(const RunKey& key, qint64 sequence) const;
    [[nodiscard]] std::shared_ptr<const SignalChunk> signal(const RunKey& key, qint64 sequence,
                                                            const QString& name);
    /// Rows of a signal around the row of one token: the whole of a short sequence, a page of a long one.
    /// Null: not loaded yet; rowsReady follows (for a short sequence, signalReady).
    [[nodiscard]] std::shared_ptr<const SignalChunk> signalAt(const RunKey& key, qint64 sequence,
                                                              const QString& name, qint64 row);
    /// A token's text for lists, with unprintable characters made visible ("␣the", "⏎", "‹E2 80›"). Empty
    /// until known.
    [[nodiscard]] QString tokenLabel(const RunKey& key, int id);

Q_SIGNALS:
    void traceOpened(const QString& path);
    void traceChanged(const QString& path); ///< runs, sequences or trainings were added or grew
    /// This run grew, was renamed, annotated or became readable: what was asked of it may have another
    /// answer. Before traceChanged.
    void runChanged(const ponderscope::RunKey& run);
    void traceClosed(const QString& path);
    void failed(const QString& path, const QString& sentence);
    void sequenceReady(const ponderscope::RunKey& run, qint64 sequence);
    /// Emitted also if the run has no such signal, or if the signal could not be read: signal() then stays
    /// null until the trace changes.
    void signalReady(const ponderscope::RunKey& run, qint64 sequence, const QString& name);
    void rowsReady(const ponderscope::RunKey& run, qint64 sequence, const QString& name);
    void tokenLabelsReady(const ponderscope::RunKey& run);

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace ponderscope
