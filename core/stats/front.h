// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/stats/bootstrap.h"

#include <cstdint>
#include <span>
#include <vector>

namespace ponderscope {

/// Paired differences: the mean of each alternative minus the mean of the reference over the same tokens,
/// with intervals; all from the same blocks (methods.md 11). \p alternatives: one span of as many values
/// each. InputError: lengths that differ, or as block_bootstrap.
std::vector<Estimate> paired_differences(std::span<const double> reference,
                                         std::span<const std::vector<double>> alternatives,
                                         const std::vector<std::int64_t>& stretches,
                                         const BootstrapOptions& options = {});

/// What a setting costs and what it loses: FLOPs a token (or steps), and nats a token.
struct FrontPoint {
    double cost = 0;
    double loss = 0;
};

/// Which points nothing dominates: no other is as cheap and as good, and better in one of the two. Of equal
/// points the first. NaN never is.
std::vector<bool> pareto_front(std::span<const FrontPoint> points);

/// Loss of a front at a cost: linear between its points, flat beyond the dearest (nobody has to spend more),
/// that of the cheapest before it. \p front: by cost, as sorted_front makes it; not empty.
double loss_at(std::span<const FrontPoint> front, double cost);
/// The points on the front, by cost.
std::vector<FrontPoint> sorted_front(std::span<const FrontPoint> points);

/// The area between two fronts over the costs that both reach, divided by the width of that range: the mean
/// difference B - A in nats a token at equal cost. NaN where the ranges do not overlap.
double mean_gap(std::span<const FrontPoint> a, std::span<const FrontPoint> b, double low, double high);

/// One setting of a policy over the tokens of a sample.
struct FrontSetting {
    std::vector<double> cost; ///< a token
    std::vector<double> nll;  ///< nats, a token
};

struct FrontComparison {
    double low = 0; ///< the range of mean costs that both fronts reach on the sample
    double high = 0;
    Estimate gap; ///< B - A, nats a token at equal cost; negative: B is better. NaN without a common range
};

/// Both fronts on the same resampled blocks; each replicate has fronts of its own, compared over the sample's
/// range. Memory: 16 bytes a token and setting.
FrontComparison compare_fronts(std::span<const FrontSetting> a, std::span<const FrontSetting> b,
                               const std::vector<std::int64_t>& stretches,
                               const BootstrapOptions& options = {});

} // namespace ponderscope
