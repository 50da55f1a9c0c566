// SPDX-License-Identifier: GPL-3.0-or-later
// Device functions for all kernels: conversions between fp32 and the other dtypes, and the lanes of a warp.
#pragma once

#include "core/kernels/cuda/attend_ranges.h"
#include "core/kernels/cuda/range_trim.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

namespace ponderscope::kernels {

/// Calls \p launch with a value of the type that \p element names.
template <typename Launch>
void with_element(Element element, const Launch& launch) {
    switch (element) {
    case Element::f32:
        launch(float{});
        break;
    case Element::f16:
        launch(__half{});
        break;
    case Element::bf16:
        launch(__nv_bfloat16{});
        break;
    }
}

constexpr unsigned all_lanes = 0xffffffffU;

__device__ inline float widen(float x) {
    return x;
}
__device__ inline float widen(__half x) {
    return __half2float(x);
}
__device__ inline float widen(__nv_bfloat16 x) {
    return __bfloat162float(x);
}
__device__ inline void narrow(float x, float* to) {
    *to = x;
}
__device__ inline void narrow(float x, __half* to) {
    *to = __float2half_rn(x);
}
__device__ inline void narrow(float x, __nv_bfloat16* to) {
    *to = __float2bfloat16_rn(x);
}

/// Eight elements as they lie in memory: one load of 16 bytes for half precision, two for fp32.
template <typename T>
union RawChunk {
    uint4 words[chunk * sizeof(T) / 16];
    T elements[chunk];
};

/// Loads elements [begin, begin + 8) of a row of `size` elements. Past the end of the row, or if not
/// `wanted`, loads zeros without reading memory. Rows are whole chunks on boundaries of 16 bytes. A kernel
/// loads all chunks of a round before it widens the first. If the kernel branched on `wanted` around the
/// calls, the loads would not overlap.
template <typename T>
__device__ __forceinline__ void load_raw(const T* row, int begin, int size, bool wanted, RawChunk<T>& to) {
    const bool inside = wanted && begin < size;
#pragma unroll
    for (auto& words : to.words) {
        words = uint4{0, 0, 0, 0};
    }
    if (inside) {
#pragma unroll
        for (int i = 0; i < static_cast<int>(chunk * sizeof(T) / 16); ++i) {
            to.words[i] = reinterpret_cast<const uint4*>(row + begin)[i];
        }
    }
}

template <typename T>
__device__ __forceinline__ void widen_chunk(const RawChunk<T>& from, float (&to)[chunk]) {
    if constexpr (std::is_same_v<T, __nv_bfloat16>) { // the upper half of an fp32
        const unsigned words[] = {from.words[0].x, from.words[0].y, from.words[0].z, from.words[0].w};
#pragma unroll
        for (int i = 0; i < chunk; ++i) {
            const unsigned bits = i % 2 == 0 ? words[i / 2] << 16 : words[i / 2] & 0xffff0000U;
            to[i] = __uint_as_float(bits);
        }
    } else {
#pragma unroll
        for (int i = 0; i < chunk; ++i) {
            to[i] = widen(from.elements[i]);
        }
    }
}

template <typename T>
__device__ __forceinline__ void load_chunk(const T* row, int begin, int size, float (&to)[chunk]) {
    RawChunk<T> raw;
    load_raw(row, begin, size, true, raw);
    widen_chunk(raw, to);
}

/// Narrows eight numbers and stores those that lie inside of the row.
template <typename T>
__device__ __forceinline__ void store_chunk(const float (&from)[chunk], int begin, int size, T* row) {
    RawChunk<T> raw;
#pragma unroll
    for (int i = 0; i < chunk; ++i) {
        narrow(from[i], &raw.elements[i]);
    }
    if (begin < size) {
#pragma unroll
        for (int i = 0; i < static_cast<int>(chunk * sizeof(T) / 16); ++i) {
            reinterpret_cast<uint4*>(row + begin)[i] = raw.words[i];
        }
    }
}

/// Applies the sliding window to a query's ranges.
__device__ inline RangeTrim trim_of(const AttendRanges& a, const std::int32_t* ranges) {
    std::int64_t visible = 0;
    for (std::int64_t m = 0; m < a.ranges_per_query; ++m) {
        const std::int64_t length = std::int64_t{ranges[2 * m + 1]} - ranges[2 * m];
        visible += length > 0 ? length : 0;
    }
    return RangeTrim::of(visible, a.window);
}

} // namespace ponderscope::kernels
