// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/stats/significance.h"
#include "views/figure/chart.h"

#include <QString>

#include <functional>
#include <vector>

namespace ponderscope {

/// Of one step: a mean over all values, quartiles over all up to 100,000 and above over at least 50,000,
/// evenly spaced.
class Spread {
public:
    void add(float value); ///< NaN and infinity are left out
    [[nodiscard]] const Moments& all() const { return all_; }
    [[nodiscard]] double mean() const;                 ///< NaN when empty
    [[nodiscard]] double quantile(double share) const; ///< NaN when empty

private:
    Moments all_;
    std::vector<float> some_;
    std::int64_t every_ = 1;
};

/// Mean and middle half of something by step: a band, a line, and points that say their numbers.
class SpreadSeries {
public:
    SpreadSeries();
    /// Of the tokens of step \p k; \p label, of the mean, the first and the third quartile, is said at the
    /// point.
    void add(std::size_t k, const Spread& spread,
             const std::function<QString(double mean, double low, double high)>& label);
    [[nodiscard]] std::vector<figure::Chart::Series> take();

private:
    figure::Chart::Series band_, mean_, points_;
};

} // namespace ponderscope
