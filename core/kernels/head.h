// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>

namespace ponderscope {

/// The output head and the input embedding, shared with the model without a copy.
struct HeadWeights {
    at::Tensor head;              ///< [V, d]; the embedding itself when tied
    at::Tensor head_bias;         ///< [V]; undefined: none (used by phi)
    at::Tensor embedding;         ///< [V, d]; the expected embedding is a mean of its rows
    double softcap = 0.0;         ///< c of c·tanh(logits / c); 0: none. Gradients need 0
    double scale = 1.0;           ///< factor on logits, before the softcap
    double embedding_scale = 1.0; ///< the backbone's factor on rows of `embedding`
};

/// The requested results of one pass over the vocabulary. No other result is computed.
struct HeadRequest {
    at::Tensor targets;          ///< int64 [n]; -1: no target. Undefined: no NLL and no rank
    bool distribution = false;   ///< entropy, max_probability, margin, argmax
    std::int64_t candidates = 0; ///< number of most likely tokens to list; ties by ascending id
    at::Tensor previous;         ///< [n, d] previous states, for the divergences; costs another product
    at::Tensor previous_rows; ///< bool [n]: rows with a valid `previous`; NaN in other rows. Undefined: all
    // Expected embedding, Σ_v softmax(head(h) / temperature)_v · embedding[v]  (methods.md section 4):
    bool mixture = false;
    double temperature = 1.0;
    std::int64_t top_k = 0; ///< > 0: only the top_k largest logits, renormalised; ties by ascending id
};

/// Shapes are [n] unless noted, types fp32 or int64. Results that were not requested are undefined.
struct HeadResult {
    at::Tensor nll;     ///< nats; NaN if there is no target
    at::Tensor rank;    ///< 1 + number of larger logits; 0 without a target
    at::Tensor entropy; ///< nats
    at::Tensor max_probability;
    at::Tensor margin;                  ///< p1 - p2
    at::Tensor argmax;                  ///< the lowest id among equal logits
    at::Tensor candidate_ids;           ///< int64 [n, candidates]
    at::Tensor candidate_probabilities; ///< [n, candidates]
    at::Tensor kl_previous_current;     ///< KL(P_{k-1} || P_k); NaN in rows that previous_rows leaves out
    at::Tensor kl_current_previous;     ///< KL(P_k || P_{k-1}); NaN where kl_previous_current is NaN
    at::Tensor mixture;                 ///< [n, d], fp32, without the method's scale
};

/// All tensors of a HeadResult, for code that treats them alike.
constexpr auto head_result_fields =
    std::to_array({&HeadResult::nll, &HeadResult::rank, &HeadResult::entropy, &HeadResult::max_probability,
                   &HeadResult::margin, &HeadResult::argmax, &HeadResult::candidate_ids,
                   &HeadResult::candidate_probabilities, &HeadResult::kl_previous_current,
                   &HeadResult::kl_current_previous, &HeadResult::mixture});

/// Computes the results from the logits of some rows at a time, so that [n, V] never exists for all rows. On
/// a GPU nothing is copied to the host. h: [n, d], states after the final norm, in any float type. Products
/// with fp32, bf16 and fp16 weights are summed in fp32; fp64 states are computed in fp64. No gradient.
/// Probabilities of a row are NaN if a logit is NaN or +infinity, or if all are -infinity. Ids stay valid. A
/// divergence is infinite if a token is impossible (-infinity) in the second distribution only. c10::Error if
/// shapes do not fit.
HeadResult read_out(const at::Tensor& h, const HeadWeights& weights, const HeadRequest& request);

/// For training. Both functions are differentiable and hold the logits of all rows. The embedding [n, d] has
/// its table's type. The cross-entropy is the mean over rows with a target other than -1, an fp32 scalar.
at::Tensor expected_embedding(const at::Tensor& h, const HeadWeights& weights, double temperature,
                              std::int64_t top_k);
at::Tensor cross_entropy(const at::Tensor& h, const HeadWeights& weights, const at::Tensor& targets);

/// Logits [n, V] in fp32.
at::Tensor full_logits(const at::Tensor& h, const HeadWeights& weights);

} // namespace ponderscope
