// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ponderscope {

/// Sums of a sample, enough for its mean and variance.
struct Moments {
    std::int64_t count = 0;
    double mean = 0;
    double squares = 0; ///< sum of squared deviations from the mean

    void add(double value); ///< Welford's update
    /// Of the values of \p whole that are not in \p part.
    static Moments without(const Moments& whole, const Moments& part);
    [[nodiscard]] double variance() const; ///< unbiased; NaN for fewer than two values
};

/// Two-sided p of Welch's t-test that two samples have the same mean (SciPy's ttest_ind, equal_var false).
/// 1 where both means are equal and nothing varies, 0 where they differ and nothing varies; NaN for fewer
/// than two values in either.
double welch_p(const Moments& a, const Moments& b);

/// P(T <= t) of Student's distribution.
double student_cdf(double t, double degrees);

/// q-values of Benjamini and Hochberg (1995): the smallest false-discovery rate at which a test is called.
/// NaN stay NaN and are not counted as tests. In the order of \p p.
std::vector<double> benjamini_hochberg(std::span<const double> p);

} // namespace ponderscope
