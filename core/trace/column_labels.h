// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace ponderscope {

/// Names for the columns of a signal's source axis. Plain numbers would mislead: with a stride the second
/// column is not layer 1, and the last column is the layer's own value. They are stored at the end of the
/// signal's description, for all readers of the trace: "... Sources: 0, 4, 1 before, own."
std::string with_column_labels(const std::string& description, const std::vector<std::string>& labels);

/// The labels in a description; numbers from 0 if it does not have \p count labels.
std::vector<std::string> column_labels(const std::string& description, std::size_t count);

} // namespace ponderscope
