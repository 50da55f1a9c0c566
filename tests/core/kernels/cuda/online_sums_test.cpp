// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/cpu/online_sums.h"

#include "tests/core/kernels/cuda/head_cases.h"

namespace ponderscope::kernels {

using namespace testing;

TEST(OnlineDivergence, OfLogitsInAnyOrderAndAnyParts) {
    Random random(28);
    for (int round = 0; round < 40 * kinds * kinds; ++round) {
        const auto vocabulary = static_cast<std::size_t>(1 + random.below(400));
        auto p = make_row(random, vocabulary, round % kinds);
        auto q = make_row(random, vocabulary, round / kinds % kinds);
        if (random.one_of(3)) { // as two steps are: not far from each other, at any height
            const float height = random.normal() * 1e4F;
            for (std::size_t v = 0; v < vocabulary; ++v) {
                q[v] = p[v] + height + 0.1F * random.normal();
            }
        }
        std::vector<OnlineDivergence> parts(static_cast<std::size_t>(1 + random.below(9)));
        for (std::size_t v = 0; v < vocabulary; ++v) {
            parts[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(parts.size())))].push(p[v],
                                                                                                        q[v]);
        }
        OnlineDivergence total;
        for (const auto& part : parts) {
            total.merge(part);
        }
        SCOPED_TRACE("kinds " + std::to_string(round % kinds) + " and " +
                     std::to_string(round / kinds % kinds));
        expect_near(static_cast<double>(total.forward()), divergence(p, q), 1e-5, "forward");
        expect_near(static_cast<double>(total.backward()), divergence(q, p), 1e-5, "backward");
        ASSERT_FALSE(HasFailure());
    }
}

TEST(OnlineSums, OfLogitsInAnyOrderAndAnyParts) {
    Random random(26);
    for (int round = 0; round < 600; ++round) {
        const auto row = make_row(random, static_cast<std::size_t>(1 + random.below(400)), round % kinds);
        std::vector<OnlineSums> parts(static_cast<std::size_t>(1 + random.below(9)));
        for (const float x : row) {
            parts[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(parts.size())))].push(x);
        }
        OnlineSums total;
        for (const auto& part : parts) {
            total.merge(part);
        }
        const auto log_p = log_softmax(row);
        double entropy = 0;
        for (const double x : log_p) {
            entropy -= std::isinf(x) ? 0 : std::exp(x) * x;
        }
        expect_near(static_cast<double>(total.entropy()), entropy, 5e-6, "entropy");
        expect_near(static_cast<double>(row[0] - total.maximum - total.log_sum()), log_p[0], 1e-6, "log p");
    }
    OnlineSums nothing;
    nothing.push(-infinity);
    nothing.merge({});
    EXPECT_EQ(nothing.sum, 0);
    EXPECT_EQ(nothing.log_sum_exp(), -infinity);
    nothing.push(3);
    EXPECT_FLOAT_EQ(nothing.log_sum_exp(), 3);
    EXPECT_EQ(nothing.entropy(), 0);
    nothing.push(nan);
    EXPECT_TRUE(std::isnan(nothing.log_sum_exp()));
}

} // namespace ponderscope::kernels
