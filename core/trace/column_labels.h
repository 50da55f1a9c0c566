// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace ponderscope {

/// Appends the labels of the axis `source` or `layer` to a signal's description: "... Sources: 0, 4, 1
/// before, own." An index alone does not name an entry: entry 1 need not be layer 1.
std::string with_column_labels(const std::string& description, const std::vector<std::string>& labels);

/// Reads the labels from a description. If it does not have \p count labels, returns "0", "1", ...
std::vector<std::string> column_labels(const std::string& description, std::size_t count);

} // namespace ponderscope
