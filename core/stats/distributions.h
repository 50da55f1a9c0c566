// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

namespace ponderscope {

// Distributions from Boost.Math, for finite arguments; NaN where the arguments have none. Together in one
// place, because its headers take long to compile.

double normal_cdf(double z);
double normal_quantile(double p);
/// P(T <= t) of Student's distribution.
double student_cdf(double t, double degrees);
double student_quantile(double p, double degrees);
/// P(X <= successes) of a binomial distribution.
double binomial_cdf(double successes, double trials, double probability);

/// The shift, in standard errors of the mean, that a two-sided test of Student's at \p alpha with \p units -
/// 1 degrees of freedom finds with probability \p power (by the noncentral t distribution, as statsmodels'
/// TTestPower). NaN for fewer than two units.
double detectable_shift(double units, double alpha, double power);

} // namespace ponderscope
