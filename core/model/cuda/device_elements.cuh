// SPDX-License-Identifier: GPL-3.0-or-later
// What the kernels' sources share on the device: elements of every dtype in and out of fp32, lanes of a warp.
#pragma once

#include "core/model/cuda/attend_ranges.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

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

constexpr int chunk = 8; // elements that a lane reads at once: 16 bytes of half precision

/// Elements [begin, begin + 8) of a row of `size` elements; zeros past its end.
template <typename T>
__device__ void load_chunk(const T* row, int begin, int size, bool aligned, float (&to)[chunk]) {
    if (aligned && begin + chunk <= size) {
        // 16 bytes a load: one for half precision, two for fp32.
        constexpr int loads = chunk * static_cast<int>(sizeof(T)) / 16;
        union {
            uint4 words[loads];
            T elements[chunk];
        } part;
#pragma unroll
        for (int i = 0; i < loads; ++i) {
            part.words[i] = reinterpret_cast<const uint4*>(row + begin)[i];
        }
#pragma unroll
        for (int i = 0; i < chunk; ++i) {
            to[i] = widen(part.elements[i]);
        }
        return;
    }
#pragma unroll
    for (int i = 0; i < chunk; ++i) {
        to[i] = begin + i < size ? widen(row[begin + i]) : 0.0F;
    }
}

/// The same to a row.
template <typename T>
__device__ void store_chunk(const float (&from)[chunk], int begin, int size, bool aligned, T* row) {
    if (aligned && begin + chunk <= size) {
        constexpr int stores = chunk * static_cast<int>(sizeof(T)) / 16;
        union {
            uint4 words[stores];
            T elements[chunk];
        } part;
#pragma unroll
        for (int i = 0; i < chunk; ++i) {
            narrow(from[i], &part.elements[i]);
        }
#pragma unroll
        for (int i = 0; i < stores; ++i) {
            reinterpret_cast<uint4*>(row + begin)[i] = part.words[i];
        }
        return;
    }
#pragma unroll
    for (int i = 0; i < chunk; ++i) {
        if (begin + i < size) {
            narrow(from[i], row + begin + i);
        }
    }
}

/// Whether every chunk of a row lies on a boundary of 16 bytes, rows being a multiple of chunks apart.
inline bool on_boundary(const void* pointer) {
    return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0;
}

} // namespace ponderscope::kernels
