// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/significance.h"

#include "core/base/error.h"
#include "core/base/not_a_number.h"

#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/non_central_t.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

namespace ponderscope {
namespace {

using boost::math::policies::overflow_error;
using boost::math::policies::policy;
/// Return infinity instead of throwing. Compute in double, so that every machine gets the same result.
using Quiet =
    policy<overflow_error<boost::math::policies::ignore_error>, boost::math::policies::promote_double<false>>;
using Normal = boost::math::normal_distribution<double, Quiet>;
using Student = boost::math::students_t_distribution<double, Quiet>;
using Noncentral = boost::math::non_central_t_distribution<double, Quiet>;
using Binomial = boost::math::binomial_distribution<double, Quiet>;

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Calls \p use with the sum of \p values for each choice of signs, except that the first sign stays: the
/// other half of the choices mirrors these. Changes one sign at a time (Gray code).
template <typename Use>
void for_each_signed_sum(std::span<const double> values, Use use) {
    double sum = std::accumulate(values.begin(), values.end(), 0.0);
    std::vector<double> sign(values.size(), 1.0);
    const std::uint64_t choices = std::uint64_t{1} << (values.size() - 1);
    for (std::uint64_t i = 0; i < choices; ++i) {
        if (i > 0) {
            const auto flipped = static_cast<std::size_t>(std::countr_zero(i)) + 1;
            sign[flipped] = -sign[flipped];
            sum += 2 * sign[flipped] * values[flipped];
        }
        use(sum);
    }
}

} // namespace

double normal_cdf(double z) {
    return std::isnan(z) ? not_a_number : cdf(Normal(), z);
}

double normal_quantile(double p) {
    if (!(p >= 0 && p <= 1)) {
        return not_a_number;
    }
    return p == 0 ? -infinity : p == 1 ? infinity : quantile(Normal(), p);
}

double student_cdf(double t, double degrees) {
    if (std::isnan(t) || !(degrees > 0)) {
        return not_a_number;
    }
    return cdf(Student(degrees), t);
}

double student_quantile(double p, double degrees) {
    if (!(p >= 0 && p <= 1) || !(degrees > 0)) {
        return not_a_number;
    }
    return p == 0 ? -infinity : p == 1 ? infinity : quantile(Student(degrees), p);
}

double detectable_shift(double units, double alpha, double power) {
    if (!(units >= 2) || !(alpha > 0 && alpha < 1) || !(power > alpha && power < 1)) {
        return not_a_number;
    }
    const double degrees = units - 1;
    // For more degrees, Student's distribution equals the normal one to six digits.
    const bool normal = degrees > 1e5;
    const double critical =
        normal ? normal_quantile(1 - alpha / 2) : student_quantile(1 - alpha / 2, degrees);
    const auto found = [&](double shift) {
        if (normal) {
            return normal_cdf(shift - critical) + normal_cdf(-critical - shift);
        }
        const Noncentral shifted(degrees, shift);
        return cdf(complement(shifted, critical)) + cdf(shifted, -critical);
    };
    double low = 0;
    double high = 1;
    while (found(high) < power) {
        high *= 2;
        if (high > 1e6) {
            return not_a_number;
        }
    }
    while (high - low > 1e-10 * high) {
        const double middle = (low + high) / 2;
        (found(middle) < power ? low : high) = middle;
    }
    return high;
}

void Moments::add(double value) {
    ++count;
    const double before = value - mean;
    mean += before / static_cast<double>(count);
    squares += before * (value - mean);
}

double Moments::variance() const {
    return count < 2 ? not_a_number : squares / static_cast<double>(count - 1);
}

double sign_flip_p(std::span<const double> contributions) {
    constexpr std::size_t most_exact = 16;
    constexpr std::size_t enumerated = 10;
    std::vector<double> sizes;
    double observed = 0;
    for (const double value : contributions) {
        if (!std::isfinite(value)) {
            return not_a_number;
        }
        observed += value;
        if (value != 0) {
            sizes.push_back(std::abs(value));
        }
    }
    if (sizes.empty()) {
        return 1;
    }
    // A tolerance, because sums of the same numbers in another order count as equal.
    const double total = std::accumulate(sizes.begin(), sizes.end(), 0.0);
    observed = std::abs(observed) - 1e-12 * total;
    const std::size_t exact = sizes.size() <= most_exact ? sizes.size() : enumerated;
    std::partial_sort(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(exact), sizes.end(),
                      std::greater<>());
    double rest = 0;
    for (std::size_t i = exact; i < sizes.size(); ++i) {
        rest += sizes[i] * sizes[i];
    }
    const double spread = std::sqrt(rest);
    double as_far = 0;
    double choices = 0;
    for_each_signed_sum(std::span(sizes).first(exact), [&](double sum) {
        ++choices;
        as_far += spread > 0 ? normal_cdf((sum - observed) / spread) + normal_cdf((-sum - observed) / spread)
                             : (std::abs(sum) >= observed ? 1.0 : 0.0);
    });
    return std::min(1.0, as_far / choices);
}

UnitMean unit_mean(std::span<const double> sums, std::span<const double> tokens) {
    if (sums.size() != tokens.size()) {
        throw InputError(ErrorId::input_invalid, "expected as many sums as token counts, found " +
                                                     std::to_string(sums.size()) + " and " +
                                                     std::to_string(tokens.size()) + ".");
    }
    const double all = std::accumulate(tokens.begin(), tokens.end(), 0.0);
    UnitMean result;
    result.mean = std::accumulate(sums.begin(), sums.end(), 0.0) / all;
    const auto n = static_cast<double>(sums.size());
    result.degrees = n - 1;
    double squares = 0;
    for (std::size_t u = 0; u < sums.size(); ++u) {
        const double residual = sums[u] - result.mean * tokens[u];
        squares += residual * residual;
    }
    result.standard_error = n < 2 ? not_a_number : std::sqrt(squares * n / (n - 1)) / all;
    return result;
}

void GroupTotals::add(std::size_t unit, double value) {
    const auto [place, fresh] = at_.emplace(unit, tokens.size());
    if (fresh) {
        sums.push_back(0);
        tokens.push_back(0);
    }
    sums[place->second] += value;
    tokens[place->second] += 1;
    ++count;
}

Estimate GroupTotals::interval() const {
    const UnitMean all = mean();
    const double half = all.standard_error > 0 ? all.standard_error * student_quantile(0.975, all.degrees)
                                               : all.standard_error;
    return {all.mean, all.mean - half, all.mean + half, all.standard_error};
}

double mcnemar_p(std::int64_t only_a, std::int64_t only_b) {
    const std::int64_t discordant = only_a + only_b;
    if (discordant == 0) {
        return 1;
    }
    return std::min(1.0, 2 * cdf(Binomial(static_cast<double>(discordant), 0.5),
                                 static_cast<double>(std::min(only_a, only_b))));
}

std::vector<double> false_discovery_q(std::span<const double> p) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < p.size(); ++i) {
        if (!std::isnan(p[i])) {
            order.push_back(i);
        }
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return p[a] < p[b]; });
    const auto tests = static_cast<double>(order.size());
    std::vector<double> q(p.size(), not_a_number);
    double least = 1;
    for (std::size_t i = order.size(); i-- > 0;) {
        least = std::min(least, p[order[i]] * tests / static_cast<double>(i + 1));
        q[order[i]] = least;
    }
    return q;
}

std::vector<Estimate> simultaneous_bands(std::span<const double> values,
                                         std::span<const std::vector<double>> replicates,
                                         const SmallSample& small, const BootstrapOptions& options) {
    if (values.size() != replicates.size()) {
        throw InputError(ErrorId::input_invalid, "expected replicates of " + std::to_string(values.size()) +
                                                     " estimates, found " +
                                                     std::to_string(replicates.size()) + ".");
    }
    std::vector<Estimate> bands;
    std::vector<double> largest;
    for (std::size_t e = 0; e < values.size(); ++e) {
        bands.push_back(interval_of(values[e], replicates[e], small, options));
        Estimate& band = bands.back();
        band.low = band.high = values[e];
        if (!(band.standard_error > 0)) {
            if (std::isnan(band.standard_error)) {
                band.low = band.high = not_a_number;
            }
            continue;
        }
        largest.resize(replicates[e].size(), 0.0);
        for (std::size_t r = 0; r < largest.size(); ++r) {
            const double far = std::abs(replicates[e][r] - values[e]) / band.standard_error;
            largest[r] = std::isnan(far) ? largest[r] : std::max(largest[r], far);
        }
    }
    if (largest.empty()) {
        return bands;
    }
    std::sort(largest.begin(), largest.end());
    // Correct `far` for few units like a single interval at the level of `far`. This level is higher than
    // options.level, so the correction is larger than for a single interval.
    const double far = quantile_of_sorted(largest, options.level);
    BootstrapOptions alone = options;
    alone.level = 2 * normal_cdf(far) - 1;
    const double c = alone.level < 1 ? critical_value(small, alone) : far;
    for (Estimate& band : bands) {
        if (band.standard_error > 0) {
            band.low = band.value - c * band.standard_error;
            band.high = band.value + c * band.standard_error;
        }
    }
    return bands;
}

} // namespace ponderscope
