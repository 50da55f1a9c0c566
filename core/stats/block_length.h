// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/stats/layout.h"

#include <cstdint>
#include <span>

namespace ponderscope {

/// The length of circular blocks that makes the bootstrap's variance of the mean of \p series most accurate
/// (Politis and White 2004, with the correction of Patton, Politis and White 2009): (2 G² / D)^(1/3) n^(1/3),
/// G and D = 4/3 g(0)² from autocovariances under a flat-top lag window, whose width is where five lags in a
/// row are no longer told apart from zero. Autocovariances are taken inside stretches, around the mean of
/// all, so that texts that differ from each other ask for long blocks. Never more than min(3 √n, n / 3).
///
/// Tokens, as a real number; 1 for a series that does not vary or has fewer than 8 values. O(n √n) at worst.
double optimal_block_length(std::span<const double> series, const TokenLayout& layout);

} // namespace ponderscope
