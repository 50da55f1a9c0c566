// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/stats/bootstrap.h"
#include "core/stats/significance.h"

#include <cstdint>
#include <span>
#include <vector>

namespace ponderscope {

/// Differences of alternatives from a reference over the same rows. A row is a token or a cluster of tokens.
struct PairedDifferences {
    /// mean of each alternative minus mean of the reference, with pointwise intervals
    std::vector<Estimate> each;
    std::vector<Estimate> bands; ///< these differences with simultaneous bands (max-t)
    std::vector<double> p;       ///< two-sided p of "no difference": sign flips (significance.h)
    Resampling resampling;
};

/// All intervals and bands use the same draws (methods.md section 11). \p reference, \p alternatives: a value
/// for each row. InputError: different lengths, and the errors of bootstrap.
PairedDifferences paired_differences(std::span<const double> reference,
                                     std::span<const std::vector<double>> alternatives, const RowLayout& rows,
                                     const BootstrapOptions& options = {});

/// Cost and loss of a setting: FLOPs (or steps) per token, and nats per token.
struct FrontPoint {
    double cost = 0;
    double loss = 0;
};

/// For each point, whether no other point dominates it. A point is dominated if another point is at least as
/// good in both numbers and better in one. Of equal points, all but the first are dominated. A point with NaN
/// is always dominated.
std::vector<bool> pareto_front(std::span<const FrontPoint> points);

/// The loss of a front at a cost: interpolated linearly between points, constant beyond the ends. \p front:
/// from sorted_front or convex_front; not empty.
double loss_at(std::span<const FrontPoint> front, double cost);
/// The points on the front, by cost.
std::vector<FrontPoint> sorted_front(std::span<const FrontPoint> points);

/// The lower convex hull of points, made non-increasing and sorted by cost. If each token draws one of the
/// points at random, loss_at(hull, c) is the least possible mean loss at a mean cost of at most c.
std::vector<FrontPoint> convex_front(std::span<const FrontPoint> points);

} // namespace ponderscope
