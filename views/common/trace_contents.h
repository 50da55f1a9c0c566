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

/// The contents of a run, without tokens and signal values. Never changed: a run that grew gets another
/// block.
struct RunContents {
    RunInfo info;
    std::vector<SequenceInfo> sequences; ///< by index
    std::vector<SignalInfo> signals;
    /// Faults while the run was recorded, and faults of its annotations.
    std::vector<FaultInfo> faults;
};

/// The content of one file.
struct TraceContents {
    QStringList files;                                    ///< files to read: the trace itself, or its shards
    std::vector<std::shared_ptr<const RunContents>> runs; ///< by id
    std::vector<TrainingInfo> trainings;
    qint64 annotationsStamp = 0; ///< of the file of annotations; another one: it was written again. 0: none

    [[nodiscard]] std::shared_ptr<const RunContents> run(qint64 id) const; ///< null: unknown
};

/// Reads all of it. If a run's block did not change since \p before, the same block is returned; of complete
/// runs only the number is read again. InputError as TraceReader.
TraceContents read_contents(const TraceReader& reader, const TraceContents& before = {});
/// Whether two trainings say the same.
bool same_trainings(const std::vector<TrainingInfo>& a, const std::vector<TrainingInfo>& b);

/// The annotations beside a trace; empty: none, or none that can be read (read_contents reports it).
std::optional<AnnotationReader> open_annotations(const TraceReader& reader);

/// Reads a sequence's text and tokens in slices, so that it can be given up between them. \p old: what is
/// known of it already, which is completed; null: nothing. Null: it was given up. InputError as TraceReader.
std::shared_ptr<const SequenceData> read_sequence(const TraceReader& reader,
                                                  const std::optional<AnnotationReader>& annotations,
                                                  const RunKey& run, qint64 sequence,
                                                  const std::shared_ptr<const SequenceData>& old,
                                                  const std::atomic<bool>& stopped);

struct ReadSignal {
    bool stopped = false;
    std::shared_ptr<const SignalChunk> chunk; ///< null: the sequence has no values of it
};
/// The same for a signal of it. InputError also where its chunks do not fit together.
ReadSignal read_signal(const TraceReader& reader, const RunKey& run, qint64 sequence, const std::string& name,
                       const std::shared_ptr<const SignalChunk>& old, const std::atomic<bool>& stopped);

} // namespace ponderscope
