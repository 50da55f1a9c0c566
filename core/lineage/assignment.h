// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <span>
#include <stop_token>
#include <vector>

namespace ponderscope {

/// The linear assignment problem: assigns a different column to every row so that the sum of costs is
/// smallest. Exact, by shortest augmenting paths with dual prices (Jonker and Volgenant 1987; rectangular as
/// Crouse 2016). Time: O(rows * columns) for one path, at worst O(rows^2 * columns) in total. \p cost:
/// row-major [rows, columns], finite, rows <= columns. Returns the column of each row. Throws Cancelled.
std::vector<std::int64_t> assign_rows(std::span<const double> cost, std::int64_t rows, std::int64_t columns,
                                      const std::stop_token& stop = {});

} // namespace ponderscope
