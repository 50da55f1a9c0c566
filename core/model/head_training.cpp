// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/head.h"

#include <ATen/ATen.h>

namespace ponderscope {

namespace {

at::Tensor logits_of(const at::Tensor& h, const HeadWeights& weights) {
    auto logits = at::matmul(h, weights.head.t());
    if (weights.head_bias.defined()) {
        logits = logits + weights.head_bias;
    }
    return h.scalar_type() == at::kDouble ? logits : logits.to(at::kFloat);
}

} // namespace

at::Tensor expected_embedding(const at::Tensor& h, const HeadWeights& weights, double temperature,
                              std::int64_t top_k) {
    auto logits = logits_of(h, weights) / temperature;
    const auto type = weights.embedding.scalar_type();
    if (top_k > 0 && top_k < logits.size(1)) {
        const auto [largest, ids] = logits.topk(top_k, -1);
        const auto probabilities = at::softmax(largest, -1).to(type);
        const auto embeddings =
            weights.embedding.index_select(0, ids.flatten()).view({ids.size(0), top_k, -1});
        return at::matmul(probabilities.unsqueeze(1), embeddings).squeeze(1);
    }
    return at::matmul(at::softmax(logits, -1).to(type), weights.embedding);
}

at::Tensor cross_entropy(const at::Tensor& h, const HeadWeights& weights, const at::Tensor& targets) {
    return at::cross_entropy_loss(logits_of(h, weights), targets, {}, at::Reduction::Mean,
                                  /*ignore_index=*/-1);
}

} // namespace ponderscope
