// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/record/session.h"
#include "core/trace/reader.h"

#include <stop_token>
#include <vector>

namespace ponderscope {

/// Reads the sequences of a run back from its trace, with titles, groups and labels, so that an exact rerun
/// needs no text files. For a partial run: all tokens so far, or with \p finished only the finished
/// sequences. \p stop throws Cancelled.
std::vector<SequenceInput> recorded_sequences(const TraceReader& trace, const RunInfo& run,
                                              const std::stop_token& stop = {}, bool finished = false);

/// The finished sequences of a run, with tokens and texts. InputError: the run does not exist or has no
/// finished sequence.
std::vector<SequenceInput> sequences_of(const RunReference& reference);

} // namespace ponderscope
