// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/adamw.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

namespace ponderscope {
namespace {

using Named = std::vector<std::pair<std::string, at::Tensor>>;

Named two_parameters() {
    Named named;
    named.emplace_back("bias", at::tensor({0.5F, -1.0F, 2.0F}).set_requires_grad(true));
    named.emplace_back("weight",
                       at::tensor({1.0F, -2.0F, 3.0F, -4.0F}).view({2, 2}).clone().set_requires_grad(true));
    return named;
}

TEST(AdamW, FollowsTheFormulaInDoublePrecision) {
    const AdamWConfig config{0.8, 0.95, 0.3, 1e-6};
    auto named = two_parameters();
    AdamW optimizer(named, config);
    // Gradients that change sign and size, a different one for every element and step.
    const auto gradient = [](int parameter, std::int64_t i, int step) {
        return std::sin(1.0 + 3.0 * parameter + 1.7 * static_cast<double>(i) + 0.9 * step) *
               std::pow(10.0, step % 3 - 1);
    };
    std::vector<std::vector<double>> p{{0.5, -1.0, 2.0}, {1.0, -2.0, 3.0, -4.0}};
    auto m = p;
    auto v = p;
    for (auto* moments : {&m, &v}) {
        for (auto& values : *moments) {
            std::fill(values.begin(), values.end(), 0.0);
        }
    }
    for (int step = 1; step <= 25; ++step) {
        const double rate = 0.05 / step;
        optimizer.zero_gradients();
        for (int which = 0; which < 2; ++which) {
            auto flat = named[static_cast<std::size_t>(which)].second.grad().view(-1);
            auto& values = p[static_cast<std::size_t>(which)];
            for (std::int64_t i = 0; i < flat.numel(); ++i) {
                const double g = gradient(which, i, step);
                flat[i] = g;
                const auto at = static_cast<std::size_t>(i);
                auto& first = m[static_cast<std::size_t>(which)][at];
                auto& second = v[static_cast<std::size_t>(which)][at];
                values[at] *=
                    1.0 - rate * (which == 1 ? config.weight_decay : 0.0); // a vector does not decay
                first = config.beta1 * first + (1 - config.beta1) * g;
                second = config.beta2 * second + (1 - config.beta2) * g * g;
                values[at] -= rate * (first / (1 - std::pow(config.beta1, step))) /
                              (std::sqrt(second / (1 - std::pow(config.beta2, step))) + config.eps);
            }
        }
        optimizer.step(rate);
        for (std::size_t which = 0; which < 2; ++which) {
            const auto flat = named[which].second.detach().view(-1);
            for (std::size_t i = 0; i < p[which].size(); ++i) {
                EXPECT_NEAR(flat[static_cast<std::int64_t>(i)].item<double>(), p[which][i], 2e-6)
                    << named[which].first << " " << i << " after step " << step;
            }
        }
    }
    EXPECT_EQ(optimizer.steps(), 25);
}

TEST(AdamW, AccumulatesUntilGradientsAreZeroed) {
    auto named = two_parameters();
    AdamW optimizer(named, {});
    named[0].second.sum().backward();
    named[0].second.sum().backward();
    EXPECT_TRUE(at::equal(named[0].second.grad(), at::full({3}, 2.0F)));
    EXPECT_NEAR(optimizer.gradient_norm(), std::sqrt(12.0), 1e-12);
    optimizer.scale_gradients(0.5);
    EXPECT_NEAR(optimizer.gradient_norm(), std::sqrt(3.0), 1e-12);
    // Somebody else's code may drop gradients; they come back with the next round.
    named[0].second.mutable_grad().reset();
    optimizer.zero_gradients();
    named[0].second.sum().backward();
    EXPECT_NEAR(optimizer.gradient_norm(), std::sqrt(3.0), 1e-12);
}

TEST(AdamW, NormOfHugeGradientsDoesNotOverflow) {
    auto named = two_parameters();
    AdamW optimizer(named, {});
    named[0].second.mutable_grad().fill_(1e30F);
    EXPECT_NEAR(optimizer.gradient_norm() / (1e30 * std::sqrt(3.0)), 1.0, 1e-6);
}

TEST(AdamW, NamesTheFirstBadTensor) {
    auto named = two_parameters();
    AdamW optimizer(named, {});
    EXPECT_EQ(optimizer.first_bad_gradient(), "");
    EXPECT_EQ(optimizer.first_bad_parameter(), "");
    named[1].second.mutable_grad()[1][0] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(optimizer.first_bad_gradient(), "weight");
    optimizer.step(0.1);
    EXPECT_EQ(optimizer.first_bad_parameter(), "weight");
}

TEST(AdamW, GoesOnFromSavedMoments) {
    auto one = two_parameters();
    AdamW first(one, {});
    const auto feed = [](const Named& named, double scale) {
        for (const auto& [name, parameter] : named) {
            parameter.grad().copy_(parameter.detach() * scale);
        }
    };
    for (const double scale : {1.0, -0.5, 2.0}) {
        feed(one, scale);
        first.step(0.1);
    }
    auto two = two_parameters();
    AdamW second(two, {});
    for (std::size_t i = 0; i < one.size(); ++i) {
        two[i].second.detach().copy_(one[i].second.detach());
        second.first_moments()[i].second.copy_(first.first_moments()[i].second);
        second.second_moments()[i].second.copy_(first.second_moments()[i].second);
    }
    second.set_steps(first.steps());
    feed(one, 0.7);
    feed(two, 0.7);
    first.step(0.05);
    second.step(0.05);
    for (std::size_t i = 0; i < one.size(); ++i) {
        EXPECT_TRUE(at::equal(one[i].second, two[i].second)) << one[i].first;
    }
}

TEST(AdamW, RefusesWhatItCannotStep) {
    EXPECT_THROW(AdamW({}, {}), std::invalid_argument);
    EXPECT_THROW(AdamW({{"w", at::zeros({2})}}, {}), std::invalid_argument);
    EXPECT_THROW(AdamW({{"w", at::zeros({2}, at::kDouble).set_requires_grad(true)}}, {}),
                 std::invalid_argument);
}

} // namespace
} // namespace ponderscope
