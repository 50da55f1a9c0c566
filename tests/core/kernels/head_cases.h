// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernels/head.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

/// Random read-outs for the tests of the head.
namespace ponderscope::testing {

inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double infinity = std::numeric_limits<double>::infinity();

inline at::Tensor normal(at::IntArrayRef sizes, std::uint64_t seed, double scale = 1) {
    auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
    return at::randn(sizes, generator, at::kFloat) * scale;
}

struct Case {
    at::Tensor h;
    HeadWeights weights;
    HeadRequest request;
};

/// Everything that can be asked for at once. `spread` is about the standard deviation of the logits.
inline Case make_case(std::int64_t n, std::int64_t vocabulary, std::int64_t d, double spread,
                      std::uint64_t seed) {
    Case c;
    c.h = normal({n, d}, seed);
    c.weights.head = normal({vocabulary, d}, seed + 1, spread / std::sqrt(static_cast<double>(d)));
    c.weights.embedding = normal({vocabulary, d}, seed + 2);
    c.request.targets =
        at::randint(-1, vocabulary, {n}, at::make_generator<at::CPUGeneratorImpl>(seed + 3), at::kLong);
    c.request.distribution = true;
    c.request.candidates = std::min<std::int64_t>(10, vocabulary);
    c.request.previous = c.h + normal({n, d}, seed + 4, 0.3);
    c.request.mixture = true;
    return c;
}

/// Logits of unscaled, uncapped weights.
inline at::Tensor reference_logits(const at::Tensor& h, const HeadWeights& weights) {
    const auto compute = h.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    const auto logits = at::matmul(h.to(compute), weights.head.to(compute).t());
    return weights.head_bias.defined() ? logits + weights.head_bias.to(compute) : logits;
}

/// Σ p (log p - log q), a term with p = 0 being 0; infinite where a word is impossible in q alone, however
/// small p is.
inline at::Tensor reference_divergence(const at::Tensor& log_p, const at::Tensor& log_q) {
    const auto terms = (log_p.exp() * (log_p - log_q)).masked_fill(log_q.eq(-infinity), infinity);
    // Of equal distributions rounding makes a sum that is a little below 0.
    return terms.masked_fill(log_p.eq(-infinity), 0).sum(-1).clamp_min(0);
}

/// read_out from the definitions, with a sort of whole rows.
inline HeadResult reference_read_out(const at::Tensor& h, const HeadWeights& weights,
                                     const HeadRequest& request) {
    const auto logits = reference_logits(h, weights);
    const auto log_p = at::log_softmax(logits, -1);
    HeadResult result;
    if (request.targets.defined()) {
        const auto has_target = request.targets.ge(0);
        const auto index = request.targets.clamp_min(0).unsqueeze(1);
        const auto nll = log_p.gather(1, index).squeeze(1).neg();
        result.nll = at::where(has_target, nll, at::full_like(nll, nan)).to(at::kFloat);
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
        const auto log_previous = at::log_softmax(reference_logits(request.previous, weights), -1);
        result.kl_previous_current = reference_divergence(log_previous, log_p).to(at::kFloat);
        result.kl_current_previous = reference_divergence(log_p, log_previous).to(at::kFloat);
        if (request.previous_rows.defined()) {
            for (auto* kl : {&result.kl_previous_current, &result.kl_current_previous}) {
                *kl = at::where(request.previous_rows, *kl, at::full_like(*kl, nan));
            }
        }
    }
    if (request.mixture) {
        auto scaled = logits / request.temperature;
        if (request.top_k > 0 && request.top_k < logits.size(1)) {
            const auto kept = order.narrow(1, 0, request.top_k);
            const auto nothing = at::full_like(scaled, -infinity);
            scaled = nothing.scatter(1, kept, scaled.gather(1, kept));
        }
        result.mixture =
            at::matmul(at::softmax(scaled, -1), weights.embedding.to(scaled.scalar_type())).to(at::kFloat);
    }
    return result;
}

inline double largest_difference(const at::Tensor& a, const at::Tensor& b) {
    EXPECT_EQ(a.defined(), b.defined());
    if (!a.defined() || a.numel() == 0) {
        return 0;
    }
    EXPECT_EQ(a.sizes(), b.sizes());
    EXPECT_TRUE(at::equal(a.isnan(), b.isnan())) << "NaN in other places";
    const auto both = a.to(at::kDouble).eq(b.to(at::kDouble));
    return at::where(both, 0.0, (a.to(at::kDouble) - b.to(at::kDouble)).abs())
        .nan_to_num(0.0, infinity)
        .max()
        .item<double>();
}

} // namespace ponderscope::testing
