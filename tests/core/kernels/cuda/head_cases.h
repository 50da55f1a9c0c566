// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "tests/core/kernels/cuda/kernel_cases.h"

#include <gtest/gtest.h>

/// Rows of logits, and what is said of them in double.
namespace ponderscope::kernels::testing {

using Row = std::vector<float>;

/// log softmax in double. NaN everywhere where there is no distribution.
inline std::vector<double> log_softmax(const Row& row) {
    double maximum = -std::numeric_limits<double>::infinity();
    for (const float x : row) {
        maximum = std::isnan(x) || static_cast<double>(x) > maximum ? static_cast<double>(x) : maximum;
    }
    double sum = 0;
    for (const float x : row) {
        sum += std::exp(static_cast<double>(x) - maximum);
    }
    std::vector<double> result;
    for (const float x : row) {
        result.push_back(static_cast<double>(x) - maximum - std::log(sum));
    }
    return result;
}

inline void expect_near(double got, double expected, double tolerance, const char* what) {
    const double allowed = std::isfinite(expected) ? tolerance * (1 + std::fabs(expected)) : 0;
    EXPECT_LE(excess(got, expected, Element::f32), allowed)
        << what << ": " << got << ", expected " << expected;
}

/// Rows as models make them, and rows at the ends of what fp32 can say.
inline constexpr int kinds = 12;
inline Row make_row(Random& random, std::size_t vocabulary, int kind) {
    Row row(vocabulary);
    const float spread = 0.5F + static_cast<float>(random.below(12));
    for (float& x : row) {
        x = random.normal() * spread;
    }
    const auto some = [&]() -> float& {
        return row[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(vocabulary)))];
    };
    switch (kind) {
    case 1: // few different logits: ties everywhere
        for (float& x : row) {
            x = std::nearbyint(x);
        }
        break;
    case 2: // all the same
        std::fill(row.begin(), row.end(), random.normal());
        break;
    case 3: // most impossible
        for (float& x : row) {
            x = random.one_of(4) ? x : -infinity;
        }
        break;
    case 4: // all impossible
        std::fill(row.begin(), row.end(), -infinity);
        break;
    case 5: // -1e35 before anything usual: sums of products with such differences overflow
        std::fill(row.begin(), row.end(), -1e35F);
        row.back() = random.normal();
        break;
    case 6: // nearly as far apart as a difference in fp32 can say
        for (float& x : row) {
            x = random.one_of(3) ? 1.4e38F : -1.4e38F;
        }
        break;
    case 7:
        some() = infinity;
        break;
    case 8:
        some() = infinity;
        some() = infinity;
        some() = -infinity;
        break;
    case 9:
        some() = nan;
        break;
    case 10: // hardly a number at all
        for (float& x : row) {
            x = random.one_of(20) ? x : nan;
        }
        some() = infinity;
        break;
    case 11: // nothing but the lowest
        std::fill(row.begin(), row.end(), -1e35F);
        break;
    default:
        break;
    }
    return row;
}

inline double divergence(const Row& p, const Row& q) {
    const auto log_p = log_softmax(p);
    const auto log_q = log_softmax(q);
    const double end = std::numeric_limits<double>::infinity();
    double sum = 0;
    bool apart = false;
    for (std::size_t v = 0; v < p.size(); ++v) {
        if (std::isnan(log_p[v]) || std::isnan(log_q[v])) {
            return static_cast<double>(nan);
        }
        apart = apart || (log_q[v] == -end && log_p[v] != -end);
        sum += log_p[v] == -end || log_q[v] == -end ? 0 : std::exp(log_p[v]) * (log_p[v] - log_q[v]);
    }
    return apart ? end : sum;
}

} // namespace ponderscope::kernels::testing
