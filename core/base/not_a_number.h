// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <limits>

namespace ponderscope {

/// What was not measured, in sums and tables of numbers.
inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

} // namespace ponderscope
