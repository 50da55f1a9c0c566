// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernels/cuda/attend_ranges.h"

#include <cstdint>

namespace ponderscope::kernels {

/// Rotary embedding of heads on a GPU, as rotate() of core/model/rope.h. Device pointers; strides count
/// elements; a head's elements are contiguous.
struct RotateHeads {
    const void* x = nullptr;    ///< [n, heads, size]
    void* out = nullptr;        ///< the same, contiguous
    const float* cos = nullptr; ///< [angles, half]
    const float* sin = nullptr;
    const std::int64_t* rows = nullptr; ///< [n]: the row of cos and sin for each x
    std::int64_t n = 0, heads = 0, size = 0;
    std::int64_t half = 0; ///< pairs that rotate; 2 · half <= size
    std::int64_t row_stride = 0, head_stride = 0;
    bool neighbours = false; ///< pairs (2i, 2i + 1); false: pairs (i, i + half)
    Element element = Element::f32;
};

/// Queues the kernel on a cudaStream_t. Returns null or an error message.
const char* rotate_heads_cuda(const RotateHeads& arguments, void* stream);

} // namespace ponderscope::kernels
