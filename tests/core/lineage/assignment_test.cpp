// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/lineage/assignment.h"

#include "core/base/error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <set>

namespace ponderscope {
namespace {

double sum_of(const std::vector<double>& cost, std::int64_t columns,
              const std::vector<std::int64_t>& chosen) {
    double sum = 0;
    for (std::size_t row = 0; row < chosen.size(); ++row) {
        sum += cost[row * static_cast<std::size_t>(columns) + static_cast<std::size_t>(chosen[row])];
    }
    return sum;
}

/// Of all choices of different columns.
double least_of_all(const std::vector<double>& cost, std::int64_t rows, std::int64_t columns) {
    std::vector<std::int64_t> order(static_cast<std::size_t>(columns));
    std::iota(order.begin(), order.end(), 0);
    double least = std::numeric_limits<double>::infinity();
    do {
        least = std::min(least, sum_of(cost, columns, {order.begin(), order.begin() + rows}));
    } while (std::next_permutation(order.begin(), order.end()));
    return least;
}

TEST(Assignment, IsTheBestOfAll) {
    std::mt19937_64 random(3);
    for (int trial = 0; trial < 60; ++trial) {
        const std::int64_t columns = 1 + trial % 7;
        const std::int64_t rows = 1 + trial % columns;
        std::vector<double> cost;
        for (std::int64_t i = 0; i < rows * columns; ++i) {
            // Every third trial has few different costs, and so ties; every fourth negative ones.
            const auto value = static_cast<double>(random() >> 11) * 0x1.0p-53;
            cost.push_back((trial % 3 == 0 ? static_cast<double>(static_cast<int>(value * 3)) : value) -
                           (trial % 4 == 0 ? 1.0 : 0.0));
        }
        const std::vector<std::int64_t> chosen = assign_rows(cost, rows, columns);
        ASSERT_EQ(chosen.size(), static_cast<std::size_t>(rows));
        EXPECT_EQ(std::set<std::int64_t>(chosen.begin(), chosen.end()).size(), chosen.size());
        EXPECT_NEAR(sum_of(cost, columns, chosen), least_of_all(cost, rows, columns), 1e-12) << trial;
    }
}

TEST(Assignment, FindsAHiddenPermutationAndStops) {
    constexpr std::int64_t n = 300;
    std::mt19937_64 random(5);
    std::vector<std::int64_t> hidden(n);
    std::iota(hidden.begin(), hidden.end(), 0);
    for (std::size_t i = hidden.size() - 1; i > 0; --i) {
        std::swap(hidden[i], hidden[random() % (i + 1)]);
    }
    std::vector<double> cost(n * n);
    for (std::int64_t i = 0; i < n; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
            const auto noise = static_cast<double>(random() >> 11) * 0x1.0p-53;
            cost[static_cast<std::size_t>(i * n + j)] =
                hidden[static_cast<std::size_t>(i)] == j ? noise * 0.3 : 0.4 + noise * 0.6;
        }
    }
    EXPECT_EQ(assign_rows(cost, n, n), hidden);
    std::stop_source stop;
    stop.request_stop();
    EXPECT_THROW((void)assign_rows(cost, n, n, stop.get_token()), Cancelled);
}

} // namespace
} // namespace ponderscope
