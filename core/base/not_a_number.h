// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <limits>

namespace ponderscope {

/// Marks a missing number in sums and tables.
inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

} // namespace ponderscope
