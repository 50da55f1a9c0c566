// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/fused_linear.h"

#include "core/model/blocks.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <mutex>
#include <set>
#include <thread>

namespace ponderscope {
namespace {

TEST(Threads, ParallelForUsesSeveral) {
    // Without OpenMP in our own compilation it would quietly run on one.
    const int before = at::get_num_threads();
    at::set_num_threads(2);
    std::mutex mutex;
    std::set<std::thread::id> seen;
    at::parallel_for(0, 2, 1, [&](std::int64_t, std::int64_t) {
        const std::lock_guard lock(mutex);
        seen.insert(std::this_thread::get_id());
    });
    at::set_num_threads(before);
    EXPECT_EQ(seen.size(), 2U);
}

class FusedLinear : public testing::Test {
protected:
    void SetUp() override {
        at::manual_seed(1);
        x = at::randn({1024, 256});
        weight = at::randn({512, 256}) / 16;
        bias = at::randn({512});
        other = at::randn({1024, 512});
        if (!fused::suits(x, weight)) {
            GTEST_SKIP() << "this LibTorch has no fused products";
        }
    }
    static void expect_close(const at::Tensor& value, const at::Tensor& reference) {
        EXPECT_LT((value.to(at::kDouble) - reference).abs().max().item<double>(), 1e-5);
    }
    [[nodiscard]] at::Tensor reference(const at::Tensor& with_bias) const {
        return at::linear(x.to(at::kDouble), weight.to(at::kDouble),
                          with_bias.defined() ? std::optional<at::Tensor>(with_bias.to(at::kDouble))
                                              : std::nullopt);
    }

    c10::NoGradGuard no_grad;
    at::Tensor x, weight, bias, other;
};

TEST_F(FusedLinear, EqualsThePlainProduct) {
    expect_close(fused::linear(x, weight, bias), reference(bias));
    expect_close(fused::linear(x, weight, {}), reference({}));
}

TEST_F(FusedLinear, FusesEveryActivationItClaims) {
    for (const Activation activation :
         {Activation::gelu, Activation::gelu_tanh, Activation::quick_gelu, Activation::relu,
          Activation::relu_squared, Activation::silu, Activation::sigmoid, Activation::tanh, Activation::mish,
          Activation::linear}) {
        if (fused::has(activation)) {
            expect_close(fused::linear(x, weight, bias, activation),
                         blocks::activate(reference(bias), activation));
        }
    }
    EXPECT_TRUE(fused::has(Activation::gelu));
    EXPECT_TRUE(fused::has(Activation::gelu_tanh));
    EXPECT_TRUE(fused::has(Activation::silu));
}

TEST_F(FusedLinear, AddsAndMultiplies) {
    const at::Tensor kept = other.clone();
    expect_close(fused::linear_add(x, weight, bias, other), reference(bias) + other.to(at::kDouble));
    expect_close(fused::linear_multiply(x, weight, {}, other), reference({}) * other.to(at::kDouble));
    EXPECT_TRUE(at::equal(other, kept));
}

TEST_F(FusedLinear, GradientsAreThoseOfThePlainProduct) {
    const at::AutoGradMode on(true);
    for (const bool biased : {true, false}) {
        const auto gradients = [&](bool fused) {
            std::vector<at::Tensor> leaves{x.detach().clone(), weight.detach().clone(),
                                           bias.detach().clone()};
            for (at::Tensor& leaf : leaves) {
                leaf = (fused ? leaf : leaf.to(at::kDouble)).requires_grad_(true);
            }
            const at::Tensor with = biased ? leaves[2] : at::Tensor();
            const at::Tensor out = fused
                                       ? fused::linear_with_gradient(leaves[0], leaves[1], with)
                                       : at::linear(leaves[0], leaves[1],
                                                    biased ? std::optional<at::Tensor>(with) : std::nullopt);
            (out * other.to(out.scalar_type())).sum().backward();
            return leaves;
        };
        const auto got = gradients(true);
        const auto expected = gradients(false);
        for (std::size_t i = 0; i < (biased ? 3U : 2U); ++i) {
            const double scale = expected[i].grad().abs().max().item<double>();
            EXPECT_LT((got[i].grad().to(at::kDouble) - expected[i].grad()).abs().max().item<double>(),
                      1e-5 * scale)
                << i;
        }
    }
}

TEST_F(FusedLinear, LeavesOtherTypesAndSmallWorkAlone) {
    EXPECT_FALSE(fused::suits(x.to(at::kBFloat16), weight.to(at::kBFloat16)));
    EXPECT_FALSE(fused::suits(x.narrow(0, 0, 2), weight));
    EXPECT_FALSE(fused::suits(x.t().contiguous().t(), weight));
}

} // namespace
} // namespace ponderscope
