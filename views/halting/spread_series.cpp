// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/halting/spread_series.h"

#include <QCoreApplication>

namespace ponderscope {

SpreadSeries::SpreadSeries() {
    band_.mark = Chart::Mark::band;
    band_.name = QCoreApplication::translate("Halting", "middle half of the tokens");
    mean_.name = QCoreApplication::translate("Halting", "mean");
    points_.mark = Chart::Mark::point;
}

void SpreadSeries::add(std::size_t k, const Spread& spread,
                       const std::function<QString(double, double, double)>& label) {
    for (Chart::Series* series : {&band_, &mean_, &points_}) {
        series->x.push_back(static_cast<double>(k));
        series->y.push_back(spread.mean());
    }
    band_.low.push_back(spread.quantile(0.25));
    band_.high.push_back(spread.quantile(0.75));
    points_.labels.push_back(label(spread.mean(), band_.low.back(), band_.high.back()));
}

std::vector<Chart::Series> SpreadSeries::take() {
    return {std::move(band_), std::move(mean_), std::move(points_)};
}

} // namespace ponderscope
