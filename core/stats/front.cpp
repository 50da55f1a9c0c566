// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/front.h"

#include "core/base/error.h"
#include "core/base/not_a_number.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace ponderscope {
namespace {

void check_lengths(std::size_t found, std::size_t expected) {
    if (found != expected) {
        throw InputError("expected " + std::to_string(expected) + " values of paired tokens, found " +
                         std::to_string(found) + ".");
    }
}

/// Order of the points by cost, then loss, then place; without NaN.
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
    // A few at a time: memory stays a small multiple of the sample.
    constexpr std::size_t together = 8;
    const auto difference = [&](std::size_t alternative) {
        const std::vector<double>& other = alternatives[alternative];
        check_lengths(other.size(), reference.size());
        // Identical settings differ by exactly nothing.
        std::vector<double> values(reference.size());
        for (std::size_t i = 0; i < reference.size(); ++i) {
            values[i] = other[i] - reference[i];
        }
        return values;
    };
    // All with one block: the longest that one of them asks for.
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
    // Loss that is saved for each unit of cost: falls along a convex hull.
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

double mean_gap(std::span<const FrontPoint> a, std::span<const FrontPoint> b, double low, double high) {
    const std::vector<FrontPoint> front_a = sorted_front(a);
    const std::vector<FrontPoint> front_b = sorted_front(b);
    if (front_a.empty() || front_b.empty() || !(low <= high)) {
        return not_a_number;
    }
    std::vector<double> corners{low, high};
    for (const std::vector<FrontPoint>* front : {&front_a, &front_b}) {
        for (const FrontPoint& point : *front) {
            if (point.cost > low && point.cost < high) {
                corners.push_back(point.cost);
            }
        }
    }
    std::sort(corners.begin(), corners.end());
    const auto gap = [&](double cost) { return loss_at(front_b, cost) - loss_at(front_a, cost); };
    if (low == high) {
        return gap(low);
    }
    // Linear between corners: the trapezoid is exact.
    double area = 0;
    for (std::size_t i = 0; i + 1 < corners.size(); ++i) {
        area += (corners[i + 1] - corners[i]) * (gap(corners[i]) + gap(corners[i + 1])) / 2;
    }
    return area / (high - low);
}

FrontComparison compare_fronts(std::span<const FrontSetting> a, std::span<const FrontSetting> b,
                               const RowLayout& rows, const BootstrapOptions& options) {
    FrontComparison result;
    result.gap = unknown_estimate;
    if (a.empty() || b.empty()) {
        return result;
    }
    const std::size_t count = a.front().nll.size();
    const std::size_t settings = a.size() + b.size();
    std::vector<const FrontSetting*> all;
    for (const std::span<const FrontSetting> side : {a, b}) {
        for (const FrontSetting& setting : side) {
            check_lengths(setting.nll.size(), count);
            check_lengths(setting.cost.size(), count);
            all.push_back(&setting);
        }
    }
    const auto points_of = [&](std::span<const FrontSetting> side) {
        std::vector<FrontPoint> points;
        for (const FrontSetting& setting : side) {
            points.push_back({rows.mean(setting.cost), rows.mean(setting.nll)});
        }
        return sorted_front(points);
    };
    const std::vector<FrontPoint> front_a = points_of(a);
    const std::vector<FrontPoint> front_b = points_of(b);
    if (front_a.empty() || front_b.empty()) {
        return result;
    }
    result.low = std::max(front_a.front().cost, front_b.front().cost);
    result.high = std::min(front_a.back().cost, front_b.back().cost);
    if (!(result.low <= result.high)) {
        return result;
    }
    const std::size_t width = 2 * settings;
    std::vector<double> columns(count * width);
    for (std::size_t s = 0; s < settings; ++s) {
        for (std::size_t i = 0; i < count; ++i) {
            columns[i * width + 2 * s] = all[s]->cost[i];
            columns[i * width + 2 * s + 1] = all[s]->nll[i];
        }
    }
    const PrefixSums sums = rows.sums(std::move(columns), width);
    const std::size_t of_a = a.size();
    const Statistic gap = [=, low = result.low, high = result.high](std::span<const double> totals,
                                                                    std::int64_t n) {
        std::vector<FrontPoint> points(settings);
        for (std::size_t s = 0; s < settings; ++s) {
            points[s] = {totals[2 * s] / static_cast<double>(n), totals[2 * s + 1] / static_cast<double>(n)};
        }
        return mean_gap(std::span(points).first(of_a), std::span(points).subspan(of_a), low, high);
    };
    std::vector<std::span<const double>> series;
    for (const FrontSetting* setting : all) {
        series.emplace_back(setting->nll);
    }
    const Resampling how = rows.resampling(series, options);
    result.gap = bootstrap(sums, std::span(&gap, 1), how.apply(options)).front();
    return result;
}

} // namespace ponderscope
