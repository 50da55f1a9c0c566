// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/autocast.h"
#include "core/kernels/head.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <limits>
#include <optional>

namespace ponderscope {

namespace {

/// On a CPU the head multiplies in the table's type, although autocast may have made the states bf16.
Autocast head_autocast(const at::Tensor& h) {
    const at::DeviceType device = h.device().type();
    return {device, !h.is_cpu() && at::autocast::is_autocast_enabled(device),
            at::autocast::get_autocast_dtype(device)};
}

at::Tensor training_logits(const at::Tensor& h, const HeadWeights& weights) {
    TORCH_CHECK(weights.softcap == 0, "capped logits have no gradient here");
    const at::Tensor logits =
        at::linear(h.is_cpu() ? h.to(weights.head.scalar_type()) : h, weights.head,
                   weights.head_bias.defined() ? std::optional(weights.head_bias) : std::nullopt);
    return weights.scale == 1.0 ? logits : logits * weights.scale;
}

/// The ids of the top_k largest logits of every row. Of equal logits, the lower ids.
at::Tensor largest_ids(const at::Tensor& h, const HeadWeights& weights, std::int64_t top_k) {
    const c10::NoGradGuard no_grad;
    HeadRequest request;
    request.candidates = top_k;
    return read_out(h.detach(), weights, request).candidate_ids;
}

} // namespace

at::Tensor expected_embedding(const at::Tensor& states, const HeadWeights& weights, double temperature,
                              std::int64_t top_k) {
    TORCH_CHECK(temperature > 0, "expected_embedding: temperature ", temperature);
    const Autocast autocast = head_autocast(states);
    at::Tensor logits = training_logits(states, weights) / temperature;
    if (top_k > 0 && top_k < weights.head.size(0)) {
        const at::Tensor kept = at::zeros_like(logits, logits.options().dtype(at::kBool))
                                    .scatter_(1, largest_ids(states, weights, top_k), true);
        logits = logits.masked_fill(kept.logical_not(), -std::numeric_limits<double>::infinity());
    }
    return at::mm(at::softmax(logits, 1), weights.embedding).to(weights.embedding.scalar_type());
}

at::Tensor cross_entropy(const at::Tensor& states, const HeadWeights& weights, const at::Tensor& targets) {
    TORCH_CHECK(targets.sizes() == at::IntArrayRef({states.size(0)}), "cross_entropy: targets are ",
                targets.sizes(), " for states ", states.sizes());
    const Autocast autocast = head_autocast(states);
    return at::cross_entropy_loss(training_logits(states, weights), targets, {}, at::Reduction::Mean, -1);
}

} // namespace ponderscope
