// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/stats/bootstrap.h"
#include "core/stats/significance.h"

#include <cstdint>
#include <span>
#include <vector>

namespace ponderscope {

/// Alternatives against a reference over the same rows: tokens, or clusters of them.
struct PairedDifferences {
    /// mean of each alternative minus mean of the reference, with separate intervals
    std::vector<Estimate> each;
    std::vector<Estimate> bands; ///< the same with simultaneous bands (max-t)
    std::vector<double> p;       ///< two-sided, of no difference: sign flips (significance.h)
    Resampling resampling;
};

/// All from the same draws (methods.md 11). \p alternatives: as many values each as the reference.
/// InputError: lengths that differ, or as bootstrap.
PairedDifferences paired_differences(std::span<const double> reference,
                                     std::span<const std::vector<double>> alternatives, const RowLayout& rows,
                                     const BootstrapOptions& options = {});

/// Cost and loss of a setting: FLOPs a token (or steps), and nats a token.
struct FrontPoint {
    double cost = 0;
    double loss = 0;
};

/// Which points nothing dominates: no other point is at least as good in both and better in one. Of equal
/// points the first. NaN never is.
std::vector<bool> pareto_front(std::span<const FrontPoint> points);

/// Loss of a front at a cost: linear between the points; flat beyond the most expensive and before the
/// cheapest. \p front: by cost, as sorted_front makes it; not empty.
double loss_at(std::span<const FrontPoint> front, double cost);
/// The points on the front, by cost.
std::vector<FrontPoint> sorted_front(std::span<const FrontPoint> points);

/// The lower convex hull of points, never rising: the least mean loss at a mean cost of at most c, if one of
/// the points is drawn for each token. By cost; read with loss_at.
std::vector<FrontPoint> convex_front(std::span<const FrontPoint> points);

/// The area between two fronts over the costs that both reach, divided by the width of that range: the mean
/// difference B - A in nats a token at equal cost. NaN if the ranges do not overlap.
double mean_gap(std::span<const FrontPoint> a, std::span<const FrontPoint> b, double low, double high);

/// One setting of a policy over the rows of a sample.
struct FrontSetting {
    std::vector<double> cost;
    std::vector<double> nll; ///< nats
};

struct FrontComparison {
    double low = 0; ///< the range of mean costs that both fronts reach on the sample
    double high = 0;
    Estimate gap; ///< B - A, nats a token at equal cost; negative: B is better. NaN without a common range
};

/// Both fronts on the same draws; each replicate chooses its own settings for the fronts and compares them
/// over the sample's range: so the interval knows the choice. Memory: 16 bytes a row and setting.
FrontComparison compare_fronts(std::span<const FrontSetting> a, std::span<const FrontSetting> b,
                               const RowLayout& rows, const BootstrapOptions& options = {});

} // namespace ponderscope
