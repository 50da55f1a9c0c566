// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernels/cuda/attend_ranges.h"

#include <cstdint>

namespace ponderscope::kernels {

/// Heads turned by their rows' angles (core/model/rope.h) on their way to where they are kept, on a GPU. All
/// pointers are device pointers; strides count elements; a head's elements lie side by side.
struct RotateRows {
    const void* x = nullptr;    ///< [n, heads, size]
    void* out = nullptr;        ///< [rows, heads, size], contiguous; not x
    const float* cos = nullptr; ///< [angles, half]
    const float* sin = nullptr;
    const std::int64_t* rows = nullptr;   ///< [n], with half > 0: each row's angles
    const std::int64_t* places = nullptr; ///< [n] or null: which row of `out` each goes to; null: its own
    std::int64_t n = 0, heads = 0, size = 0;
    std::int64_t row_stride = 0, head_stride = 0;
    std::int64_t half = 0;   ///< the first 2·half elements turn; 0: rows are copied
    bool neighbours = false; ///< pairs are elements 2j, 2j + 1; else j, j + half
    Element element = Element::f32;
};

/// Queues the kernel on a cudaStream_t. Returns null, or what the CUDA runtime says is wrong.
const char* rotate_rows_cuda(const RotateRows& arguments, void* stream);

} // namespace ponderscope::kernels
