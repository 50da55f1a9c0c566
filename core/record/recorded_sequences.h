// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/record/session.h"
#include "core/trace/reader.h"

#include <stop_token>
#include <vector>

namespace ponderscope {

/// The sequences that a run was made of, read back from its trace with titles, groups and labels: what an
/// exact rerun computes again, whatever became of the files. A partial run gives what it holds, or what it
/// \p finished alone. Cancelled by \p stop.
std::vector<SequenceInput> recorded_sequences(const TraceReader& trace, const RunInfo& run,
                                              const std::stop_token& stop = {}, bool finished = false);

/// What a run scored: its finished sequences, tokens and texts as they lie in the trace. InputError: a run
/// that cannot be found or has finished none.
std::vector<SequenceInput> sequences_of(const RunReference& reference);

} // namespace ponderscope
