// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/front.h"

#include "core/base/error.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>

namespace ponderscope {
namespace {

/// Indices of the points without NaN, sorted by cost, then loss, then index.
std::vector<std::size_t> by_cost(std::span<const FrontPoint> points) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < points.size(); ++i) {
        if (!std::isnan(points[i].cost) && !std::isnan(points[i].loss)) {
            order.push_back(i);
        }
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return points[a].cost != points[b].cost ? points[a].cost < points[b].cost
                                                : points[a].loss < points[b].loss;
    });
    return order;
}

} // namespace

PairedDifferences paired_differences(std::span<const double> reference,
                                     std::span<const std::vector<double>> alternatives, const RowLayout& rows,
                                     const BootstrapOptions& options) {
    // A few alternatives at a time, so that memory stays a small multiple of the sample.
    constexpr std::size_t together = 8;
    const auto difference = [&](std::size_t alternative) {
        const std::vector<double>& other = alternatives[alternative];
        if (other.size() != reference.size()) {
            throw InputError(ErrorId::input_invalid, "expected " + std::to_string(reference.size()) +
                                                         " values of paired tokens, found " +
                                                         std::to_string(other.size()) + ".");
        }
        std::vector<double> values(reference.size());
        std::ranges::transform(other, reference, values.begin(), std::minus()); // exactly 0 for equal values
        return values;
    };
    // One block length for all alternatives: the longest of theirs.
    PairedDifferences result;
    for (std::size_t s = 0; s < std::max<std::size_t>(alternatives.size(), 1); ++s) {
        const std::vector<double> values =
            alternatives.empty() ? std::vector<double>(reference.begin(), reference.end()) : difference(s);
        const std::span<const double> series[] = {values};
        const Resampling how = rows.resampling(series, options);
        if (s == 0 || how.block > result.resampling.block) {
            result.resampling = how;
        }
    }
    const BootstrapOptions settled = result.resampling.apply(options);
    const SmallSample small = SmallSample::of_units(result.resampling.units);
    std::vector<std::vector<double>> replicates(
        alternatives.size(), std::vector<double>(static_cast<std::size_t>(options.replicates)));
    std::vector<double> means;
    for (std::size_t begin = 0; begin < alternatives.size(); begin += together) {
        const std::size_t width = std::min(together, alternatives.size() - begin);
        std::vector<double> columns(reference.size() * width);
        for (std::size_t s = 0; s < width; ++s) {
            const std::vector<double> values = difference(begin + s);
            for (std::size_t i = 0; i < values.size(); ++i) {
                columns[i * width + s] = values[i];
            }
            means.push_back(rows.mean(values));
        }
        const PrefixSums sums = rows.sums(std::move(columns), width);
        for_each_replicate(sums, result.resampling, settled,
                           [&](std::int64_t r, std::span<const double> total, std::int64_t tokens) {
                               for (std::size_t s = 0; s < width; ++s) {
                                   replicates[begin + s][static_cast<std::size_t>(r)] =
                                       total[s] / static_cast<double>(tokens);
                               }
                           });
        const UnitSums units = unit_sums(sums, result.resampling);
        for (std::size_t s = 0; s < width; ++s) {
            result.p.push_back(sign_flip_p(units.column(s)));
            result.each.push_back(interval_of(means[begin + s], replicates[begin + s], small, settled));
        }
    }
    result.bands = simultaneous_bands(means, replicates, small, settled);
    return result;
}

std::vector<bool> pareto_front(std::span<const FrontPoint> points) {
    std::vector<bool> on_front(points.size(), false);
    double best = std::numeric_limits<double>::infinity();
    for (const std::size_t i : by_cost(points)) {
        if (points[i].loss < best) {
            best = points[i].loss;
            on_front[i] = true;
        }
    }
    return on_front;
}

std::vector<FrontPoint> sorted_front(std::span<const FrontPoint> points) {
    std::vector<FrontPoint> front;
    for (const std::size_t i : by_cost(points)) {
        if (front.empty() || points[i].loss < front.back().loss) {
            front.push_back(points[i]);
        }
    }
    return front;
}

std::vector<FrontPoint> convex_front(std::span<const FrontPoint> points) {
    // The loss saved per unit of cost, which decreases along a convex hull.
    const auto saving = [](const FrontPoint& a, const FrontPoint& b) {
        return (a.loss - b.loss) / (b.cost - a.cost);
    };
    std::vector<FrontPoint> hull;
    for (const FrontPoint& point : sorted_front(points)) {
        while (hull.size() > 1 && saving(hull[hull.size() - 2], hull.back()) <= saving(hull.back(), point)) {
            hull.pop_back();
        }
        hull.push_back(point);
    }
    return hull;
}

double loss_at(std::span<const FrontPoint> front, double cost) {
    const auto right = std::upper_bound(front.begin(), front.end(), cost,
                                        [](double c, const FrontPoint& point) { return c < point.cost; });
    if (right == front.begin()) {
        return front.front().loss;
    }
    const FrontPoint& left = *(right - 1);
    if (right == front.end()) {
        return left.loss;
    }
    return left.loss + (right->loss - left.loss) * (cost - left.cost) / (right->cost - left.cost);
}

} // namespace ponderscope
