// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/stats/bootstrap.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

namespace ponderscope {

// Distributions from Boost.Math for finite arguments; NaN if an argument is invalid. Only significance.cpp
// includes Boost's headers, because they compile slowly.

double normal_cdf(double z);
double normal_quantile(double p);
/// P(T <= t) of Student's distribution.
double student_cdf(double t, double degrees);
double student_quantile(double p, double degrees);

/// The smallest detectable shift, in standard errors of the mean. Student's two-sided test at \p alpha with
/// \p units - 1 degrees of freedom finds this shift with probability \p power (noncentral t distribution, as
/// in statsmodels' TTestPower). NaN for fewer than two units.
double detectable_shift(double units, double alpha, double power);

/// Sums of a sample, enough for its mean and variance.
struct Moments {
    std::int64_t count = 0;
    double mean = 0;
    double squares = 0; ///< sum of squared deviations from the mean

    void add(double value);                ///< adds a value by Welford's update
    [[nodiscard]] double variance() const; ///< unbiased; NaN for fewer than two values
};

/// Two-sided p of the null hypothesis that independent units are symmetric noise around zero (a sign-flip
/// test). p is the share of all 2^n choices of signs with a sum at least as far from zero as the observed
/// sum. Also valid for score contributions of a regression (Hemerik, Goeman and Finos 2020). Exact for up to
/// 16 nonzero units. For more units, only the signs of the 10 largest are enumerated, and a normal
/// distribution with the same variance approximates the sum of the others. The approximation is accurate in
/// the middle and gives larger p in the tails. The result uses no random numbers and is the same on every
/// machine. 1 if all units are zero; NaN if a unit is NaN.
double sign_flip_p(std::span<const double> contributions);

/// The mean over tokens with its standard error over units. Units may have different numbers of tokens.
struct UnitMean {
    double mean = 0;           ///< sum of the values / sum of the tokens
    double standard_error = 0; ///< sqrt(n / (n - 1) Σ (sum_u - mean · tokens_u)²) / Σ tokens; NaN: one unit
    double degrees = 0;        ///< n - 1
};
/// \p sums, \p tokens: one entry for each unit. For units of one token: the usual mean and standard error.
UnitMean unit_mean(std::span<const double> sums, std::span<const double> tokens);

/// The sum over a group's tokens in each cluster or block that contains tokens of the group.
struct GroupTotals {
    std::vector<double> sums, tokens; ///< one entry for each unit, in the order of first use
    std::int64_t count = 0;

    void add(std::size_t unit, double value);
    [[nodiscard]] UnitMean mean() const { return unit_mean(sums, tokens); }
    /// The mean with its 95 % interval by Student's distribution; NaN bounds for fewer than two units.
    [[nodiscard]] Estimate interval() const;

private:
    std::map<std::size_t, std::size_t> at_; ///< index for each unit
};

/// How many tokens each of two models predicts right, with a test of the tokens that only one of them
/// predicts right (McNemar 1947).
struct Flips {
    std::int64_t tokens = 0;
    std::int64_t both_right = 0;
    std::int64_t only_a = 0; ///< A right, B wrong
    std::int64_t only_b = 0;
    std::int64_t both_wrong = 0;
    Estimate difference; ///< share of right predictions, A - B, with the interval over clusters or blocks
    double p = 0;        ///< two-sided p by sign flips of only_b - only_a in each unit
    double mcnemar = 0;  ///< exact two-sided McNemar p, which treats tokens as independent
};
/// Two-sided exact (binomial) p of McNemar's test; 1 without discordant pairs.
double mcnemar_p(std::int64_t only_a, std::int64_t only_b);

/// q-values: the smallest false-discovery rate at which a test counts as significant (Benjamini and Hochberg
/// 1995, for independent or positively dependent tests). The result keeps the order of \p p. A NaN stays NaN
/// and is not counted as a test.
std::vector<double> false_discovery_q(std::span<const double> p);
/// Sets q of all rows from their p. \p tested: the member of a row that contains p and q; default: the row
/// itself.
template <typename Row, typename Tested = std::identity>
void set_q(std::vector<Row>& rows, Tested tested = {}) {
    std::vector<double> p;
    for (const Row& row : rows) {
        p.push_back(std::invoke(tested, row).p);
    }
    const std::vector<double> q = false_discovery_q(p);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        std::invoke(tested, rows[i]).q = q[i];
    }
}

/// Simultaneous bands for all estimates at the options' level: each estimate ± c standard errors. c is the
/// quantile of the largest |replicate - estimate| / standard error over all estimates (max-t), corrected for
/// few units as in interval_of. \p replicates: [estimate][replicate]. A constant estimate has a band of width
/// 0 and has no effect on c.
std::vector<Estimate> simultaneous_bands(std::span<const double> values,
                                         std::span<const std::vector<double>> replicates,
                                         const SmallSample& small, const BootstrapOptions& options);

} // namespace ponderscope
