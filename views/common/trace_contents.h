// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/records.h"
#include "views/common/trace_data.h"

#include <QStringList>

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

namespace ponderscope {

class AnnotationReader;
class TraceReader;

/// The contents of a run, except tokens and signal values. Immutable: a run that grew gets a new object.
struct RunContents {
    RunInfo info;
    std::vector<SequenceInfo> sequences; ///< by index
    std::vector<SignalInfo> signals;
    /// Faults of the recording, and of the run's annotations.
    std::vector<FaultInfo> faults;
};

struct TraceContents {
    QStringList files;                                    ///< files to read: the trace itself, or its shards
    std::vector<std::shared_ptr<const RunContents>> runs; ///< by id
    std::vector<TrainingInfo> trainings;
    qint64 annotationsStamp = 0; ///< time stamp of the annotations file; 0: no file

    [[nodiscard]] std::shared_ptr<const RunContents> run(qint64 id) const; ///< null: unknown
};

/// Reads the contents. A run that has not changed since \p before keeps its object. For complete runs,
/// compares only the number of sequences. Throws the InputErrors of TraceReader.
TraceContents read_contents(const TraceReader& reader, const TraceContents& before = {});
bool same_trainings(const std::vector<TrainingInfo>& a, const std::vector<TrainingInfo>& b);

/// The annotations beside a trace; empty: none, or unreadable (read_contents reports why).
std::optional<AnnotationReader> open_annotations(const TraceReader& reader);

/// Reads a sequence's text and tokens in slices, so that reading can stop between them. \p old: the known
/// part, which is extended; null: none. Returns null if stopped. Throws InputErrors of TraceReader.
std::shared_ptr<const SequenceData> read_sequence(const TraceReader& reader,
                                                  const std::optional<AnnotationReader>& annotations,
                                                  const RunKey& run, qint64 sequence,
                                                  const std::shared_ptr<const SequenceData>& old,
                                                  const std::atomic<bool>& stopped);

struct ReadSignal {
    bool stopped = false;
    std::shared_ptr<const SignalChunk> chunk; ///< null: the sequence has no values of the signal
};
/// Reads a signal of a sequence, like read_sequence. InputError also if the chunks do not fit together.
ReadSignal read_signal(const TraceReader& reader, const RunKey& run, qint64 sequence, const std::string& name,
                       const std::shared_ptr<const SignalChunk>& old, const std::atomic<bool>& stopped);

} // namespace ponderscope
