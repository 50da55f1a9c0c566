// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/halting/spread_series.h"

#include "core/stats/correlation.h"

#include <QCoreApplication>

#include <algorithm>
#include <cmath>

namespace ponderscope {

void Spread::add(float value) {
    if (!std::isfinite(value)) {
        return;
    }
    if (all_.count % every_ == 0) {
        constexpr std::size_t most = 100'000;
        some_.push_back(value);
        if (some_.size() > most) {
            for (std::size_t i = 0; 2 * i < some_.size(); ++i) {
                some_[i] = some_[2 * i];
            }
            some_.resize((some_.size() + 1) / 2);
            every_ *= 2;
        }
    }
    all_.add(static_cast<double>(value));
}

double Spread::mean() const {
    return all_.count == 0 ? std::nan("") : all_.mean;
}

double Spread::quantile(double share) const {
    std::vector<double> sorted(some_.begin(), some_.end());
    std::sort(sorted.begin(), sorted.end());
    return quantile_of_sorted(sorted, share);
}

SpreadSeries::SpreadSeries() {
    band_.mark = figure::Chart::Mark::band;
    band_.name = QCoreApplication::translate("Halting", "middle half of the tokens");
    mean_.name = QCoreApplication::translate("Halting", "mean");
    points_.mark = figure::Chart::Mark::point;
}

void SpreadSeries::add(std::size_t k, const Spread& spread,
                       const std::function<QString(double, double, double)>& label) {
    for (figure::Chart::Series* series : {&band_, &mean_, &points_}) {
        series->x.push_back(static_cast<double>(k));
        series->y.push_back(spread.mean());
    }
    band_.low.push_back(spread.quantile(0.25));
    band_.high.push_back(spread.quantile(0.75));
    points_.labels.push_back(label(spread.mean(), band_.low.back(), band_.high.back()));
}

std::vector<figure::Chart::Series> SpreadSeries::take() {
    return {std::move(band_), std::move(mean_), std::move(points_)};
}

} // namespace ponderscope
