// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/stats/halting.h"
#include "core/stats/significance.h"
#include "views/chart/chart.h"

#include <QString>

#include <functional>
#include <vector>

namespace ponderscope {

/// Mean and middle half of something by step: a band, a line, and points that say their numbers.
class SpreadSeries {
public:
    SpreadSeries();
    /// Of the tokens of step \p k; \p label, of the mean, the first and the third quartile, is said at the
    /// point.
    void add(std::size_t k, const Spread& spread,
             const std::function<QString(double mean, double low, double high)>& label);
    [[nodiscard]] std::vector<Chart::Series> take();

private:
    Chart::Series band_, mean_, points_;
};

} // namespace ponderscope
