// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <functional>

namespace ponderscope {

/// Calls \p work once for each part 0..parts-1, by up to \p workers threads: the calling thread, which is
/// worker 0, and helpers. After a failure no further part is begun, but a part that was begun is finished, so
/// the exception of the lowest failed part is the one that is thrown.
void for_each_part(std::size_t parts, std::size_t workers,
                   const std::function<void(std::size_t part, std::size_t worker)>& work);

} // namespace ponderscope
