// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/lineage/lineage.h"
#include "core/lineage/stored_weights.h"

namespace ponderscope {

/// AWM (arXiv 2510.06738, sections 3 and 4): hidden dimensions aligned by the embeddings of shared tokens (an
/// exact assignment on |cosine| of columns, with signs), then the unbiased CKA of W_q and W_k, layer with
/// layer or, where the numbers of layers differ, by the best assignment. z is filled in too. \p shared:
/// absent if a model has no tokenizer; then, and without a shared token, dimensions are compared as
/// stored, which needs query weights of one shape (InputError).
AttentionMatch match_attention(const StoredWeights& a, const StoredWeights& b,
                               const std::optional<SharedTokens>& shared, const ProgressSink& progress,
                               const std::stop_token& stop);

} // namespace ponderscope
