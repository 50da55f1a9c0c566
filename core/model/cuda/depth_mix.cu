// SPDX-License-Identifier: GPL-3.0-or-later
// One warp mixes one KV head of one row: its lanes share the head's elements, neighbouring warps take
// neighbouring heads, so that all reads lie side by side. Every key and value is read once: the softmax is
// carried along (online), four sources at a time so that their loads overlap. The work is bound by memory:
// (2·sources + 2 + group + 1) · rows · kv_heads · head_size elements.
#include "core/model/cuda/depth_mix.h"

#include "core/model/cuda/device_elements.cuh"
#include "core/model/cuda/launch.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

namespace ponderscope::kernels {
namespace {

constexpr int warps_per_block = 8;
constexpr int at_once = 4; // sources whose loads overlap

__device__ float sum_of_warp(float x) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
        x += __shfl_xor_sync(all_lanes, x, offset);
    }
    return x;
}

/// A lane holds elements lane, lane + 32, ... of a head of at most 32·Parts elements.
template <typename T, int Parts>
__global__ void __launch_bounds__(32 * warps_per_block) mix_kernel(const __grid_constant__ DepthMix a) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    // A row's head: its place among rows·kv_heads.
    const std::int64_t place =
        static_cast<std::int64_t>(blockIdx.x) * warps_per_block + static_cast<int>(threadIdx.x) / 32;
    if (place >= a.rows * a.kv_heads) {
        return; // the whole warp
    }
    const int size = static_cast<int>(a.head_size);
    const int group = static_cast<int>(a.query_heads / a.kv_heads);
    const T* queries = static_cast<const T*>(a.q) + place * group * size;
    const float scale = rsqrtf(static_cast<float>(size)) / static_cast<float>(group);

    float mean[Parts];
    float sum[Parts];
#pragma unroll
    for (int p = 0; p < Parts; ++p) {
        const int e = p * 32 + lane;
        mean[p] = 0;
        sum[p] = 0;
        for (int j = 0; j < group && e < size; ++j) {
            mean[p] += widen(queries[j * size + e]);
        }
        mean[p] *= scale;
    }

    const int count = static_cast<int>(a.sources) + 1; // the own value comes last
    float* weights = a.weights != nullptr ? a.weights + place * count : nullptr;
    float largest = -3.4028234e38F;
    float total = 0;
    for (int base = 0; base < count; base += at_once) {
        float score[at_once];
        float value[at_once][Parts];
#pragma unroll
        for (int s = 0; s < at_once; ++s) {
            const int j = base + s;
            score[s] = 0;
            if (j < count) {
                const void* of_key = j < count - 1 ? a.source_keys[j] : a.k;
                const void* of_value = j < count - 1 ? a.source_values[j] : a.v;
                const T* key = static_cast<const T*>(of_key) + place * size;
                const T* row = static_cast<const T*>(of_value) + place * size;
#pragma unroll
                for (int p = 0; p < Parts; ++p) {
                    const int e = p * 32 + lane;
                    const bool inside = e < size;
                    score[s] += inside ? mean[p] * widen(key[e]) : 0.0F;
                    value[s][p] = inside ? widen(row[e]) : 0.0F;
                }
            }
        }
        float highest = largest;
#pragma unroll
        for (int s = 0; s < at_once; ++s) {
            if (base + s < count) { // the same for all lanes
                score[s] = sum_of_warp(score[s]);
                highest = fmaxf(highest, score[s]);
            }
        }
        const float shrink = __expf(largest - highest);
        total *= shrink;
#pragma unroll
        for (int p = 0; p < Parts; ++p) {
            sum[p] *= shrink;
        }
#pragma unroll
        for (int s = 0; s < at_once; ++s) {
            if (base + s < count) {
                const float share = expf(score[s] - highest);
                total += share;
#pragma unroll
                for (int p = 0; p < Parts; ++p) {
                    sum[p] += share * value[s][p];
                }
                if (weights != nullptr && lane == 0) {
                    weights[base + s] = score[s]; // turned into a weight below
                }
            }
        }
        largest = highest;
    }

    const float scale_back = 1.0F / total;
    T* out = static_cast<T*>(a.out) + place * size;
#pragma unroll
    for (int p = 0; p < Parts; ++p) {
        const int e = p * 32 + lane;
        if (e < size) {
            narrow(sum[p] * scale_back, out + e);
        }
    }
    if (weights != nullptr) {
        __syncwarp();
        for (int j = lane; j < count; j += 32) {
            weights[j] = expf(weights[j] - largest) * scale_back;
        }
    }
}

template <typename T>
void launch(const DepthMix& a, cudaStream_t stream) {
    const auto blocks = static_cast<unsigned>((a.rows * a.kv_heads + warps_per_block - 1) / warps_per_block);
    constexpr unsigned threads = 32 * warps_per_block;
    if (a.head_size <= 32) {
        launch_kernel(mix_kernel<T, 1>, blocks, threads, 0, stream, a);
    } else if (a.head_size <= 64) {
        launch_kernel(mix_kernel<T, 2>, blocks, threads, 0, stream, a);
    } else if (a.head_size <= 128) {
        launch_kernel(mix_kernel<T, 4>, blocks, threads, 0, stream, a);
    } else {
        launch_kernel(mix_kernel<T, 8>, blocks, threads, 0, stream, a);
    }
}

} // namespace

const char* depth_mix_cuda(const DepthMix& arguments, void* stream) {
    if (arguments.rows == 0) {
        return nullptr;
    }
    if (arguments.head_size > largest_mixed_head || arguments.sources > most_depth_sources ||
        arguments.rows * arguments.kv_heads > std::int64_t{warps_per_block} * 0x7fffffff) {
        return "more elements, sources or rows than the kernel takes";
    }
    auto* const queue = static_cast<cudaStream_t>(stream);
    switch (arguments.element) {
    case Element::f32:
        launch<float>(arguments, queue);
        break;
    case Element::f16:
        launch<__half>(arguments, queue);
        break;
    case Element::bf16:
        launch<__nv_bfloat16>(arguments, queue);
        break;
    }
    return launch_error();
}

} // namespace ponderscope::kernels
