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
