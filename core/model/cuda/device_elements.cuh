// SPDX-License-Identifier: GPL-3.0-or-later
// What the kernels' sources share on the device: elements of every dtype in and out of fp32, lanes of a warp.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

namespace ponderscope::kernels {

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

} // namespace ponderscope::kernels
