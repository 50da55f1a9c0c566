// SPDX-License-Identifier: GPL-3.0-or-later
// The head's differentiable forms against plain operations and difference quotients.
#include "tests/core/kernels/head_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace ponderscope {

using testing::Case;
using testing::infinity;
using testing::largest_difference;
using testing::make_case;
using testing::normal;

namespace {

/// Plain, differentiable operations: what the training functions stand for.
at::Tensor plain_logits(const at::Tensor& h, const HeadWeights& weights) {
    const auto logits = at::mm(h, weights.head.t());
    return weights.head_bias.defined() ? logits + weights.head_bias : logits;
}

at::Tensor plain_expected_embedding(const at::Tensor& h, const HeadWeights& weights, double temperature,
                                    std::int64_t top_k) {
    auto logits = plain_logits(h, weights) / temperature;
    if (top_k > 0 && top_k < logits.size(1)) {
        const auto ids = std::get<1>(logits.topk(top_k, 1));
        auto mask = at::full_like(logits, -infinity);
        mask.scatter_(1, ids, 0);
        logits = logits + mask;
    }
    return at::mm(at::softmax(logits, 1), weights.embedding);
}

at::Tensor plain_cross_entropy(const at::Tensor& h, const HeadWeights& weights, const at::Tensor& targets) {
    return at::cross_entropy_loss(plain_logits(h, weights), targets, {}, at::Reduction::Mean, -1);
}

struct Trained {
    at::Tensor value;
    std::vector<at::Tensor> gradients;
};

/// Value and gradients of states, head, bias (if any) and embedding (if it is not the head itself) of a
/// function of them.
template <typename Loss>
Trained train(const Case& c, const Loss& loss) {
    auto with = c;
    const bool tied = c.weights.embedding.is_same(c.weights.head);
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
    if (tied) {
        with.weights.embedding = with.weights.head;
    } else {
        leaf(with.weights.embedding);
    }
    Trained result;
    result.value = loss(with.h, with.weights);
    result.value.backward();
    for (const auto& tensor : leaves) {
        result.gradients.push_back(tensor.grad().defined() ? tensor.grad() : at::zeros_like(tensor));
    }
    return result;
}

/// In double precision.
Case widened(const Case& c) {
    Case wide = c;
    for (at::Tensor* tensor :
         {&wide.h, &wide.weights.head, &wide.weights.head_bias, &wide.weights.embedding}) {
        *tensor = tensor->defined() ? tensor->to(at::kDouble) : *tensor;
    }
    if (c.weights.embedding.is_same(c.weights.head)) {
        wide.weights.embedding = wide.weights.head;
    }
    return wide;
}

void expect_close(const Trained& got, const Trained& expected, double relative) {
    EXPECT_LE((got.value - expected.value).abs().item<double>(),
              relative * (1 + expected.value.abs().item<double>()));
    ASSERT_EQ(got.gradients.size(), expected.gradients.size());
    for (std::size_t i = 0; i < got.gradients.size(); ++i) {
        const double scale = expected.gradients[i].abs().max().item<double>();
        EXPECT_LE((got.gradients[i] - expected.gradients[i]).abs().max().item<double>(),
                  relative * (scale + 1e-6))
            << "input " << i;
    }
}

} // namespace

TEST(HeadTraining, GradientsEqualThoseOfPlainOperations) {
    struct Setting {
        std::int64_t n, vocabulary, d;
        bool bias, tied;
    };
    for (const auto& setting : {Setting{1, 2, 1, false, false}, Setting{33, 517, 24, true, false},
                                Setting{64, 2048, 16, false, true}}) {
        SCOPED_TRACE(std::to_string(setting.n) + " x " + std::to_string(setting.vocabulary));
        auto c = make_case(setting.n, setting.vocabulary, setting.d, 2, 101);
        c.request.targets[0] = 1;
        if (setting.bias) {
            c.weights.head_bias = normal({setting.vocabulary}, 102);
        }
        if (setting.tied) {
            c.weights.embedding = c.weights.head;
        }
        const auto& targets = c.request.targets;
        const auto weight = normal(c.h.sizes(), 103);
        const Case wide = widened(c);
        // Sums over the vocabulary in fp32, one after the other where the library's product of few columns
        // is.
        const double order = std::max(1.0, std::sqrt(static_cast<double>(setting.vocabulary)) / 50);
        expect_close(
            train(c, [&](const auto& h, const auto& w) { return cross_entropy(h, w, targets) * 3; }),
            train(wide, [&](const auto& h, const auto& w) { return plain_cross_entropy(h, w, targets) * 3; }),
            2e-5 * order);
        for (const double temperature : {1.0, 0.6}) {
            for (const std::int64_t top_k : {0L, 1L, 10L}) {
                SCOPED_TRACE(std::to_string(temperature) + ", top " + std::to_string(top_k));
                expect_close(
                    train(c,
                          [&](const auto& h, const auto& w) {
                              return (expected_embedding(h, w, temperature, top_k) * weight).sum();
                          }),
                    train(wide,
                          [&](const auto& h, const auto& w) {
                              return (plain_expected_embedding(h, w, temperature, top_k) * weight).sum();
                          }),
                    5e-5 * order);
            }
        }
    }
}

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

TEST(HeadTraining, WithoutGradientTheValueIsTheSame) {
    const auto c = make_case(40, 900, 16, 2, 121);
    const auto expected =
        train(c, [&](const auto& h, const auto& w) { return cross_entropy(h, w, c.request.targets); }).value;
    EXPECT_NEAR(cross_entropy(c.h, c.weights, c.request.targets).item<double>(), expected.item<double>(),
                1e-6);
    const auto nll = read_out(c.h, c.weights, c.request).nll;
    EXPECT_NEAR(nll.nanmean().item<double>(), expected.item<double>(), 1e-5);
    EXPECT_LE(largest_difference(expected_embedding(c.h, c.weights, 1, 0),
                                 read_out(c.h, c.weights, c.request).mixture),
              1e-5);
}

} // namespace ponderscope
