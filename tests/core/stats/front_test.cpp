// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/front.h"

#include "core/base/error.h"
#include "core/base/splitmix.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ponderscope {
namespace {

TEST(ParetoFront, HoldsWhatNothingDominates) {
    const std::vector<FrontPoint> points{{3, 1.0}, {1, 2.0}, {2, 2.0},         {2, 1.5},
                                         {3, 1.0}, {4, 1.2}, {std::nan(""), 0}};
    EXPECT_EQ(pareto_front(points), (std::vector<bool>{true, true, false, true, false, false, false}));
    EXPECT_TRUE(pareto_front({}).empty());
}

TEST(ParetoFront, IsLinearBetweenItsPointsAndFlatBeyond) {
    const std::vector<FrontPoint> front = sorted_front(std::vector<FrontPoint>{{3, 1}, {1, 2}, {2, 9}});
    ASSERT_EQ(front.size(), 2U);
    EXPECT_EQ(loss_at(front, 0.5), 2);
    EXPECT_EQ(loss_at(front, 2), 1.5);
    EXPECT_EQ(loss_at(front, 3), 1);
    EXPECT_EQ(loss_at(front, 7), 1);
}

std::vector<double> draws(std::uint64_t seed, std::size_t n, double offset) {
    std::vector<double> values;
    for (std::size_t i = 0; i < n; ++i) {
        values.push_back(offset + unit_interval(splitmix64(seed, i)));
    }
    return values;
}

TEST(PairedDifferences, OfTheSameTokensAreExact) {
    BootstrapOptions options{.replicates = 500};
    const std::vector<double> reference = draws(1, 1000, 3);
    std::vector<std::vector<double>> others{reference};
    for (int i = 0; i < 10; ++i) { // more than are resampled together
        others.push_back(reference);
        for (double& value : others.back()) {
            value += 0.25 * i;
        }
    }
    const PairedDifferences found = paired_differences(reference, others, {600, 400}, options);
    const std::vector<Estimate>& estimates = found.each;
    ASSERT_EQ(estimates.size(), 11U);
    EXPECT_EQ(estimates[0].value, 0);
    EXPECT_EQ(estimates[0].low, 0);
    EXPECT_EQ(estimates[0].high, 0);
    for (std::size_t i = 1; i < 11; ++i) {
        EXPECT_NEAR(estimates[i].value, 0.25 * static_cast<double>(i - 1), 1e-12);
        EXPECT_NEAR(estimates[i].high, estimates[i].value, 1e-9);
    }
    EXPECT_THROW(paired_differences(reference, std::vector<std::vector<double>>{{1.0}}, {1000}, options),
                 InputError);
}

TEST(PairedDifferences, HaveTheLongestBlockThatOneOfThemAsksFor) {
    BootstrapOptions options{.replicates = 50};
    const std::vector<double> reference = draws(1, 2000, 3);
    const std::vector<double> noise = draws(2, 2000, 0);
    std::vector<double> slow = reference; // by what remembers
    double memory = 0;
    for (std::size_t i = 0; i < slow.size(); ++i) {
        memory = 0.9 * memory + noise[i] - 0.5;
        slow[i] += memory;
    }
    std::vector<double> quick = reference; // by what does not
    for (std::size_t i = 0; i < quick.size(); ++i) {
        quick[i] += noise[i];
    }
    const auto block = [&](const std::vector<std::vector<double>>& others) {
        return paired_differences(reference, others, {2000}, options).resampling.block;
    };
    EXPECT_GT(block({slow}), 3 * block({quick}));
    EXPECT_EQ(block({quick, slow}), block({slow}));
    EXPECT_EQ(block({slow, quick}), block({slow}));
}

} // namespace
} // namespace ponderscope
