// SPDX-License-Identifier: GPL-3.0-or-later
// Attention over ranges on the matrix unit, for half precision and many queries that see nearly the same
// rows. A block has 64 lines: a line is one query with one of the query heads that read the same K/V head,
// and queries that are neighbours are neighbours here. K/V rows come to shared memory in tiles that begin at
// the first row that any of the block's queries has still to see, so that rows nobody sees are not read,
// whatever the ranges; who sees which row of a tile is a mask of bits a query. A warp has 16 lines: scores,
// their online softmax and the mixture of values stay in its registers (Dao, arXiv 2307.08691). Weights are
// rounded to the dtype of the values, and which rows make a tile depends on the neighbours: a result is the
// same only up to that rounding.
#include "core/kernels/cuda/attend_ranges.h"

#include "core/kernels/cuda/device_elements.cuh"
#include "core/kernels/cuda/launch.cuh"
#include "core/kernels/cuda/matrix_unit.cuh"

#include <type_traits>

namespace ponderscope::kernels {
namespace {

constexpr int slice = 16; // elements of a head that one product takes
constexpr int warps = 4;
constexpr int threads = 32 * warps;
constexpr int lines = attend_tile_lines;
constexpr int lines_of_warp = lines / warps;
constexpr int rows = 64; // of a tile; two tiles fit into what a block has without asking
constexpr float lowest = -3.4028234e38F;
constexpr float log2_e = 1.44269504F;
constexpr std::uint32_t no_row = 0xffffffffU;
static_assert(lines_of_warp == 16 && lines <= threads);

/// What the ranges of one query say of some rows. Rows are unsigned, since a tile may end past 2³¹.
class Seen {
public:
    __device__ Seen(const AttendRanges& a, std::int64_t query)
        : ranges_(a.ranges + query * a.ranges_per_query * 2),
          count_(a.ranges_per_query),
          trim_(trim_of(a, ranges_)) {}
    /// The first of them from \p from on.
    __device__ std::uint32_t next(std::uint32_t from) const {
        std::uint32_t first = no_row;
        for_each([&](std::uint32_t begin, std::uint32_t end) {
            const std::uint32_t here = begin > from ? begin : from;
            first = here < end && here < first ? here : first;
        });
        return first;
    }
    /// Bit i: row from + i of a tile.
    __device__ std::uint64_t bits(std::uint32_t from) const {
        std::uint64_t all = 0;
        for_each([&](std::uint32_t begin, std::uint32_t end) {
            const std::uint32_t low = begin > from ? begin - from : 0;
            const std::uint32_t beyond = end > from ? end - from : 0;
            const std::uint32_t high = beyond < rows ? beyond : rows;
            if (low < high) {
                all |= (~std::uint64_t{0} >> (64 - (high - low))) << low;
            }
        });
        return all;
    }

private:
    template <typename Visit>
    __device__ void for_each(const Visit& visit) const {
        RangeTrim trim = trim_;
        for (std::int64_t m = 0; m < count_; ++m) {
            const std::int32_t end = ranges_[2 * m + 1];
            const std::int32_t begin = trim.first(ranges_[2 * m], end);
            if (begin < end) {
                visit(static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end));
            }
        }
    }

    const std::int32_t* ranges_;
    std::int64_t count_;
    RangeTrim trim_;
};

__device__ __forceinline__ float power_of_two(float x) {
#if defined(__CUDACC__)
    asm("ex2.approx.ftz.f32 %0, %0;" : "+f"(x));
    return x;
#else
    return std::exp2(x);
#endif
}

/// The least and the union over a warp.
__device__ __forceinline__ std::uint32_t least_of(std::uint32_t own) {
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const std::uint32_t other = __shfl_xor_sync(all_lanes, own, step);
        own = other < own ? other : own;
    }
    return own;
}
__device__ __forceinline__ std::uint64_t union_of(std::uint64_t own) {
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        own |= __shfl_xor_sync(all_lanes, own, step);
    }
    return own;
}

/// Whether one of eight elements is infinite or NaN: all bits of its exponent are set.
template <typename T>
__device__ __forceinline__ bool is_strange(const RawChunk<T>& values) {
    constexpr unsigned low = std::is_same_v<T, __half> ? 0x7c00U : 0x7f80U;
    constexpr unsigned high = low << 16;
    const uint4 words = values.words[0];
    bool strange = false;
#pragma unroll
    for (const unsigned word : {words.x, words.y, words.z, words.w}) {
        strange = strange || (word & low) == low || (word & high) == high;
    }
    return strange;
}

template <typename T, int Slices>
struct Tile {
    static constexpr int width = Slices * slice + chunk; // so that eight rows lie in all banks
    union {
        alignas(16) T keys[rows * width];
        float weights[lines * rows]; // where values cannot be multiplied by the unit
    };
    alignas(16) T values[rows * width];
    float bias[rows];
    std::uint64_t masks[lines];
    std::uint64_t unions[warps];
    std::uint32_t firsts[warps];
};

/// The lines of a warp in its registers: number 0 and 1 of a lane belong to line group, 2 and 3 to group + 8.
template <typename T, int Slices>
struct Lines {
    static constexpr int width = Tile<T, Slices>::width;

    std::uint32_t query[Slices][4];
    float scores[rows / 8][4];
    float mixed[Slices * 2][4];
    float maximum[2] = {lowest, lowest};
    float sum[2] = {0, 0};

    __device__ __forceinline__ Lines() {
#pragma unroll
        for (auto& numbers : mixed) {
#pragma unroll
            for (float& number : numbers) {
                number = 0;
            }
        }
    }

    __device__ __forceinline__ void score(const Tile<T, Slices>& tile, int lane) {
        const int matrix = lane / 8;
#pragma unroll
        for (int j = 0; j < rows / 8; j += 2) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                scores[j][i] = 0;
                scores[j + 1][i] = 0;
            }
#pragma unroll
            for (int s = 0; s < Slices; ++s) {
                // Rows 8 j and 8 (j + 1), each with both halves of the slice.
                std::uint32_t b[4];
                load_matrices<false>(
                    tile.keys + ((j + matrix / 2) * 8 + lane % 8) * width + s * slice + matrix % 2 * 8, b);
                multiply_add<T>(scores[j], query[s], b[0], b[1]);
                multiply_add<T>(scores[j + 1], query[s], b[2], b[3]);
            }
        }
    }

    /// Scores become weights relative to the new maxima, and the sums so far follow. Exponents are of 2:
    /// \p scale is log2(e) times the factor on scores. Plain: every line sees every row, without a bias.
    template <bool Plain>
    __device__ __forceinline__ void weigh(const Tile<T, Slices>& tile, float scale,
                                          const std::uint64_t (&seen)[2], int lane) {
        float highest[2] = {Plain ? -INFINITY : maximum[0], Plain ? -INFINITY : maximum[1]};
        // Bits of constant places from here on.
        const std::uint64_t bits[2] = {seen[0] >> lane % 4 * 2, seen[1] >> lane % 4 * 2};
#pragma unroll
        for (int j = 0; j < rows / 8; ++j) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                float& score = scores[j][i];
                if constexpr (!Plain) {
                    const float bias = tile.bias[j * 8 + lane % 4 * 2 + i % 2];
                    score = (bits[i / 2] >> (j * 8 + i % 2) & 1) != 0 ? fmaf(score, scale, bias) : -INFINITY;
                }
                highest[i / 2] = score > highest[i / 2] ? score : highest[i / 2];
            }
        }
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            if constexpr (Plain) {
                highest[half] = fmaxf(maximum[half], highest[half] * scale);
            }
#pragma unroll
            for (int step = 1; step < 4; step *= 2) {
                highest[half] = fmaxf(highest[half], __shfl_xor_sync(all_lanes, highest[half], step));
            }
            const float factor = power_of_two(maximum[half] - highest[half]);
            maximum[half] = highest[half];
            sum[half] *= factor;
#pragma unroll
            for (auto& numbers : mixed) {
                numbers[2 * half] *= factor;
                numbers[2 * half + 1] *= factor;
            }
        }
#pragma unroll
        for (int j = 0; j < rows / 8; ++j) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                scores[j][i] = power_of_two(Plain ? fmaf(scores[j][i], scale, -maximum[i / 2])
                                                  : scores[j][i] - maximum[i / 2]);
                sum[i / 2] += scores[j][i];
            }
        }
    }

    __device__ __forceinline__ void mix(const Tile<T, Slices>& tile, int lane) {
        const int matrix = lane / 8;
#pragma unroll
        for (int j = 0; j < rows / 16; ++j) {
            const auto& left = scores[2 * j];
            const auto& right = scores[2 * j + 1];
            const std::uint32_t a[4] = {pair_of<T>(left[0], left[1]), pair_of<T>(left[2], left[3]),
                                        pair_of<T>(right[0], right[1]), pair_of<T>(right[2], right[3])};
#pragma unroll
            for (int s = 0; s < Slices; ++s) {
                // Rows 16 j and 16 j + 8, for the first and the second half of the slice.
                std::uint32_t b[4];
                load_matrices<true>(tile.values + (j * 16 + matrix % 2 * 8 + lane % 8) * width + s * slice +
                                        matrix / 2 * 8,
                                    b);
                multiply_add<T>(mixed[2 * s], a, b[0], b[1]);
                multiply_add<T>(mixed[2 * s + 1], a, b[2], b[3]);
            }
        }
    }

    /// The same element by element, where a value is infinite or NaN: 0 times it would reach lines that do
    /// not see its row. Weights come by way of shared memory, and every warp has to come here.
    __device__ __forceinline__ void mix_strange(Tile<T, Slices>& tile, const std::uint64_t (&seen)[2],
                                                int warp, int lane) {
        __syncthreads(); // keys were read
        float* const weights = tile.weights + warp * lines_of_warp * rows;
#pragma unroll
        for (int j = 0; j < rows / 8; ++j) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                weights[(lane / 4 + i / 2 * 8) * rows + j * 8 + lane % 4 * 2 + i % 2] = scores[j][i];
            }
        }
        __syncwarp();
        for (int row = 0; row < rows; ++row) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                if ((seen[half] >> row & 1) == 0) {
                    continue;
                }
                const float weight = weights[(lane / 4 + half * 8) * rows + row];
#pragma unroll
                for (int n = 0; n < Slices * 2; ++n) {
                    const T* const value = tile.values + row * width + n * 8 + lane % 4 * 2;
                    mixed[n][2 * half] += weight * widen(value[0]);
                    mixed[n][2 * half + 1] += weight * widen(value[1]);
                }
            }
        }
    }
};

template <typename T, int Slices>
__global__ void __launch_bounds__(threads) attend_tiles_kernel(AttendRanges a) {
    __shared__ Tile<T, Slices> tile;
    constexpr int width = Tile<T, Slices>::width;
    constexpr int chunks = Slices * slice / chunk;
    const int thread = static_cast<int>(threadIdx.x);
    const int warp = thread / 32;
    const int lane = thread % 32;
    const int group = static_cast<int>(a.query_heads / a.kv_heads);
    const int queries = lines / group; // of a block
    const std::int64_t first_query = static_cast<std::int64_t>(blockIdx.x) * queries;
    const std::int64_t kv_head = blockIdx.y;
    const int size = static_cast<int>(a.head_size);
    const T* const keys = static_cast<const T*>(a.k) + kv_head * a.k_head_stride;
    const T* const values = static_cast<const T*>(a.v) + kv_head * a.v_head_stride;

    // Lines of this lane.
    int query_of[2];
    bool present[2];
    std::int64_t head_of[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const int line = warp * lines_of_warp + lane / 4 + half * 8;
        query_of[half] = line / group;
        head_of[half] = kv_head * group + line % group;
        present[half] = query_of[half] < queries && first_query + query_of[half] < a.queries;
    }
    Lines<T, Slices> own;
#pragma unroll
    for (int s = 0; s < Slices; ++s) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int half = i % 2;
            const int element = s * slice + lane % 4 * 2 + i / 2 * 8;
            const T* const row = static_cast<const T*>(a.q) + (first_query + query_of[half]) * a.q_stride +
                                 head_of[half] * a.q_head_stride;
            own.query[s][i] =
                present[half] && element < size ? *reinterpret_cast<const std::uint32_t*>(row + element) : 0;
        }
    }

    // A thread looks after one query of the block.
    const bool looks = thread < queries && first_query + thread < a.queries;
    const Seen seen_by(a, looks ? first_query + thread : 0);
    for (std::uint32_t from = 0;;) {
        const std::uint32_t next = least_of(looks ? seen_by.next(from) : no_row);
        if (lane == 0) {
            tile.firsts[warp] = next;
        }
        __syncthreads(); // the tile before was read, too
        std::uint32_t begin = no_row;
#pragma unroll
        for (int w = 0; w < warps; ++w) {
            begin = tile.firsts[w] < begin ? tile.firsts[w] : begin;
        }
        if (begin == no_row) {
            break;
        }
        const std::uint64_t bits = looks ? seen_by.bits(begin) : 0;
        if (thread < lines) {
            tile.masks[thread] = bits;
        }
        const std::uint64_t of_warp = union_of(bits);
        if (lane == 0) {
            tile.unions[warp] = of_warp;
        }
        __syncthreads();
        std::uint64_t any = 0;
#pragma unroll
        for (int w = 0; w < warps; ++w) {
            any |= tile.unions[w];
        }
        bool strange = false;
        constexpr int copies = rows * chunks / threads; // of a thread
        // Loads of keys and of values in flight: as many as registers hold beside the lines.
        constexpr int at_once = copies % 4 == 0 ? 4 : copies % 3 == 0 ? 3 : 2;
        static_assert(rows * chunks % threads == 0 && copies % at_once == 0);
#pragma unroll 1
        for (int first = 0; first < copies; first += at_once) {
            RawChunk<T> key[at_once];
            RawChunk<T> value[at_once];
#pragma unroll
            for (int i = 0; i < at_once; ++i) {
                const int row = ((first + i) * threads + thread) / chunks;
                const int element = ((first + i) * threads + thread) % chunks * chunk;
                const bool read = (any >> row & 1) != 0; // others may be anything, or no memory
                const std::int64_t at = std::int64_t{begin} + row;
                load_raw(keys + at * a.k_stride, element, size, read, key[i]);
                load_raw(values + at * a.v_stride, element, size, read, value[i]);
            }
#pragma unroll
            for (int i = 0; i < at_once; ++i) {
                const int row = ((first + i) * threads + thread) / chunks;
                const int element = ((first + i) * threads + thread) % chunks * chunk;
                *reinterpret_cast<uint4*>(tile.keys + row * width + element) = key[i].words[0];
                *reinterpret_cast<uint4*>(tile.values + row * width + element) = value[i].words[0];
                strange = strange || is_strange(value[i]);
            }
        }
        if (thread < rows) {
            const bool read = a.row_bias != nullptr && (any >> thread & 1) != 0;
            tile.bias[thread] = read ? a.row_bias[std::int64_t{begin} + thread] * log2_e : 0.0F;
        }
        strange = __syncthreads_or(strange) != 0;
        const std::uint64_t seen[2] = {present[0] ? tile.masks[query_of[0]] : 0,
                                       present[1] ? tile.masks[query_of[1]] : 0};
        const bool works = union_of(seen[0] | seen[1]) != 0;
        if (works) {
            own.score(tile, lane);
            const float scale = a.scale * log2_e;
            const bool all = (seen[0] & seen[1]) == ~std::uint64_t{0} && a.row_bias == nullptr && scale > 0;
            if (__all_sync(all_lanes, all)) {
                own.template weigh<true>(tile, scale, seen, lane);
            } else {
                own.template weigh<false>(tile, scale, seen, lane);
            }
        }
        if (strange) {
            own.mix_strange(tile, seen, warp, lane);
        } else if (works) {
            own.mix(tile, lane);
        }
        from = begin + rows;
    }

#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int step = 1; step < 4; step *= 2) {
            own.sum[half] += __shfl_xor_sync(all_lanes, own.sum[half], step);
        }
        if (!present[half]) {
            continue;
        }
        T* const out = static_cast<T*>(a.out) +
                       ((first_query + query_of[half]) * a.query_heads + head_of[half]) * a.head_size;
#pragma unroll
        for (int n = 0; n < Slices * 2; ++n) {
            const int element = n * 8 + lane % 4 * 2;
            if (element < size) {
                *reinterpret_cast<std::uint32_t*>(out + element) = pair_of<T>(
                    own.mixed[n][2 * half] / own.sum[half], own.mixed[n][2 * half + 1] / own.sum[half]);
            }
        }
    }
}

template <typename T>
void launch(const AttendRanges& a, cudaStream_t stream) {
    const std::int64_t queries = lines / (a.query_heads / a.kv_heads);
    const dim3 grid(static_cast<unsigned>((a.queries + queries - 1) / queries),
                    static_cast<unsigned>(a.kv_heads));
    const std::int64_t slices = (a.head_size + slice - 1) / slice;
    // Heads of most models are 64, 80, 96 or 128 elements; others go to the next.
    launch_kernel(slices <= 2   ? attend_tiles_kernel<T, 2>
                  : slices <= 4 ? attend_tiles_kernel<T, 4>
                  : slices <= 6 ? attend_tiles_kernel<T, 6>
                                : attend_tiles_kernel<T, 8>,
                  grid, dim3(threads), 0, stream, a);
}

} // namespace

const char* attend_tiles_cuda(const AttendRanges& arguments, void* stream) {
    if (arguments.queries == 0) {
        return nullptr;
    }
    if (!fits_attend_tiles(arguments)) {
        return "tiles take heads of 8, 16 .. 128 elements in half precision, at most 64 a K/V head";
    }
    if (arguments.element == Element::f16) {
        launch<__half>(arguments, static_cast<cudaStream_t>(stream));
    } else {
        launch<__nv_bfloat16>(arguments, static_cast<cudaStream_t>(stream));
    }
    return launch_error();
}

} // namespace ponderscope::kernels
