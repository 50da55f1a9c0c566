// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/lineage/lineage.h"
#include "core/lineage/stored_weights.h"

#include <span>

namespace ponderscope {

/// AWM (arXiv 2510.06738, sections 3 and 4). Aligns the hidden dimensions by the embeddings of shared tokens:
/// assigns columns by |cosine| (assignment.h) and keeps the signs. Then computes the unbiased CKA of W_q and
/// W_k, layer by layer. If the numbers of layers differ, uses the best assignment of layers. Sets z. \p
/// shared is absent if a model has no tokenizer. Without shared tokens the dimensions keep their stored
/// order. InputError: there are no shared tokens, and the query weights of the models differ in shape.
AttentionMatch match_attention(const StoredWeights& a, const StoredWeights& b,
                               const std::optional<SharedTokens>& shared, const ProgressSink& progress,
                               const std::stop_token& stop);

/// Compares HuRef's invariant terms (arXiv 2312.04828, section 3.2) in the last layer of both models, and in
/// the layer before. x [T, d] are the embeddings of the tokens in \p rows_a and \p rows_b. The terms are
///   WqWk = (x W_q^T)(x W_k^T)^T,  WvWo = (x W_v^T)(x W_o)^T,
///   WuWd = (x (W_gate o W_up)^T)(x W_down)^T.
/// Computes the Pearson correlation between the T^2 entries of a term in both models, in fp64. Each head of
/// keys and values is repeated for all query heads that read it. Needs at least two tokens. No value if a
/// layer lacks one of the matrices; \p why names the matrix.
std::optional<InvariantTerms> invariant_terms(const StoredWeights& a, std::span<const std::int64_t> rows_a,
                                              const StoredWeights& b, std::span<const std::int64_t> rows_b,
                                              std::string& why, const ProgressSink& progress,
                                              const std::stop_token& stop);

} // namespace ponderscope
