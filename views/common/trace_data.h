// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/records.h"
#include "views/common/selection.h"

#include <QObject>
#include <QString>

#include <memory>
#include <vector>

namespace ponderscope {

/// One sequence of one run, loaded whole and never changed afterwards. Shared between views.
struct SequenceData {
    RunKey run;
    qint64 sequence = 0;
    TokenColumns tokens;
    std::string text; ///< UTF-8; token spans are byte offsets into it. Empty for ids only.
};

/// All open traces. Lives on the GUI thread; reads on a worker thread of its own; hands out shared immutable blocks.
///
/// The asking functions return what is there, or null and start to load it; `…Ready` says when to ask again. Views therefore paint
/// what they have and never wait.
class TraceData : public QObject {
    Q_OBJECT
public:
    explicit TraceData(QObject* parent = nullptr);
    ~TraceData() override;

    /// Starts to open a trace; ends in traceOpened or failed. A trace that is open is read again.
    void open(const QString& path);
    void close(const QString& path);
    /// Looks for new runs, sequences and tokens of traces that are still being written; emits what changed.
    void refresh();

    [[nodiscard]] QStringList traces() const;                             ///< absolute paths, in opening order
    [[nodiscard]] std::vector<RunInfo> runs(const QString& trace) const;  ///< known after traceOpened
    [[nodiscard]] const RunInfo* run(const RunKey& key) const;            ///< valid until the next event; null when unknown
    [[nodiscard]] std::vector<SequenceInfo> sequences(const RunKey& key) const;
    [[nodiscard]] std::vector<SignalInfo> signalsOf(const RunKey& key) const;

    [[nodiscard]] std::shared_ptr<const SequenceData> sequence(const RunKey& key, qint64 sequence);
    [[nodiscard]] std::shared_ptr<const SignalChunk> signal(const RunKey& key, qint64 sequence, const QString& name);
    /// A token's text for lists, with what cannot be printed made visible ("␣the", "⏎", "‹E2 80›"). Empty until known.
    [[nodiscard]] QString tokenLabel(const RunKey& key, int id);

signals:
    void traceOpened(const QString& path);
    void traceChanged(const QString& path); ///< runs or sequences were added or grew
    void traceClosed(const QString& path);
    void failed(const QString& path, const QString& sentence);
    void sequenceReady(const ponderscope::RunKey& run, qint64 sequence);
    void signalReady(const ponderscope::RunKey& run, qint64 sequence, const QString& name);

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace ponderscope
