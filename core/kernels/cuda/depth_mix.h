// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernels/cuda/attend_ranges.h"

#include <cstdint>

namespace ponderscope::kernels {

/// The kernel's arguments (at most 4 KB) contain the addresses of the sources, so that nothing is copied to
/// the device.
constexpr std::int64_t most_depth_sources = 128;

/// Mixes the values of a layer with the values of earlier layers on a GPU (formulas:
/// core/kernels/depth_mix.h). All pointers are device pointers to contiguous arrays, aligned to 16 bytes: q
/// [rows, query_heads, head_size], the others [rows, kv_heads, head_size]. `out` may be `v`.
struct DepthMix {
    const void* q = nullptr;
    const void* k = nullptr;
    const void* v = nullptr;
    void* out = nullptr;
    float* weights = nullptr; ///< [rows, kv_heads, sources + 1], the layer's own value last; null: not
                              ///< requested
    const void* source_keys[most_depth_sources] = {};
    const void* source_values[most_depth_sources] = {};
    std::int64_t sources = 0;
    std::int64_t rows = 0;
    std::int64_t query_heads = 0;
    std::int64_t kv_heads = 0;
    std::int64_t head_size = 0;
    Element element = Element::f32;
};

/// Queues the kernel on a cudaStream_t. Returns null, or the error of the CUDA runtime.
const char* depth_mix_cuda(const DepthMix& arguments, void* stream);

} // namespace ponderscope::kernels
