// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define PONDERSCOPE_HOST_DEVICE __host__ __device__
#else
#define PONDERSCOPE_HOST_DEVICE
#endif

namespace ponderscope::kernels {

/// Applies a sliding window to the ranges of one query. Call first() for the ranges in order. `hidden`:
/// number of rows before the window that are still to be skipped.
struct RangeTrim {
    std::int64_t hidden = 0;

    PONDERSCOPE_HOST_DEVICE static RangeTrim of(std::int64_t visible, std::int64_t window) {
        RangeTrim trim;
        trim.hidden = window > 0 && visible > window ? visible - window : 0;
        return trim;
    }
    /// The new beginning of the range [begin, end).
    PONDERSCOPE_HOST_DEVICE std::int32_t first(std::int32_t begin, std::int32_t end) {
        if (end <= begin) {
            return begin;
        }
        const std::int64_t length = end - begin;
        const std::int64_t here = hidden < length ? hidden : length;
        hidden -= here;
        return begin + static_cast<std::int32_t>(here);
    }
};

} // namespace ponderscope::kernels
