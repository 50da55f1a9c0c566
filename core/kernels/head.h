// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>

namespace ponderscope {

/// The output head and the input table, as the model holds them. No copies.
struct HeadWeights {
    at::Tensor head;              ///< [V, d]; the embedding itself when tied
    at::Tensor head_bias;         ///< [V] or undefined (phi)
    at::Tensor embedding;         ///< [V, d]; values of the expected embedding
    double softcap = 0.0;         ///< c of c·tanh(logits / c); 0: none. Not with gradients.
    double scale = 1.0;           ///< what logits are multiplied with, before the softcap
    double embedding_scale = 1.0; ///< what the backbone multiplies rows of `embedding` with
};

/// The requested results of one pass over the vocabulary. Nothing else is computed.
struct HeadRequest {
    at::Tensor targets;          ///< int64 [n]; -1: no target. Undefined: no NLL and no rank.
    bool distribution = false;   ///< entropy, max_probability, margin, argmax
    std::int64_t candidates = 0; ///< the most likely tokens, with probabilities; ties: the lower id first
    at::Tensor previous; ///< [n, d] states of the step before, for both KL divergences: head products again
    at::Tensor previous_rows; ///< bool [n] or undefined: rows whose `previous` counts; the others get NaN
    // Expected embedding, Σ_v softmax(head(h) / temperature)_v · embedding[v]  (methods.md section 4):
    bool mixture = false;
    double temperature = 1.0;
    std::int64_t top_k = 0; ///< > 0: over the top_k largest logits only, renormalised; ties: lower id
};

/// All fp32 or int64, [n] unless said. Undefined when not requested.
struct HeadResult {
    at::Tensor nll;     ///< nats; NaN if there is no target
    at::Tensor rank;    ///< 1 + number of larger logits; 0 if there is no target
    at::Tensor entropy; ///< nats
    at::Tensor max_probability;
    at::Tensor margin;                  ///< p1 - p2
    at::Tensor argmax;                  ///< lowest id of equals
    at::Tensor candidate_ids;           ///< int64 [n, candidates]
    at::Tensor candidate_probabilities; ///< [n, candidates]
    at::Tensor kl_previous_current;     ///< KL(P_{k-1} || P_k); NaN in rows that previous_rows leaves out
    at::Tensor kl_current_previous;     ///< KL(P_k || P_{k-1}); likewise
    at::Tensor mixture;                 ///< [n, d], fp32, not scaled by c
};

/// All tensors of a HeadResult, to treat them alike.
constexpr std::array<at::Tensor HeadResult::*, 11> head_result_fields = {&HeadResult::nll,
                                                                         &HeadResult::rank,
                                                                         &HeadResult::entropy,
                                                                         &HeadResult::max_probability,
                                                                         &HeadResult::margin,
                                                                         &HeadResult::argmax,
                                                                         &HeadResult::candidate_ids,
                                                                         &HeadResult::candidate_probabilities,
                                                                         &HeadResult::kl_previous_current,
                                                                         &HeadResult::kl_current_previous,
                                                                         &HeadResult::mixture};

/// Plain operations on the logits of some rows at a time, which never exist as [n, V] of all rows. On a GPU
/// nothing is read back.
/// h: [n, d], states after the final norm, in any float type; fp32, bf16 and fp16 weights are multiplied with
/// fp32 sums, and all of fp64 states is fp64. No gradient. A NaN among a row's logits makes its probabilities
/// NaN; ids stay valid. So does +infinity; logits that are all -infinity have no probabilities either. A
/// divergence is infinite where a word is impossible (-infinity) in
/// the second distribution alone.
/// c10::Error when shapes do not fit.
HeadResult read_out(const at::Tensor& h, const HeadWeights& weights, const HeadRequest& request);

/// Differentiable expected embedding [n, d] in the embedding's type, and mean cross-entropy (fp32 scalar;
/// rows with target -1 count for nothing), for training: plain operations on the logits of all rows.
at::Tensor expected_embedding(const at::Tensor& h, const HeadWeights& weights, double temperature,
                              std::int64_t top_k);
at::Tensor cross_entropy(const at::Tensor& h, const HeadWeights& weights, const at::Tensor& targets);

/// Logits [n, V] in fp32, for `logits` alone.
at::Tensor full_logits(const at::Tensor& h, const HeadWeights& weights);

} // namespace ponderscope
