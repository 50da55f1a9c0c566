// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <span>
#include <vector>

namespace ponderscope {

/// Ranks from 1; equal values share the mean of their ranks (SciPy's rankdata, "average"). NaN is not
/// allowed.
std::vector<double> average_ranks(std::span<const double> values);

/// Pearson's r of two samples of one length; NaN for fewer than two values or where one does not vary.
double pearson(std::span<const double> a, std::span<const double> b);

/// Spearman's rho: Pearson's r of the average ranks.
double spearman(std::span<const double> a, std::span<const double> b);

/// The q-quantile (q in [0,1]) of sorted values, linear between order statistics (numpy's default; type 7 of
/// Hyndman and Fan 1996). NaN without values.
double quantile_of_sorted(std::span<const double> sorted, double q);

} // namespace ponderscope
