// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/stats/bootstrap.h"

#include <cstdint>
#include <span>
#include <vector>

namespace ponderscope {

/// The interval of a mean with blocks of one length.
struct BlockRow {
    std::int64_t block = 0; ///< tokens
    Estimate mean;
};

/// Intervals of the mean of \p series with circular blocks of half, once and twice the length that \p options
/// give or the data ask for: an interval that hangs on the choice is seen to. Errors as bootstrap.
std::vector<BlockRow> block_sensitivity(std::span<const double> series, const TokenLayout& layout,
                                        const BootstrapOptions& options = {});

} // namespace ponderscope
