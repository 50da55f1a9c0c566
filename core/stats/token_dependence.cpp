// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/token_dependence.h"

#include <limits>
#include <numeric>
#include <stdexcept>

namespace ponderscope {

void TokenDependence::add(std::span<const float> weights) {
    if (tokens_ == 0) {
        means_.assign(weights.size(), 0);
        squares_.assign(weights.size(), 0);
    } else if (weights.size() != means_.size()) {
        throw std::invalid_argument("TokenDependence: the number of sources changed");
    }
    ++tokens_;
    for (std::size_t s = 0; s < weights.size(); ++s) {
        // Welford's update: plain sums of squares would cancel if weights hardly vary, the case of interest.
        const double before = weights[s] - means_[s];
        means_[s] += before / static_cast<double>(tokens_);
        squares_[s] += before * (weights[s] - means_[s]);
    }
}

double TokenDependence::share_between_tokens() const {
    if (tokens_ < 2 || means_.size() < 2) {
        return std::numeric_limits<double>::quiet_NaN();
    }
    const double mean =
        std::accumulate(means_.begin(), means_.end(), 0.0) / static_cast<double>(means_.size());
    const double between_tokens = std::accumulate(squares_.begin(), squares_.end(), 0.0);
    double between_sources = 0;
    for (const double of_source : means_) {
        between_sources += static_cast<double>(tokens_) * (of_source - mean) * (of_source - mean);
    }
    const double total = between_tokens + between_sources;
    return total > 0 ? between_tokens / total : 0;
}

} // namespace ponderscope
