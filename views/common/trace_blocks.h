// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/trace_data.h"

#include <atomic>
#include <memory>
#include <optional>

namespace ponderscope {

class AnnotationReader;
class TraceReader;

/// The annotations beside a trace; nothing where there are none, or none that can be read (read_contents says
/// so).
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
