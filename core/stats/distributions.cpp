// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/distributions.h"

#include "core/base/not_a_number.h"

#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/non_central_t.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace ponderscope {
namespace {

using boost::math::policies::overflow_error;
using boost::math::policies::policy;
/// Infinities come back as such, and nothing is computed wider than double, so that every machine agrees.
using Quiet =
    policy<overflow_error<boost::math::policies::ignore_error>, boost::math::policies::promote_double<false>>;
using Normal = boost::math::normal_distribution<double, Quiet>;
using Student = boost::math::students_t_distribution<double, Quiet>;
using Noncentral = boost::math::non_central_t_distribution<double, Quiet>;
using Binomial = boost::math::binomial_distribution<double, Quiet>;

constexpr double infinity = std::numeric_limits<double>::infinity();

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

double binomial_cdf(double successes, double trials, double probability) {
    if (std::isnan(successes) || !(trials >= 0) || !(probability >= 0 && probability <= 1)) {
        return not_a_number;
    }
    if (successes < 0) {
        return 0;
    }
    return cdf(Binomial(trials, probability), std::min(std::floor(successes), trials));
}

double detectable_shift(double units, double alpha, double power) {
    if (!(units >= 2) || !(alpha > 0 && alpha < 1) || !(power > alpha && power < 1)) {
        return not_a_number;
    }
    const double degrees = units - 1;
    // Beyond, Student's distribution is the normal one to six digits.
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

} // namespace ponderscope
