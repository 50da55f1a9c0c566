// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/cuda/head_rows.h"

#include "tests/core/kernels/cuda/kernel_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace ponderscope::kernels {
namespace {

using namespace testing;

/// Rows of logits, each of a kind of its own, and all that is said of them.
struct Reading {
    std::int64_t words = 1, length = 1;
    std::vector<float> logits;
    std::vector<std::int64_t> targets;
    std::vector<float> maximum, sum, nll, entropy, values;
    std::vector<std::int64_t> rank, ids;

    [[nodiscard]] std::int64_t rows() const { return static_cast<std::int64_t>(targets.size()); }
    [[nodiscard]] float logit(std::int64_t row, std::int64_t word) const {
        return logits[static_cast<std::size_t>(row * words + word)];
    }

    const char* run() {
        const auto n = targets.size();
        for (auto* floats : {&maximum, &sum, &nll, &entropy}) {
            floats->assign(n, nan);
        }
        rank.assign(n, -7);
        values.assign(n * static_cast<std::size_t>(length), nan);
        ids.assign(values.size(), -7);
        HeadRows a;
        a.logits = logits.data();
        a.rows = rows();
        a.vocabulary = words;
        a.targets = targets.data();
        a.maximum = maximum.data();
        a.sum = sum.data();
        a.nll = nll.data();
        a.rank = rank.data();
        a.entropy = entropy.data();
        a.list_length = length;
        a.list_values = values.data();
        a.list_ids = ids.data();
        return head_rows_cuda(a, nullptr);
    }
};

Reading reading(std::int64_t words, std::int64_t length, std::uint64_t seed) {
    Random random(seed);
    Reading made;
    made.words = words;
    made.length = length;
    for (int kind = 0; kind < 9; ++kind) {
        for (std::int64_t v = 0; v < words; ++v) {
            const float x = 4 * random.normal();
            made.logits.push_back(kind == 1   ? 2.5F                         // all equal
                                  : kind == 2 ? std::round(x / 4)            // many equal
                                  : kind == 3 ? (v % 3 == 0 ? x : -infinity) // impossible words
                                  : kind == 4 ? -infinity                    // all impossible
                                  : kind == 5 ? (v == words / 2 ? nan : x)   // not a number
                                  : kind == 6 ? (v == words / 2 ? infinity : x)
                                  : kind == 7 ? -1e35F + x * 1e33F // far from 0
                                              : x);
        }
        made.targets.push_back(kind == 8 ? -1 : random.below(words));
    }
    return made;
}

TEST(HeadRows, SayWhatTheDefinitionSays) {
    for (const auto order : orders) {
        host_cuda::set_order(order);
        for (const std::int64_t words : {1, 7, 129, 2048, 5003}) {
            Reading given = reading(words, std::min<std::int64_t>(words, words % 2 == 0 ? 128 : 10), 3);
            ASSERT_EQ(given.run(), nullptr);
            for (std::int64_t row = 0; row < given.rows(); ++row) {
                SCOPED_TRACE(std::to_string(words) + " words, row " + std::to_string(row));
                const auto at = static_cast<std::size_t>(row);
                double highest = -static_cast<double>(infinity), sum = 0, weighted = 0;
                for (std::int64_t v = 0; v < words; ++v) {
                    highest = std::max(highest, static_cast<double>(given.logit(row, v)));
                }
                for (std::int64_t v = 0; v < words; ++v) {
                    const double d = given.logit(row, v) - highest;
                    sum += std::exp(d);
                    weighted += std::isinf(d) ? 0 : std::exp(d) * d;
                }
                const std::int64_t target = given.targets[at];
                std::vector<std::int64_t> order_of(static_cast<std::size_t>(words));
                std::iota(order_of.begin(), order_of.end(), 0);
                std::stable_sort(order_of.begin(), order_of.end(), [&](std::int64_t a, std::int64_t b) {
                    const float x = given.logit(row, a), y = given.logit(row, b);
                    return x > y || (x == x && y != y);
                });
                for (std::int64_t i = 0; i < given.length; ++i) {
                    EXPECT_EQ(given.ids[static_cast<std::size_t>(row * given.length + i)],
                              order_of[static_cast<std::size_t>(i)]);
                }
                if (std::isnan(sum)) {
                    EXPECT_TRUE(std::isnan(given.sum[at]) && std::isnan(given.nll[at]) &&
                                std::isnan(given.entropy[at]));
                    continue;
                }
                EXPECT_EQ(static_cast<double>(given.maximum[at]), highest);
                EXPECT_NEAR(given.sum[at] / sum, 1, 1e-5);
                EXPECT_NEAR(given.entropy[at], std::log(sum) - weighted / sum, 3e-5);
                if (target < 0) {
                    EXPECT_TRUE(std::isnan(given.nll[at]));
                    EXPECT_EQ(given.rank[at], 0);
                    continue;
                }
                const double pivot = given.logit(row, target), nll = std::log(sum) - (pivot - highest);
                std::int64_t larger = 0;
                for (std::int64_t v = 0; v < words; ++v) {
                    larger += given.logit(row, v) > pivot ? 1 : 0;
                }
                EXPECT_TRUE(given.nll[at] == nll ||
                            std::abs(given.nll[at] - nll) <= 1e-5 * (1 + std::abs(nll)))
                    << given.nll[at] << ", not " << nll;
                EXPECT_EQ(given.rank[at], 1 + larger);
            }
        }
    }
    host_cuda::set_order(host_cuda::Order::forward);
}

TEST(HeadRows, DivergencesAndExponentials) {
    const std::int64_t words = 3001;
    Reading p = reading(words, 1, 5), q = reading(words, 1, 6);
    ASSERT_EQ(p.run(), nullptr);
    ASSERT_EQ(q.run(), nullptr);
    const auto rows = p.targets.size();
    std::vector<float> forward(rows, -7), backward(rows, -7);
    HeadDivergences a;
    a.p = p.logits.data();
    a.q = q.logits.data();
    a.p_maximum = p.maximum.data();
    a.p_sum = p.sum.data();
    a.q_maximum = q.maximum.data();
    a.q_sum = q.sum.data();
    a.rows = p.rows();
    a.vocabulary = words;
    a.forward = forward.data();
    a.backward = backward.data();
    // Rows 1 to 8 of p against row 0 of q: what is impossible in p alone.
    for (std::int64_t row = 1; row < q.rows(); ++row) {
        std::copy_n(q.logits.begin(), words, q.logits.begin() + row * words);
    }
    ASSERT_EQ(q.run(), nullptr);
    ASSERT_EQ(head_divergences_cuda(a, nullptr), nullptr);
    const auto apart = [&](const Reading& from, const Reading& to, std::int64_t row) {
        const auto log_p = [&](const Reading& of, std::int64_t v) {
            const auto at = static_cast<std::size_t>(row);
            return static_cast<double>(of.logit(row, v)) - of.maximum[at] -
                   std::log(static_cast<double>(of.sum[at]));
        };
        double total = 0;
        for (std::int64_t v = 0; v < words; ++v) {
            const double x = log_p(from, v), y = log_p(to, v);
            total += std::isinf(x) ? 0 : std::exp(x) * (x - y);
        }
        return total;
    };
    for (std::int64_t row = 0; row < p.rows(); ++row) {
        SCOPED_TRACE(row);
        const auto at = static_cast<std::size_t>(row);
        if (row >= 4 && row <= 6) { // no distribution
            EXPECT_TRUE(std::isnan(forward[at]) && std::isnan(backward[at]));
            continue;
        }
        EXPECT_NEAR(forward[at] / apart(p, q, row), 1, 1e-4);
        if (row == 3) {
            EXPECT_EQ(backward[at], infinity);
        } else if (row != 7) { // of 1e35 nothing is left beside its maximum
            EXPECT_NEAR(backward[at] / apart(q, p, row), 1, 1e-4);
        }
    }
    std::swap(a.p, a.q);
    std::swap(a.p_maximum, a.q_maximum);
    std::swap(a.p_sum, a.q_sum);
    ASSERT_EQ(head_divergences_cuda(a, nullptr), nullptr);
    EXPECT_EQ(forward[3], infinity);
    for (const Element element : elements) {
        Numbers out(element, words, nan);
        HeadExponentials e;
        e.logits = p.logits.data();
        e.maximum = p.maximum.data();
        e.rows = 1;
        e.vocabulary = words;
        e.factor = 8;
        e.out = out.data();
        e.element = element;
        ASSERT_EQ(head_exponentials_cuda(e, nullptr), nullptr);
        for (std::int64_t v = 0; v < words; ++v) {
            const double expected = 8 * std::exp(static_cast<double>(p.logit(0, v)) - p.maximum[0]);
            ASSERT_NEAR(out[v], expected, expected * (element == Element::f32 ? 1e-6 : 0x1p-8) + 1e-7) << v;
        }
    }
}

TEST(HeadRows, ALongListIsRefused) {
    Reading given = reading(300, 129, 7);
    EXPECT_NE(given.run(), nullptr);
}

} // namespace
} // namespace ponderscope::kernels
