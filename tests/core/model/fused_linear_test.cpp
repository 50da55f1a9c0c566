// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/fused_linear.h"

#include "core/model/blocks.h"
#include "core/model/matrix_unit.h"
#include "core/model/unit_linear.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
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

class UnitLinear : public testing::Test {
protected:
    void SetUp() override {
        if (!MatrixUnit::available()) {
            GTEST_SKIP() << "this processor multiplies no matrices";
        }
        at::manual_seed(2);
    }
    at::Tensor product(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                       const AfterProduct& after) {
        at::Tensor out = at::full({x.size(0), weight.size(0)}, 7, x.options());
        unit_linear(out, x, weight, bias, workspace, after);
        return out;
    }
    static at::Tensor drawn(at::IntArrayRef sizes) { return at::randn(sizes).to(at::kBFloat16); }

    c10::NoGradGuard no_grad;
    Workspace workspace;
};

TEST_F(UnitLinear, IsTheProductInDoubleRoundedOnce) {
    struct Shape {
        std::int64_t n, in, out;
    };
    for (const Shape& shape : {Shape{64, 2, 1}, Shape{65, 34, 63}, Shape{300, 64, 64}, Shape{257, 512, 130},
                               Shape{1, 32, 16}, Shape{600, 96, 200}}) {
        const at::Tensor x = drawn({shape.n, shape.in});
        const at::Tensor weight = drawn({shape.out, shape.in}) / std::sqrt(static_cast<double>(shape.in));
        const at::Tensor bias = drawn({shape.out});
        const at::Tensor other = drawn({shape.n, shape.out});
        for (const Activation activation :
             {Activation::linear, Activation::gelu, Activation::gelu_tanh, Activation::relu, Activation::silu,
              Activation::sigmoid, Activation::tanh}) {
            for (const bool biased : {false, true}) {
                for (const int then : {0, 1, 2}) {
                    SCOPED_TRACE(std::to_string(shape.n) + " x " + std::to_string(shape.in) + " x " +
                                 std::to_string(shape.out) + ", activation " +
                                 std::to_string(static_cast<int>(activation)) + ", then " +
                                 std::to_string(then));
                    at::Tensor expected = at::mm(x.to(at::kDouble), weight.to(at::kDouble).t());
                    if (biased) {
                        expected += bias.to(at::kDouble);
                    }
                    expected = blocks::activate(expected, activation);
                    if (then > 0) {
                        expected =
                            then == 1 ? expected + other.to(at::kDouble) : expected * other.to(at::kDouble);
                    }
                    const at::Tensor got = product(x, weight, biased ? bias : at::Tensor(),
                                                   {activation, then > 0 ? other : at::Tensor(), then == 2});
                    const at::Tensor off = (got.to(at::kDouble) - expected).abs() - expected.abs() * 0x1p-8;
                    EXPECT_LE(off.max().item<double>(), 5e-6);
                }
            }
        }
    }
}

TEST_F(UnitLinear, ARowDependsNeitherOnTheOthersNorOnThreads) {
    at::Tensor x = drawn({601, 128});
    const at::Tensor weight = drawn({130, 128});
    const at::Tensor other = drawn({601, 130});
    const at::Tensor whole = product(x, weight, {}, {Activation::gelu, other});
    for (const std::int64_t length : {64L, 65L, 255L, 256L, 400L}) {
        EXPECT_TRUE(at::equal(
            product(x.narrow(0, 77, length), weight, {}, {Activation::gelu, other.narrow(0, 77, length)}),
            whole.narrow(0, 77, length)))
            << length;
    }
    const int threads = at::get_num_threads();
    for (const int some : {1, 2, 3}) {
        at::set_num_threads(some);
        EXPECT_TRUE(at::equal(product(x, weight, {}, {Activation::gelu, other}), whole)) << some;
    }
    at::set_num_threads(threads);
    at::Tensor sum = other.clone();
    unit_linear(sum, x, weight, {}, workspace, {Activation::gelu, sum});
    EXPECT_TRUE(at::equal(sum, whole)) << "in place";
    x[5][3] = std::numeric_limits<float>::quiet_NaN();
    const at::Tensor got = product(x, weight, {}, {Activation::gelu, other});
    EXPECT_TRUE(got[5].isnan().all().item<bool>());
    EXPECT_TRUE(at::equal(got.narrow(0, 6, 595), whole.narrow(0, 6, 595)));
}

TEST_F(UnitLinear, TakesWhatItComputes) {
    const at::Tensor x = drawn({64, 64});
    const at::Tensor weight = drawn({32, 64});
    EXPECT_TRUE(unit_multiplies(x, weight));
    EXPECT_FALSE(unit_multiplies(x.narrow(0, 0, 1), weight));
    EXPECT_FALSE(unit_multiplies(x.to(at::kFloat), weight));
    EXPECT_FALSE(unit_multiplies(x.narrow(1, 0, 63).contiguous(), weight.narrow(1, 0, 63).contiguous()));
    EXPECT_FALSE(unit_multiplies(x, weight.t().contiguous().t()));
    const at::AutoGradMode on(true);
    EXPECT_FALSE(unit_multiplies(x, weight));
}

} // namespace
} // namespace ponderscope
