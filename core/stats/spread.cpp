// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/spread.h"

#include "core/base/not_a_number.h"
#include "core/stats/correlation.h"

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
    return all_.count == 0 ? not_a_number : all_.mean;
}

double Spread::quantile(double share) const {
    std::vector<double> sorted(some_.begin(), some_.end());
    std::sort(sorted.begin(), sorted.end());
    return quantile_of_sorted(sorted, share);
}

} // namespace ponderscope
