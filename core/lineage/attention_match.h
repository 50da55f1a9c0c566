// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/lineage/lineage.h"
#include "core/lineage/stored_weights.h"

namespace ponderscope {

/// AWM (arXiv 2510.06738, sections 3 and 4). First the hidden dimensions are aligned by the embeddings of
/// shared tokens. The alignment is an exact assignment on |cosine| of columns, with signs. Then the unbiased
/// CKA of W_q and W_k is computed layer by layer, or by the best assignment if the numbers of layers differ.
/// Fills in z. \p shared is absent if a model has no tokenizer. Without shared tokens the dimensions keep
/// their stored order, which needs query weights of one shape (InputError).
AttentionMatch match_attention(const StoredWeights& a, const StoredWeights& b,
                               const std::optional<SharedTokens>& shared, const ProgressSink& progress,
                               const std::stop_token& stop);

} // namespace ponderscope
