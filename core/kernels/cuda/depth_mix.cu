// SPDX-License-Identifier: GPL-3.0-or-later
// A team of lanes mixes one KV head of one row: each lane has eight elements of the head, 16 bytes of half
// precision, so that all reads lie side by side and are as wide as they can be; a warp holds as many teams as
// its lanes make. Every key and value is read once: the softmax is carried along (online), four sources at a
// time so that their loads overlap. The work is bound by memory: (2·sources + 2 + group + 1) · rows ·
// kv_heads · head_size elements.
#include "core/kernels/cuda/depth_mix.h"

#include "core/kernels/cuda/device_elements.cuh"
#include "core/kernels/cuda/launch.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

namespace ponderscope::kernels {
namespace {

constexpr int warps_per_block = 8;
constexpr int at_once = 4; // sources whose loads overlap

/// Heads of at most 8·Lanes elements.
template <typename T, int Lanes>
__global__ void __launch_bounds__(32 * warps_per_block) mix_kernel(const __grid_constant__ DepthMix a) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int member = lane % Lanes;
    const std::int64_t warp =
        static_cast<std::int64_t>(blockIdx.x) * warps_per_block + static_cast<int>(threadIdx.x) / 32;
    // A row's head: its place among rows·kv_heads.
    const std::int64_t first = warp * (32 / Lanes);
    const std::int64_t place = first + lane / Lanes;
    if (first >= a.rows * a.kv_heads) {
        return; // the whole warp
    }
    // Teams of the last warp that have no head take part in the shuffles and touch no memory.
    const bool present = place < a.rows * a.kv_heads;
    const int size = present ? static_cast<int>(a.head_size) : 0;
    const int begin = member * chunk;
    const int group = static_cast<int>(a.query_heads / a.kv_heads);
    const T* queries = static_cast<const T*>(a.q) + place * group * size;
    const float scale = size == 0 ? 0.0F : rsqrtf(static_cast<float>(size)) / static_cast<float>(group);

    float mean[chunk] = {};
    float sum[chunk] = {};
    for (int j = 0; j < group; ++j) {
        float query[chunk];
        load_chunk(queries + j * size, begin, size, query);
#pragma unroll
        for (int i = 0; i < chunk; ++i) {
            mean[i] += query[i];
        }
    }
#pragma unroll
    for (int i = 0; i < chunk; ++i) {
        mean[i] *= scale;
    }

    const int count = static_cast<int>(a.sources) + 1; // the own value comes last
    float* weights = present && a.weights != nullptr ? a.weights + place * count : nullptr;
    float largest = -3.4028234e38F;
    float total = 0;
    for (int base = 0; base < count; base += at_once) {
        RawChunk<T> keys[at_once];
        RawChunk<T> values[at_once];
#pragma unroll
        for (int s = 0; s < at_once; ++s) {
            const int j = base + s;
            const bool source = j < count - 1;
            const void* of_key = source ? a.source_keys[j] : a.k;
            const void* of_value = source ? a.source_values[j] : a.v;
            load_raw(static_cast<const T*>(of_key) + place * size, begin, size, j < count, keys[s]);
            load_raw(static_cast<const T*>(of_value) + place * size, begin, size, j < count,
                              values[s]);
        }
        float score[at_once] = {};
#pragma unroll
        for (int s = 0; s < at_once; ++s) {
            float key[chunk];
            widen_chunk(keys[s], key);
#pragma unroll
            for (int i = 0; i < chunk; ++i) {
                score[s] += mean[i] * key[i];
            }
        }
        float highest = largest;
#pragma unroll
        for (int s = 0; s < at_once; ++s) {
            if (base + s < count) {
#pragma unroll
                for (int step = 1; step < Lanes; step *= 2) {
                    score[s] += __shfl_xor_sync(all_lanes, score[s], step);
                }
                highest = fmaxf(highest, score[s]);
            }
        }
        const float shrink = __expf(largest - highest);
        total *= shrink;
#pragma unroll
        for (int i = 0; i < chunk; ++i) {
            sum[i] *= shrink;
        }
#pragma unroll
        for (int s = 0; s < at_once; ++s) {
            if (base + s < count) {
                const float share = expf(score[s] - highest);
                total += share;
                float value[chunk];
                widen_chunk(values[s], value);
#pragma unroll
                for (int i = 0; i < chunk; ++i) {
                    sum[i] += share * value[i];
                }
                if (weights != nullptr && member == 0) {
                    weights[base + s] = score[s]; // turned into a weight below
                }
            }
        }
        largest = highest;
    }

    const float scale_back = 1.0F / total;
#pragma unroll
    for (int i = 0; i < chunk; ++i) {
        sum[i] *= scale_back;
    }
    store_chunk(sum, begin, size, static_cast<T*>(a.out) + place * size);
    __syncwarp();
    if (weights != nullptr) {
        for (int j = member; j < count; j += Lanes) {
            weights[j] = expf(weights[j] - largest) * scale_back;
        }
    }
}

template <typename T, int Lanes>
void launch_teams(const DepthMix& a, cudaStream_t stream) {
    constexpr std::int64_t places = warps_per_block * (32 / Lanes);
    const auto blocks = static_cast<unsigned>((a.rows * a.kv_heads + places - 1) / places);
    launch_kernel(mix_kernel<T, Lanes>, blocks, 32 * warps_per_block, 0, stream, a);
}

template <typename T>
void launch(const DepthMix& a, cudaStream_t stream) {
    if (a.head_size <= 1 * chunk) {
        launch_teams<T, 1>(a, stream);
    } else if (a.head_size <= 2 * chunk) {
        launch_teams<T, 2>(a, stream);
    } else if (a.head_size <= 4 * chunk) {
        launch_teams<T, 4>(a, stream);
    } else if (a.head_size <= 8 * chunk) {
        launch_teams<T, 8>(a, stream);
    } else if (a.head_size <= 16 * chunk) {
        launch_teams<T, 16>(a, stream);
    } else {
        launch_teams<T, 32>(a, stream);
    }
}

} // namespace

const char* depth_mix_cuda(const DepthMix& arguments, void* stream) {
    if (arguments.rows == 0) {
        return nullptr;
    }
    if (!fits_cuda_head(arguments.head_size) || arguments.sources > most_depth_sources ||
        arguments.rows * arguments.kv_heads > std::int64_t{warps_per_block} * 0x7fffffff) {
        return "more elements, sources or rows than the kernel takes";
    }
    with_element(arguments.element, [&](auto element) {
        launch<decltype(element)>(arguments, static_cast<cudaStream_t>(stream));
    });
    return launch_error();
}

} // namespace ponderscope::kernels
