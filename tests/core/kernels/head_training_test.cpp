// SPDX-License-Identifier: GPL-3.0-or-later
// The head's differentiable forms against read-outs and difference quotients.
#include "tests/core/kernels/head_cases.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace ponderscope {

using namespace testing;

namespace {

struct Trained {
    at::Tensor value;
    std::vector<at::Tensor> gradients;
};

/// Value and gradients of states, head, bias (if any) and embedding of a function of them.
template <typename Loss>
Trained train(const Case& c, const Loss& loss) {
    auto with = c;
    std::vector<at::Tensor> leaves;
    const auto leaf = [&](at::Tensor& tensor) {
        if (tensor.defined()) {
            tensor = tensor.detach().clone().requires_grad_(true);
            leaves.push_back(tensor);
        }
    };
    leaf(with.h);
    leaf(with.weights.head);
    leaf(with.weights.head_bias);
    leaf(with.weights.embedding);
    Trained result;
    result.value = loss(with.h, with.weights);
    result.value.backward();
    for (const auto& tensor : leaves) {
        result.gradients.push_back(tensor.grad().defined() ? tensor.grad() : at::zeros_like(tensor));
    }
    return result;
}

} // namespace

TEST(HeadTraining, GradientsEqualDifferenceQuotients) {
    auto c = make_case(7, 31, 5, 2, 111);
    c.h = c.h.to(at::kDouble);
    for (auto* tensor : {&c.weights.head, &c.weights.embedding}) {
        *tensor = tensor->to(at::kDouble);
    }
    c.weights.head_bias = normal({31}, 112).to(at::kDouble);
    const auto weight = normal(c.h.sizes(), 113).to(at::kDouble);
    for (const std::int64_t top_k : {0L, 6L}) {
        const auto loss = [&](const at::Tensor& h, const HeadWeights& w) {
            return cross_entropy(h, w, c.request.targets) +
                   (expected_embedding(h, w, 1.3, top_k) * weight).sum();
        };
        const auto analytic = train(c, loss);
        const auto direction = [](const at::Tensor& like, std::uint64_t seed) {
            return normal(like.sizes(), seed).to(at::kDouble);
        };
        const double step = 1e-6;
        const auto value = [&](double along, std::size_t input) {
            auto moved = c;
            at::Tensor* inputs[] = {&moved.h, &moved.weights.head, &moved.weights.head_bias,
                                    &moved.weights.embedding};
            *inputs[input] = *inputs[input] + direction(*inputs[input], 120 + input) * along;
            return loss(moved.h, moved.weights).item<double>();
        };
        for (std::size_t input = 0; input < 4; ++input) {
            const double quotient = (value(step, input) - value(-step, input)) / (2 * step);
            const double expected =
                (analytic.gradients[input] * direction(analytic.gradients[input], 120 + input))
                    .sum()
                    .item<double>();
            EXPECT_NEAR(quotient, expected, 1e-7 * (1 + std::abs(expected)))
                << "input " << input << ", top " << top_k;
        }
    }
}

/// As autocast leaves them behind a projection: the states' gradient is in their dtype, too.
TEST(HeadTraining, TakesStatesOfLessPrecisionThanTheTable) {
    auto c = make_case(40, 900, 16, 2, 131);
    c.h = c.h.to(at::kBFloat16);
    auto wide = c;
    wide.h = c.h.to(at::kFloat);
    for (const std::int64_t top_k : {-1L, 0L, 10L}) {
        const auto loss = [&](const auto& h, const auto& w) {
            return top_k < 0 ? cross_entropy(h, w, c.request.targets)
                             : expected_embedding(h, w, 1, top_k).square().sum();
        };
        const Trained got = train(c, loss);
        const Trained expected = train(wide, loss);
        EXPECT_TRUE(at::equal(got.value, expected.value)) << top_k;
        EXPECT_TRUE(at::equal(got.gradients[0], expected.gradients[0].to(at::kBFloat16))) << top_k;
        EXPECT_TRUE(at::equal(got.gradients[1], expected.gradients[1])) << top_k;
    }
}

TEST(HeadTraining, ValuesAreThoseOfAReadOut) {
    auto c = make_case(40, 900, 16, 2, 121);
    c.weights.head_bias = normal({900}, 122);
    EXPECT_NEAR(cross_entropy(c.h, c.weights, c.request.targets).item<double>(),
                read_out(c.h, c.weights, c.request).nll.nanmean().item<double>(), 1e-5);
    for (const double temperature : {1.0, 0.6}) {
        for (const std::int64_t top_k : {0L, 1L, 10L}) {
            c.request.temperature = temperature;
            c.request.top_k = top_k;
            EXPECT_LE(largest_difference(expected_embedding(c.h, c.weights, temperature, top_k),
                                         read_out(c.h, c.weights, c.request).mixture),
                      1e-5)
                << temperature << ", top " << top_k;
        }
    }
}

} // namespace ponderscope
