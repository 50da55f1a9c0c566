// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/bootstrap.h"

#include "core/base/error.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

namespace ponderscope {
namespace {

/// Sums over all pairs of tokens that are `lag` tokens apart in a stretch.
struct Lagged {
    double product = 0;
    double early = 0; ///< squares of the pairs' first tokens
    double late = 0;  ///< squares of the pairs' second tokens
};

/// \p squares: for each token, the sum of the squares of all tokens before it.
Lagged lagged(std::span<const double> centred, std::span<const double> squares, const TokenLayout& layout,
              std::size_t lag) {
    Lagged sums;
    std::size_t first = 0;
    for (const std::int64_t stretch : layout.stretches) {
        const std::size_t end = first + static_cast<std::size_t>(stretch);
        if (first + lag < end) {
            const double* const from = centred.data();
            sums.product += std::transform_reduce(from + first, from + end - lag, from + first + lag, 0.0);
            sums.early += squares[end - lag] - squares[first];
            sums.late += squares[end] - squares[first + lag];
        }
        first = end;
    }
    return sums;
}

} // namespace

double optimal_block_length(std::span<const double> series, const TokenLayout& layout) {
    if (static_cast<std::int64_t>(series.size()) != layout.tokens()) {
        throw InputError(ErrorId::input_invalid, "expected " + std::to_string(layout.tokens()) +
                                                     " values of a series, found " +
                                                     std::to_string(series.size()) + ".");
    }
    constexpr std::size_t fewest = 8;
    if (series.size() < fewest) {
        return 1;
    }
    const auto n = static_cast<double>(series.size());
    const double mean = std::accumulate(series.begin(), series.end(), 0.0) / n;
    std::vector<double> centred(series.begin(), series.end());
    std::vector<double> squares{0};
    for (double& value : centred) {
        value -= mean;
        squares.push_back(squares.back() + value * value);
    }
    // The constants of the paper: five lags in a row within 2 sqrt(log10 n / n) of zero.
    const std::size_t in_a_row = std::max<std::size_t>(5, static_cast<std::size_t>(std::log10(n)));
    const std::size_t most_lags = static_cast<std::size_t>(std::ceil(std::sqrt(n))) + in_a_row;
    const double insignificant = 2 * std::sqrt(std::log10(n) / n);
    std::vector<double> covariance;
    std::size_t quiet = 0; // consecutive lags with autocorrelations near zero
    std::size_t lags = most_lags;
    for (std::size_t lag = 0; lag <= lags; ++lag) {
        const Lagged sums = lagged(centred, squares, layout, lag);
        covariance.push_back(sums.product / n);
        if (lag == 0 && !(sums.product > 0)) {
            return 1;
        }
        if (lags < most_lags || lag == 0) {
            continue;
        }
        const double scale = std::sqrt(sums.early * sums.late);
        quiet = scale > 0 && std::abs(sums.product) / scale >= insignificant ? 0 : quiet + 1;
        if (quiet == in_a_row) {
            // Autocorrelations are near zero from lag - in_a_row + 1 on. The lag window is twice as wide.
            lags = std::min(most_lags, 2 * (lag - in_a_row + 1));
        }
    }
    double g = 0;
    double spectrum = covariance[0];
    for (std::size_t k = 1; k <= lags; ++k) {
        const double at = static_cast<double>(k) / static_cast<double>(lags);
        const double window = at <= 0.5 ? 1 : 2 * (1 - at);
        g += 2 * window * static_cast<double>(k) * covariance[k];
        spectrum += 2 * window * covariance[k];
    }
    const double most = std::ceil(std::min(3 * std::sqrt(n), n / 3));
    const double d = 4.0 / 3.0 * spectrum * spectrum;
    const double length = d > 0 ? std::cbrt(2 * g * g / d) * std::cbrt(n) : most;
    return std::clamp(length, 1.0, most);
}

} // namespace ponderscope
