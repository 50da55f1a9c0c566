// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/head_state.h"

#include <algorithm>

namespace ponderscope {

void LargestLogits::merge(const LargestLogits& later) {
    for (std::size_t begin = 0; begin < values.size(); begin += static_cast<std::size_t>(length)) {
        const std::size_t end = begin + static_cast<std::size_t>(length);
        for (std::size_t from = begin;
             from < end && later.ids[from] >= 0 && later.values[from] > values[end - 1]; ++from) {
            std::size_t at = end - 1;
            for (; at > begin && values[at - 1] < later.values[from]; --at) {
                values[at] = values[at - 1];
                ids[at] = ids[at - 1];
            }
            values[at] = later.values[from];
            ids[at] = later.ids[from];
        }
    }
}

void LargestLogits::complete() {
    for (std::size_t begin = 0; begin < values.size(); begin += static_cast<std::size_t>(length)) {
        const auto first = ids.begin() + static_cast<std::ptrdiff_t>(begin);
        const auto last = first + length;
        std::int32_t next = 0;
        for (auto id = std::find(first, last, -1); id != last; ++id) {
            while (std::find(first, id, next) != id) {
                ++next;
            }
            *id = next++;
        }
    }
}

} // namespace ponderscope
