// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/record/session.h"
#include "core/trace/reader.h"

#include <stop_token>
#include <vector>

namespace ponderscope {

/// The sequences that a run was made of, read back from its trace with titles, groups and labels: an exact
/// rerun computes them again and needs no text files. A partial run gives its tokens so far, or with \p
/// finished only its finished sequences. Cancelled by \p stop.
std::vector<SequenceInput> recorded_sequences(const TraceReader& trace, const RunInfo& run,
                                              const std::stop_token& stop = {}, bool finished = false);

/// What a run scored: the finished sequences of the trace, with tokens and texts. InputError: a run that
/// cannot be found or has finished none.
std::vector<SequenceInput> sequences_of(const RunReference& reference);

} // namespace ponderscope
