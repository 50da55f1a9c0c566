// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/record/session.h"
#include "core/trace/reader.h"

#include <vector>

namespace ponderscope {

/// What a run scored: its finished sequences, tokens and texts as they lie in the trace. InputError: a run
/// that cannot be found or has finished none.
std::vector<SequenceInput> sequences_of(const RunReference& reference);

} // namespace ponderscope
