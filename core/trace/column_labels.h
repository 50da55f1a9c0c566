// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace ponderscope {

/// Names for the columns of a signal's source axis. With a stride the second column is not layer 1, and the
/// last column is the layer's own value. The labels are stored at the end of the signal's description: "...
/// Sources: 0, 4, 1 before, own."
std::string with_column_labels(const std::string& description, const std::vector<std::string>& labels);

/// The labels in a description. Numbers from 0 if the description does not have \p count labels.
std::vector<std::string> column_labels(const std::string& description, std::size_t count);

} // namespace ponderscope
