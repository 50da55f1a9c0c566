// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/stats/significance.h"

#include <cstdint>
#include <vector>

namespace ponderscope {

/// The mean of all values, and quantiles: of all values up to 100,000, above that of at least 50,000 evenly
/// spaced ones.
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

} // namespace ponderscope
