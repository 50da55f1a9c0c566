// SPDX-License-Identifier: GPL-3.0-or-later
// Arrays in the order of the references.
#pragma once

#include "core/ponder/engine/engine.h"

#include <cstdint>

namespace ponderscope::testing {

/// The last positions of logits [B,T,V], as many as the reference kept.
NamedArray tail(const NamedArray& logits, std::int64_t positions);
/// Weights of depth attention, ours [B, T, head, source], in the reference's order [B, head, T, source].
NamedArray heads_first(const NamedArray& ours);
/// Row 0 of a signal [B, T, K] of exits over layers as the reference has it, [layers, T]: \p first the first
/// step that it holds.
NamedArray exit_rows(const NamedArray& signal, std::int64_t first);
/// What the reference says of exits after blocks: without its first row, which is of the embeddings, or of
/// them and the first block.
NamedArray without_embeddings(const NamedArray& theirs);

} // namespace ponderscope::testing
