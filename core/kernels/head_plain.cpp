// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/head.h"

#include "core/kernels/cuda_library.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <limits>
#include <vector>

namespace ponderscope {

namespace {

/// Some thousand words at a time, where they have to be widened: a table of halves is as large as all logits
/// of many tokens.
at::Tensor product(const at::Tensor& h, const at::Tensor& head) {
    constexpr std::int64_t words = 4096;
    if (head.scalar_type() == h.scalar_type()) {
        return at::matmul(h, head.t());
    }
    std::vector<at::Tensor> parts;
    for (const at::Tensor& some : head.split(words)) {
        parts.push_back(at::matmul(h, some.to(h.scalar_type()).t()));
    }
    return at::cat(parts, -1);
}

at::Tensor logits_of(const at::Tensor& h, const HeadWeights& weights, at::ScalarType compute) {
    auto logits = product(h.to(compute), weights.head);
    if (weights.head_bias.defined()) {
        logits = logits + weights.head_bias.to(compute);
    }
    cap_logits(logits, weights);
    return logits;
}

/// Σ p (log p - log q), a term with p = 0 being 0; infinite where a word is impossible in q alone, however
/// small p is.
at::Tensor divergence(const at::Tensor& log_p, const at::Tensor& log_q) {
    const double infinity = std::numeric_limits<double>::infinity();
    const auto terms = (log_p.exp() * (log_p - log_q)).masked_fill(log_q.eq(-infinity), infinity);
    // Of equal distributions rounding makes a sum that is a little below 0.
    return terms.masked_fill(log_p.eq(-infinity), 0).sum(-1).clamp_min(0);
}

} // namespace

HeadResult read_out_plain(const at::Tensor& h, const HeadWeights& weights, const HeadRequest& request) {
    const c10::NoGradGuard no_grad;
    const auto compute = h.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    const auto logits = logits_of(h, weights, compute);
    const auto log_p = at::log_softmax(logits, -1);
    HeadResult result;
    result.log_sum_exp = at::logsumexp(logits, {-1}).to(at::kFloat);
    if (request.targets.defined()) {
        const auto has_target = request.targets.ge(0);
        const auto index = request.targets.clamp_min(0).unsqueeze(1);
        const auto nll = log_p.gather(1, index).squeeze(1).neg();
        result.nll = at::where(has_target, nll, at::full_like(nll, std::numeric_limits<double>::quiet_NaN()))
                         .to(at::kFloat);
        const auto larger = logits.gt(logits.gather(1, index)).sum(-1) + 1;
        result.rank = at::where(has_target, larger, at::zeros_like(larger));
    }
    // A stable sort keeps the lower id first among equals.
    const auto depth = std::max<std::int64_t>(request.candidates, request.distribution ? 2 : 0);
    at::Tensor order;
    if (depth > 0 || (request.mixture && request.top_k > 0)) {
        order = std::get<1>(at::sort(logits, /*stable=*/true, -1, /*descending=*/true));
    }
    if (request.distribution) {
        const auto p = log_p.exp();
        result.entropy = at::where(p.eq(0), at::zeros_like(p), p * log_p).sum(-1).neg().to(at::kFloat);
        const auto best = p.gather(1, order.narrow(1, 0, std::min<std::int64_t>(2, order.size(1))));
        result.max_probability = best.select(1, 0).to(at::kFloat);
        result.margin = best.size(1) > 1 ? (best.select(1, 0) - best.select(1, 1)).to(at::kFloat)
                                         : result.max_probability;
        result.argmax = order.select(1, 0).contiguous();
    }
    if (request.candidates > 0) {
        result.candidate_ids = order.narrow(1, 0, request.candidates).contiguous();
        result.candidate_probabilities = log_p.gather(1, result.candidate_ids).exp().to(at::kFloat);
    }
    if (request.previous.defined()) {
        const auto log_previous = at::log_softmax(logits_of(request.previous, weights, compute), -1);
        result.kl_previous_current = divergence(log_previous, log_p).to(at::kFloat);
        result.kl_current_previous = divergence(log_p, log_previous).to(at::kFloat);
        if (request.previous_rows.defined()) {
            for (auto* kl : {&result.kl_previous_current, &result.kl_current_previous}) {
                *kl = at::where(request.previous_rows, *kl,
                                at::full_like(*kl, std::numeric_limits<double>::quiet_NaN()));
            }
        }
    }
    if (request.mixture) {
        auto scaled = logits / request.temperature;
        if (request.top_k > 0 && request.top_k < logits.size(1)) {
            const auto kept = order.narrow(1, 0, request.top_k);
            const auto nothing = at::full_like(scaled, -std::numeric_limits<double>::infinity());
            scaled = nothing.scatter(1, kept, scaled.gather(1, kept));
        }
        result.mixture = at::matmul(at::softmax(scaled, -1), weights.embedding.to(compute)).to(at::kFloat);
    }
    return result;
}

at::Tensor full_logits(const at::Tensor& h, const HeadWeights& weights) {
    if (const CudaKernels* cuda = cuda_kernels(h); cuda != nullptr && cuda->read_out_fits(h, weights, {})) {
        const c10::NoGradGuard no_grad;
        return cuda->logits(h, weights);
    }
    const auto compute = h.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    return logits_of(h, weights, compute).to(at::kFloat);
}

} // namespace ponderscope
