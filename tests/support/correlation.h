// SPDX-License-Identifier: GPL-3.0-or-later
// Correlations by their definitions, of values in memory.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

namespace ponderscope {

/// Ranks from 1; equal values share the mean of their ranks (SciPy's rankdata, "average").
inline std::vector<double> average_ranks(std::span<const double> values) {
    std::vector<std::size_t> order(values.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(),
              [&](std::size_t i, std::size_t j) { return values[i] < values[j]; });
    std::vector<double> ranks(values.size());
    for (std::size_t i = 0; i < order.size();) {
        std::size_t end = i + 1;
        while (end < order.size() && values[order[end]] == values[order[i]]) {
            ++end;
        }
        const double shared = (static_cast<double>(i + 1) + static_cast<double>(end)) / 2;
        for (; i < end; ++i) {
            ranks[order[i]] = shared;
        }
    }
    return ranks;
}

inline double pearson(std::span<const double> a, std::span<const double> b) {
    const std::size_t n = std::min(a.size(), b.size());
    if (n < 2) {
        return std::numeric_limits<double>::quiet_NaN();
    }
    const double mean_a = std::accumulate(a.begin(), a.end(), 0.0) / static_cast<double>(n);
    const double mean_b = std::accumulate(b.begin(), b.end(), 0.0) / static_cast<double>(n);
    double aa = 0;
    double bb = 0;
    double ab = 0;
    for (std::size_t i = 0; i < n; ++i) {
        const double da = a[i] - mean_a;
        const double db = b[i] - mean_b;
        aa += da * da;
        bb += db * db;
        ab += da * db;
    }
    if (aa == 0 || bb == 0) {
        return std::numeric_limits<double>::quiet_NaN();
    }
    return std::clamp(ab / std::sqrt(aa) / std::sqrt(bb), -1.0, 1.0);
}

inline double spearman(std::span<const double> a, std::span<const double> b) {
    return pearson(average_ranks(a), average_ranks(b));
}

} // namespace ponderscope
