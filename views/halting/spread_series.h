// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/figure/chart.h"

#include <QString>

#include <vector>

namespace ponderscope {

/// Mean and middle half of something by step: a band, a line, and points that say their numbers.
class SpreadSeries {
public:
    SpreadSeries();
    /// Of the tokens of step \p k: the mean, the first and the third quartile; \p label is said at the point.
    void add(std::size_t k, double mean, double low, double high, const QString& label);
    [[nodiscard]] std::vector<figure::Chart::Series> take();

private:
    figure::Chart::Series band_, mean_, points_;
};

} // namespace ponderscope
