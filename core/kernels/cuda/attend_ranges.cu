// SPDX-License-Identifier: GPL-3.0-or-later
// One warp computes one query head of one query. Its 32 lanes form four teams of eight. A team reads every
// fourth visible row. The lanes of a team share the row's elements in chunks of eight (16 bytes of bf16, so a
// team reads 128 adjacent bytes). Each team has its own online softmax. The warp merges the four teams after
// every segment of rows, and the segments in order. A block has eight neighbouring queries of one head, so
// that the L1 cache serves the rows that they share. With few queries, as in decoding, several warps take
// turns at a query's segments. A second kernel then merges the segments' sums in the same order.
#include "core/kernels/cuda/attend_ranges.h"

#include "core/kernels/cuda/device_elements.cuh"
#include "core/kernels/cuda/launch.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

namespace ponderscope::kernels {
namespace {

constexpr int team_lanes = 8;
constexpr int teams = 32 / team_lanes;
constexpr int rows_at_once = 4;    // rows of a team in a round
constexpr int warps_per_block = 8; // queries of a block
static_assert(teams * rows_at_once == round_rows);

/// Factors that bring two sums to a common maximum: the sum so far and the sum of the next segment.
struct Merge {
    float maximum, before, next;

    __device__ Merge(float maximum_before, float maximum_next)
        : maximum(fmaxf(maximum_before, maximum_next)) {
        before = __expf(maximum_before - maximum);
        next = __expf(maximum_next - maximum);
    }
    /// fmaf, so that every compiler rounds in the same way.
    __device__ float operator()(float sum_before, float sum_next) const {
        return fmaf(sum_next, next, sum_before * before);
    }
};

constexpr float lowest = -3.4028234e38F;

/// The part of a query head that a lane holds: its elements of the query, the team's sums and the total.
template <typename T, int Chunks>
struct QueryHead {
    /// The number of rows whose loads overlap: as many as fit into the registers beside the sums.
    static constexpr int overlap = sizeof(T) * Chunks <= 4 ? 4 : sizeof(T) * Chunks <= 8 ? 2 : 1;

    const AttendRanges& a;
    const std::int64_t query;
    const std::int64_t head;
    const T* const keys;
    const T* const values;
    const int size;
    const int lane;
    const int team = lane / team_lanes;
    const int member = lane % team_lanes;

    float own[Chunks][chunk];
    float mixed[Chunks][chunk]; // this team's sums in the current segment
    float total[Chunks][chunk]; // all teams' sums in earlier segments
    float maximum = lowest;
    float sum = 0;
    float total_maximum = lowest;
    float total_sum = 0;

    __device__ __forceinline__ QueryHead(const AttendRanges& of, std::int64_t of_query, std::int64_t of_head)
        : a(of),
          query(of_query),
          head(of_head),
          keys(static_cast<const T*>(of.k) + of_head / (of.query_heads / of.kv_heads) * of.k_head_stride),
          values(static_cast<const T*>(of.v) + of_head / (of.query_heads / of.kv_heads) * of.v_head_stride),
          size(static_cast<int>(of.head_size)),
          lane(static_cast<int>(threadIdx.x) % 32) {
        const T* q = static_cast<const T*>(a.q) + query * a.q_stride + head * a.q_head_stride;
#pragma unroll
        for (int c = 0; c < Chunks; ++c) {
            load_chunk(q, element(c), size, own[c]);
#pragma unroll
            for (int i = 0; i < chunk; ++i) {
                own[c][i] *= a.scale;
                mixed[c][i] = 0;
                total[c][i] = 0;
            }
        }
    }

    /// The first element of chunk \p c.
    __device__ __forceinline__ int element(int c) const {
        return (c * team_lanes + member) * chunk;
    }

    /// Loads keys or values: the chunks of `overlap` rows of the team, from row \p first on.
    __device__ __forceinline__ void load_rows(const T* from, std::int64_t stride, std::uint32_t first,
                                              std::uint32_t end, RawChunk<T> (&to)[overlap][Chunks]) const {
#pragma unroll
        for (int r = 0; r < overlap; ++r) {
            const std::uint32_t row = first + static_cast<std::uint32_t>(r * teams);
#pragma unroll
            for (int c = 0; c < Chunks; ++c) {
                load_raw(from + row * stride, element(c), size, row < end, to[r][c]);
            }
        }
    }

    /// Adds a round of rows. Rows from \p end on are not visible. All lanes must call it.
    __device__ __forceinline__ void add(std::uint32_t base, std::uint32_t end) {
        const std::uint32_t first = base + static_cast<std::uint32_t>(team);
        RawChunk<T> rows[overlap][Chunks];
        float scores[rows_at_once];
        float highest = maximum;
#pragma unroll
        for (int group = 0; group < rows_at_once; group += overlap) {
            load_rows(keys, a.k_stride, first + static_cast<std::uint32_t>(group * teams), end, rows);
#pragma unroll
            for (int r = 0; r < overlap; ++r) {
                const std::uint32_t row = first + static_cast<std::uint32_t>((group + r) * teams);
                float dot = 0;
#pragma unroll
                for (int c = 0; c < Chunks; ++c) {
                    float key[chunk];
                    widen_chunk(rows[r][c], key);
#pragma unroll
                    for (int i = 0; i < chunk; ++i) {
                        dot += own[c][i] * key[i];
                    }
                }
#pragma unroll
                for (int step = 1; step < team_lanes; step *= 2) {
                    dot += __shfl_xor_sync(all_lanes, dot, step);
                }
                if (row >= end) {
                    dot = -INFINITY;
                } else if (a.row_bias != nullptr) {
                    dot += a.row_bias[row];
                }
                scores[group + r] = dot;
                highest = dot > highest ? dot : highest;
            }
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
        for (int group = 0; group < rows_at_once; group += overlap) {
            load_rows(values, a.v_stride, first + static_cast<std::uint32_t>(group * teams), end, rows);
#pragma unroll
            for (int r = 0; r < overlap; ++r) {
                if (first + static_cast<std::uint32_t>((group + r) * teams) < end) {
                    const float p = __expf(scores[group + r] - maximum);
                    sum += p;
#pragma unroll
                    for (int c = 0; c < Chunks; ++c) {
                        float value[chunk];
                        widen_chunk(rows[r][c], value);
#pragma unroll
                        for (int i = 0; i < chunk; ++i) {
                            mixed[c][i] += p * value[i];
                        }
                    }
                }
            }
        }
    }

    /// Merges the teams' sums of a segment. Adds the result to the total and, with splits, stores it in
    /// `parts`. All lanes must call it.
    __device__ __forceinline__ void finish(std::int64_t segment) {
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
        const Merge merge(total_maximum, highest);
        float* part = nullptr;
        if (a.splits > 1) {
            part = a.parts + ((query * a.query_heads + head) * a.segments + segment) * (2 + a.head_size);
            if (lane == 0) {
                part[0] = highest;
                part[1] = sum;
            }
        }
        total_sum = merge(total_sum, sum);
        total_maximum = merge.maximum;
#pragma unroll
        for (int c = 0; c < Chunks; ++c) {
#pragma unroll
            for (int i = 0; i < chunk; ++i) {
                float value = mixed[c][i] * factor;
#pragma unroll
                for (int step = team_lanes; step < 32; step *= 2) {
                    value += __shfl_xor_sync(all_lanes, value, step);
                }
                if (part != nullptr && team == 0 && element(c) + i < size) {
                    part[2 + element(c) + i] = value;
                }
                total[c][i] = merge(total[c][i], value);
                mixed[c][i] = 0;
            }
        }
        maximum = lowest;
        sum = 0;
    }

    __device__ __forceinline__ void write() {
        T* out = static_cast<T*>(a.out) + (query * a.query_heads + head) * a.head_size;
#pragma unroll
        for (int c = 0; c < Chunks; ++c) {
#pragma unroll
            for (int i = 0; i < chunk; ++i) {
                total[c][i] /= total_sum;
            }
            if (team == 0) {
                store_chunk(total[c], element(c), size, out);
            }
        }
    }
};

template <typename T, int Chunks>
__global__ void __launch_bounds__(32 * warps_per_block) attend_kernel(AttendRanges a) {
    const std::int64_t warp =
        static_cast<std::int64_t>(blockIdx.x) * warps_per_block + static_cast<int>(threadIdx.x) / 32;
    const std::int64_t query = warp / a.splits;
    const std::int64_t turn = warp % a.splits;
    if (query >= a.queries) {
        return; // true for all lanes of the warp
    }
    QueryHead<T, Chunks> sums(a, query, blockIdx.y);
    const std::int32_t* ranges = a.ranges + query * a.ranges_per_query * 2;
    RangeTrim trim = trim_of(a, ranges);
    std::int64_t rounds = 0;   // rounds of earlier ranges
    std::int64_t segment = -1; // the current segment
    for (std::int64_t m = 0; m < a.ranges_per_query; ++m) {
        // Unsigned, because rows past the end may exceed 2³¹.
        const auto end = static_cast<std::uint32_t>(ranges[2 * m + 1]);
        const auto begin = static_cast<std::uint32_t>(trim.first(ranges[2 * m], ranges[2 * m + 1]));
        const std::int64_t here = end > begin ? (std::int64_t{end} - begin + round_rows - 1) / round_rows : 0;
        // Every lane runs every round, because shuffles need all lanes.
        for (std::int64_t round = 0; round < here; ++round) {
            const std::int64_t belongs = (rounds + round) / segment_rounds;
            if (belongs % a.splits != turn) {
                round += segment_rounds - 1 - (rounds + round) % segment_rounds; // not this warp's segment
                continue;
            }
            if (belongs != segment && segment >= 0) {
                sums.finish(segment);
            }
            segment = belongs;
            sums.add(begin + static_cast<std::uint32_t>(round * round_rows), end);
        }
        rounds += here;
    }
    if (segment >= 0) {
        sums.finish(segment);
    }
    if (a.splits <= 1) {
        sums.write();
    }
}

/// Merges the segments of a query head in order. Each thread computes one element.
template <typename T>
__global__ void __launch_bounds__(256) merge_kernel(AttendRanges a) {
    const std::int64_t query = blockIdx.x;
    const std::int64_t head = blockIdx.y;
    const auto element = static_cast<std::int64_t>(threadIdx.x);
    if (element >= a.head_size) {
        return;
    }
    const std::int32_t* ranges = a.ranges + query * a.ranges_per_query * 2;
    RangeTrim trim = trim_of(a, ranges);
    std::int64_t rounds = 0;
    for (std::int64_t m = 0; m < a.ranges_per_query; ++m) {
        const std::int64_t length =
            std::int64_t{ranges[2 * m + 1]} - trim.first(ranges[2 * m], ranges[2 * m + 1]);
        rounds += length > 0 ? (length + round_rows - 1) / round_rows : 0;
    }
    const float* part = a.parts + (query * a.query_heads + head) * a.segments * (2 + a.head_size);
    float maximum = lowest;
    float sum = 0;
    float value = 0;
    for (std::int64_t segment = 0; segment * segment_rounds < rounds; ++segment) {
        const Merge merge(maximum, part[0]);
        sum = merge(sum, part[1]);
        value = merge(value, part[2 + element]);
        maximum = merge.maximum;
        part += 2 + a.head_size;
    }
    narrow(value / sum, static_cast<T*>(a.out) + (query * a.query_heads + head) * a.head_size + element);
}

template <typename T>
void launch(const AttendRanges& a, cudaStream_t stream) {
    const dim3 grid(static_cast<unsigned>((a.queries * a.splits + warps_per_block - 1) / warps_per_block),
                    static_cast<unsigned>(a.query_heads));
    const dim3 block(32 * warps_per_block);
    const auto chunks = (a.head_size + team_lanes * chunk - 1) / (team_lanes * chunk);
    launch_kernel(chunks == 1   ? attend_kernel<T, 1>
                  : chunks == 2 ? attend_kernel<T, 2>
                  : chunks == 3 ? attend_kernel<T, 3>
                                : attend_kernel<T, 4>,
                  grid, block, 0, stream, a);
    if (a.splits > 1) {
        launch_kernel(merge_kernel<T>,
                      dim3(static_cast<unsigned>(a.queries), static_cast<unsigned>(a.query_heads)),
                      dim3(static_cast<unsigned>((a.head_size + 31) / 32 * 32)), 0, stream, a);
    }
}

} // namespace

const char* attend_ranges_cuda(const AttendRanges& arguments, void* stream) {
    if (arguments.queries == 0) {
        return nullptr;
    }
    if (!fits_cuda_head(arguments.head_size)) {
        return "the head size is none of 8, 16 .. 256";
    }
    with_element(arguments.element, [&](auto element) {
        launch<decltype(element)>(arguments, static_cast<cudaStream_t>(stream));
    });
    return launch_error();
}

} // namespace ponderscope::kernels
