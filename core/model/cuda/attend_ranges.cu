// SPDX-License-Identifier: GPL-3.0-or-later
// One warp computes one query head of one query. Its 32 lanes are four teams of eight; a team takes every
// fourth row of what the query sees, the eight lanes share the row's elements in chunks of eight (16 bytes of
// bf16: a team reads 128 bytes side by side). Each team has an online softmax of its own; the four are merged
// at the end. Eight neighbouring queries of one head make a block, so that rows that they share are read from
// the L1 cache.
#include "core/model/cuda/attend_ranges.h"

#include "core/model/cuda/device_elements.cuh"
#include "core/model/cuda/launch.cuh"
#include "core/model/kernels/online_sums.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

namespace ponderscope::kernels {
namespace {

constexpr int team_lanes = 8;
constexpr int teams = 32 / team_lanes;
constexpr int chunk = 8;           // elements that a lane reads at once
constexpr int rows_at_once = 4;    // of a team, so that their loads overlap
constexpr int warps_per_block = 8; // queries of a block

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

template <typename T, int Chunks>
__global__ void __launch_bounds__(32 * warps_per_block) attend_kernel(AttendRanges a, bool aligned) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int team = lane / team_lanes;
    const int member = lane % team_lanes;
    const std::int64_t query =
        static_cast<std::int64_t>(blockIdx.x) * warps_per_block + static_cast<int>(threadIdx.x) / 32;
    const std::int64_t head = blockIdx.y;
    if (query >= a.queries) {
        return; // the whole warp
    }
    const std::int64_t kv_head = head / (a.query_heads / a.kv_heads);
    const int size = static_cast<int>(a.head_size);
    const T* q = static_cast<const T*>(a.q) + query * a.q_stride + head * a.q_head_stride;
    const T* keys = static_cast<const T*>(a.k) + kv_head * a.k_head_stride;
    const T* values = static_cast<const T*>(a.v) + kv_head * a.v_head_stride;
    const std::int32_t* ranges = a.ranges + query * a.ranges_per_query * 2;

    float own[Chunks][chunk];
    float mixed[Chunks][chunk];
#pragma unroll
    for (int c = 0; c < Chunks; ++c) {
        load_chunk(q, (c * team_lanes + member) * chunk, size, aligned, own[c]);
#pragma unroll
        for (int i = 0; i < chunk; ++i) {
            own[c][i] *= a.scale;
            mixed[c][i] = 0;
        }
    }

    std::int64_t visible = 0;
    for (std::int64_t m = 0; m < a.ranges_per_query; ++m) {
        const std::int64_t length = std::int64_t{ranges[2 * m + 1]} - ranges[2 * m];
        visible += length > 0 ? length : 0;
    }
    RangeTrim trim = RangeTrim::of(visible, a.window);
    float maximum = -3.4028234e38F;
    float sum = 0;
    for (std::int64_t m = 0; m < a.ranges_per_query; ++m) {
        // Unsigned, since rows past the end may lie past 2³¹.
        const auto end = static_cast<std::uint32_t>(ranges[2 * m + 1]);
        const auto begin = static_cast<std::uint32_t>(trim.first(ranges[2 * m], ranges[2 * m + 1]));
        // Every lane makes every round, since all take part in the shuffles.
        for (std::uint32_t base = begin; base < end; base += teams * rows_at_once) {
            float score[rows_at_once];
            float highest = maximum;
#pragma unroll
            for (int r = 0; r < rows_at_once; ++r) {
                const std::uint32_t row = base + static_cast<std::uint32_t>(r * teams + team);
                float dot = 0;
                if (row < end) {
#pragma unroll
                    for (int c = 0; c < Chunks; ++c) {
                        float key[chunk];
                        load_chunk(keys + row * a.k_stride, (c * team_lanes + member) * chunk, size, aligned,
                                   key);
#pragma unroll
                        for (int i = 0; i < chunk; ++i) {
                            dot += own[c][i] * key[i];
                        }
                    }
                }
#pragma unroll
                for (int step = 1; step < team_lanes; step *= 2) {
                    dot += __shfl_xor_sync(all_lanes, dot, step);
                }
                if (row < end) {
                    score[r] = a.row_bias != nullptr ? dot + a.row_bias[row] : dot;
                } else {
                    score[r] = -INFINITY;
                }
                highest = score[r] > highest ? score[r] : highest;
            }
            const float factor = __expf(maximum - highest);
            maximum = highest;
            sum *= factor;
#pragma unroll
            for (int c = 0; c < Chunks; ++c) {
#pragma unroll
                for (int i = 0; i < chunk; ++i) {
                    mixed[c][i] *= factor;
                }
            }
#pragma unroll
            for (int r = 0; r < rows_at_once; ++r) {
                const std::uint32_t row = base + static_cast<std::uint32_t>(r * teams + team);
                if (row < end) {
                    const float p = __expf(score[r] - maximum);
                    sum += p;
#pragma unroll
                    for (int c = 0; c < Chunks; ++c) {
                        float value[chunk];
                        load_chunk(values + row * a.v_stride, (c * team_lanes + member) * chunk, size,
                                   aligned, value);
#pragma unroll
                        for (int i = 0; i < chunk; ++i) {
                            mixed[c][i] += p * value[i];
                        }
                    }
                }
            }
        }
    }

    // The teams' sums, each relative to its own maximum, become one.
    float highest = maximum;
#pragma unroll
    for (int step = team_lanes; step < 32; step *= 2) {
        highest = fmaxf(highest, __shfl_xor_sync(all_lanes, highest, step));
    }
    const float factor = __expf(maximum - highest);
    sum *= factor;
#pragma unroll
    for (int step = team_lanes; step < 32; step *= 2) {
        sum += __shfl_xor_sync(all_lanes, sum, step);
    }
    T* out = static_cast<T*>(a.out) + (query * a.query_heads + head) * a.head_size;
#pragma unroll
    for (int c = 0; c < Chunks; ++c) {
#pragma unroll
        for (int i = 0; i < chunk; ++i) {
            float value = mixed[c][i] * factor;
#pragma unroll
            for (int step = team_lanes; step < 32; step *= 2) {
                value += __shfl_xor_sync(all_lanes, value, step);
            }
            const int element = (c * team_lanes + member) * chunk + i;
            if (team == 0 && element < size) {
                narrow(value / sum, out + element);
            }
        }
    }
}

template <typename T>
void launch(const AttendRanges& a, cudaStream_t stream) {
    const dim3 grid(static_cast<unsigned>((a.queries + warps_per_block - 1) / warps_per_block),
                    static_cast<unsigned>(a.query_heads));
    const dim3 block(32 * warps_per_block);
    const auto on_boundary = [](const void* pointer, std::int64_t stride, std::int64_t head_stride) {
        return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0 && stride % chunk == 0 &&
               head_stride % chunk == 0;
    };
    const bool aligned = on_boundary(a.q, a.q_stride, a.q_head_stride) &&
                         on_boundary(a.k, a.k_stride, a.k_head_stride) &&
                         on_boundary(a.v, a.v_stride, a.v_head_stride);
    switch ((a.head_size + team_lanes * chunk - 1) / (team_lanes * chunk)) {
    case 1:
        launch_kernel(attend_kernel<T, 1>, grid, block, 0, stream, a, aligned);
        break;
    case 2:
        launch_kernel(attend_kernel<T, 2>, grid, block, 0, stream, a, aligned);
        break;
    case 3:
        launch_kernel(attend_kernel<T, 3>, grid, block, 0, stream, a, aligned);
        break;
    default:
        launch_kernel(attend_kernel<T, 4>, grid, block, 0, stream, a, aligned);
        break;
    }
}

} // namespace

const char* attend_ranges_cuda(const AttendRanges& arguments, void* stream) {
    if (arguments.queries == 0) {
        return nullptr;
    }
    if (!fits_cuda_head(arguments.head_size)) {
        return "the head size is outside of 1 .. 256";
    }
    const auto cuda_stream = static_cast<cudaStream_t>(stream);
    switch (arguments.element) {
    case Element::f32:
        launch<float>(arguments, cuda_stream);
        break;
    case Element::f16:
        launch<__half>(arguments, cuda_stream);
        break;
    case Element::bf16:
        launch<__nv_bfloat16>(arguments, cuda_stream);
        break;
    }
    return launch_error();
}

} // namespace ponderscope::kernels
