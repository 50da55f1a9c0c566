// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/significance.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ponderscope {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// Continued fraction of the incomplete beta function, by Lentz's method.
double beta_fraction(double x, double a, double b) {
    constexpr double tiny = 1e-300;
    const auto kept = [](double value) { return std::abs(value) < tiny ? tiny : value; };
    double c = 1;
    double d = 1 / kept(1 - (a + b) * x / (a + 1));
    double result = d;
    for (int m = 1; m < 10'000; ++m) {
        const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        d = 1 / kept(1 + even * d);
        c = kept(1 + even / c);
        result *= d * c;
        const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 / kept(1 + odd * d);
        c = kept(1 + odd / c);
        result *= d * c;
        if (std::abs(d * c - 1) < 1e-15) {
            break;
        }
    }
    return result;
}

/// I_x(a, b), regularised. \p rest is 1 - x, which the caller knows to the last digit where x is nearly 1.
double incomplete_beta(double x, double rest, double a, double b) {
    if (!(x > 0)) {
        return 0;
    }
    if (!(rest > 0)) {
        return 1;
    }
    const double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                  a * (x < 0.5 ? std::log(x) : std::log1p(-rest)) + b * std::log(rest));
    // The fraction converges quickly on one side of the mean.
    return x < (a + 1) / (a + b + 2) ? front * beta_fraction(x, a, b) / a
                                     : 1 - front * beta_fraction(rest, b, a) / b;
}

/// Both tails of Student's t.
double two_tails(double t, double degrees) {
    const double square = t * t;
    if (std::isinf(square)) {
        return 0;
    }
    return incomplete_beta(degrees / (degrees + square), square / (degrees + square), degrees / 2, 0.5);
}

} // namespace

void Moments::add(double value) {
    ++count;
    const double before = value - mean;
    mean += before / static_cast<double>(count);
    squares += before * (value - mean);
}

Moments Moments::without(const Moments& whole, const Moments& part) {
    Moments rest;
    rest.count = whole.count - part.count;
    if (rest.count <= 0) {
        return {};
    }
    const auto all = static_cast<double>(whole.count);
    const auto taken = static_cast<double>(part.count);
    const auto left = static_cast<double>(rest.count);
    rest.mean = (all * whole.mean - taken * part.mean) / left;
    const double apart = part.mean - rest.mean;
    rest.squares = std::max(0.0, whole.squares - part.squares - apart * apart * taken * left / all);
    return rest;
}

double Moments::variance() const {
    return count < 2 ? nan : squares / static_cast<double>(count - 1);
}

double student_cdf(double t, double degrees) {
    if (std::isnan(t) || !(degrees > 0)) {
        return nan;
    }
    const double tail = two_tails(t, degrees) / 2;
    return t < 0 ? tail : 1 - tail;
}

double welch_p(const Moments& a, const Moments& b) {
    if (a.count < 2 || b.count < 2) {
        return nan;
    }
    const double of_a = a.variance() / static_cast<double>(a.count);
    const double of_b = b.variance() / static_cast<double>(b.count);
    const double error = of_a + of_b;
    if (!(error > 0)) {
        return a.mean == b.mean ? 1 : 0;
    }
    const double t = (a.mean - b.mean) / std::sqrt(error);
    const double degrees =
        error * error /
        (of_a * of_a / static_cast<double>(a.count - 1) + of_b * of_b / static_cast<double>(b.count - 1));
    return two_tails(t, degrees);
}

std::vector<double> benjamini_hochberg(std::span<const double> p) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < p.size(); ++i) {
        if (!std::isnan(p[i])) {
            order.push_back(i);
        }
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return p[a] < p[b]; });
    std::vector<double> q(p.size(), nan);
    double least = 1;
    const auto tests = static_cast<double>(order.size());
    for (std::size_t i = order.size(); i-- > 0;) {
        least = std::min(least, p[order[i]] * tests / static_cast<double>(i + 1));
        q[order[i]] = least;
    }
    return q;
}

} // namespace ponderscope
