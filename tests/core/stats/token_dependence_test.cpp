// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/token_dependence.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <stdexcept>
#include <vector>

namespace ponderscope {
namespace {

TEST(TokenDependence, IsTheShareOfTheVarianceBetweenTokens) {
    const std::vector<std::array<float, 3>> weights{
        {0.5F, 0.25F, 0.25F}, {0.25F, 0.5F, 0.25F}, {0.125F, 0.625F, 0.25F}};
    TokenDependence dependence;
    double total = 0;
    double between = 0;
    for (std::size_t s = 0; s < 3; ++s) {
        const double mean = (weights[0].at(s) + weights[1].at(s) + weights[2].at(s)) / 3.0;
        for (const auto& row : weights) {
            total += std::pow(row.at(s) - 1.0 / 3, 2);
            between += std::pow(row.at(s) - mean, 2);
        }
    }
    for (const auto& row : weights) {
        dependence.add(row);
    }
    EXPECT_NEAR(dependence.share_between_tokens(), between / total, 1e-12);
    EXPECT_GE(dependence.share_between_tokens(), TokenDependence::usual_threshold);
    EXPECT_LT(dependence.share_between_tokens(), 0.99);
}

TEST(TokenDependence, FlagsWeightsThatAreTheSameForEveryToken) {
    TokenDependence sharp;
    TokenDependence even;
    TokenDependence noisy;
    for (int t = 0; t < 1001; ++t) {
        const float noise = 1e-3F * static_cast<float>(t % 7 - 3);
        sharp.add(std::array{0.9F, 0.1F});
        even.add(std::array{0.5F, 0.5F});
        noisy.add(std::array{0.7F + noise, 0.3F - noise});
    }
    EXPECT_EQ(sharp.share_between_tokens(), 0.0) << "sharp, and yet nothing is chosen";
    EXPECT_EQ(even.share_between_tokens(), 0.0);
    EXPECT_LT(sharp.share_between_tokens(), TokenDependence::usual_threshold);
    EXPECT_LT(even.share_between_tokens(), TokenDependence::usual_threshold);
    EXPECT_NEAR(noisy.share_between_tokens(), 4e-6 / (0.04 + 4e-6), 1e-7);
    EXPECT_LT(noisy.share_between_tokens(), TokenDependence::usual_threshold);
}

TEST(TokenDependence, SaysNothingWhereThereIsNothingToChoose) {
    TokenDependence alone;
    alone.add(std::array{1.0F});
    alone.add(std::array{1.0F});
    EXPECT_TRUE(std::isnan(alone.share_between_tokens()));
    EXPECT_FALSE(alone.share_between_tokens() < TokenDependence::usual_threshold);
    TokenDependence once;
    once.add(std::array{0.5F, 0.5F});
    EXPECT_TRUE(std::isnan(once.share_between_tokens()));
    EXPECT_THROW(once.add(std::array{1.0F}), std::invalid_argument);
}

} // namespace
} // namespace ponderscope
