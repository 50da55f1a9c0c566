// SPDX-License-Identifier: GPL-3.0-or-later
// Attention over ranges on the matrix unit, for half precision and many queries that see nearly the same
// rows. A block has 64 lines. A line is one query with one of the query heads that read the same K/V head.
// Neighbouring queries are neighbouring lines. K/V rows come to shared memory in tiles of 64. A tile begins
// at the next row that any query of the block sees, so that rows that no query sees are not read. A bit mask
// for each query marks the visible rows of the tile. A warp has 16 lines. Their scores, online softmax and
// sums of values stay in its registers (Dao, arXiv 2307.08691). The values of a tile are copied while its
// scores are computed, and the next keys while the values are summed. Weights are rounded to the dtype of the
// values. The neighbouring queries determine the tiles, so they change a result within this rounding.
#include "core/kernels/cuda/attend_ranges.h"

#include "core/kernels/cuda/device_elements.cuh"
#include "core/kernels/cuda/launch.cuh"
#include "core/kernels/cuda/matrix_unit.cuh"

#include <type_traits>

namespace ponderscope::kernels {
namespace {

constexpr int slice = 16; // elements of a head in one product
constexpr int warps = 4;
constexpr int threads = 32 * warps;
constexpr int lines = attend_tile_lines;
constexpr int lines_of_warp = 16;
constexpr int rows = 64; // of a tile; two tiles fit into a block's default shared memory
constexpr float lowest = -3.4028234e38F;
constexpr float log2_e = 1.44269504F;
constexpr std::uint32_t no_row = 0xffffffffU;
constexpr std::uint64_t all_rows = ~std::uint64_t{0};

static_assert(lines_of_warp * warps == lines);

/// The visible rows of one query. Row numbers are unsigned, because a tile may end past 2³¹.
class Seen {
public:
    __device__ Seen(const AttendRanges& a, std::int64_t query)
        : ranges_(a.ranges + query * a.ranges_per_query * 2),
          count_(a.ranges_per_query),
          trim_(trim_of(a, ranges_)) {
        first_end_ = static_cast<std::uint32_t>(ranges_[1]);
        first_begin_ = static_cast<std::uint32_t>(trim_.first(ranges_[0], ranges_[1]));
    }
    /// The first visible row that is not before \p from.
    __device__ std::uint32_t next(std::uint32_t from) const {
        std::uint32_t first = no_row;
        for_each([&](std::uint32_t begin, std::uint32_t end) {
            const std::uint32_t here = begin > from ? begin : from;
            first = here < end && here < first ? here : first;
        });
        return first;
    }
    /// The mask of a tile that begins at row \p from. Bit i: row from + i.
    __device__ std::uint64_t bits(std::uint32_t from) const {
        std::uint64_t all = 0;
        for_each([&](std::uint32_t begin, std::uint32_t end) {
            const std::uint32_t low = begin > from ? begin - from : 0;
            const std::uint32_t beyond = end > from ? end - from : 0;
            const std::uint32_t high = beyond < rows ? beyond : rows;
            if (low < high) {
                all |= (all_rows >> (64 - (high - low))) << low;
            }
        });
        return all;
    }

private:
    /// The first range is in registers, because most queries have only one range.
    template <typename Visit>
    __device__ void for_each(const Visit& visit) const {
        visit(first_begin_, first_end_);
        RangeTrim trim = trim_;
        for (std::int64_t m = 1; m < count_; ++m) {
            const std::int32_t end = ranges_[2 * m + 1];
            const std::int32_t begin = trim.first(ranges_[2 * m], end);
            visit(static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end));
        }
    }

    const std::int32_t* ranges_;
    std::int64_t count_;
    RangeTrim trim_; ///< after the first range
    std::uint32_t first_begin_, first_end_;
};

__device__ __forceinline__ float power_of_two(float x) {
#if defined(__CUDACC__)
    asm("ex2.approx.ftz.f32 %0, %0;" : "+f"(x));
    return x;
#else
    return std::exp2(x);
#endif
}

/// The union of a warp's masks.
__device__ __forceinline__ std::uint64_t union_of(std::uint64_t own) {
    const std::uint32_t low = __reduce_or_sync(all_lanes, static_cast<std::uint32_t>(own));
    const std::uint32_t high = __reduce_or_sync(all_lanes, static_cast<std::uint32_t>(own >> 32));
    return std::uint64_t{high} << 32 | low;
}

/// Whether one of eight elements is infinite or NaN: all bits of its exponent are set.
template <typename T>
__device__ __forceinline__ bool is_strange(const T* values) {
    constexpr unsigned low = std::is_same_v<T, __half> ? 0x7c00U : 0x7f80U;
    constexpr unsigned high = low << 16;
    const uint4 words = *reinterpret_cast<const uint4*>(values);
    bool strange = false;
#pragma unroll
    for (const unsigned word : {words.x, words.y, words.z, words.w}) {
        strange = strange || (word & low) == low || (word & high) == high;
    }
    return strange;
}

template <typename T, int Slices>
struct Tile {
    static constexpr int chunks = Slices * slice / chunk;  // in a row
    static constexpr int width = Slices * slice + chunk;   // padding puts eight rows in different banks
    static constexpr int copies = rows * chunks / threads; // by each thread
    static_assert(rows * chunks % threads == 0 && rows <= threads && lines <= threads);

    alignas(16) T keys[rows * width];
    alignas(16) T values[rows * width];
    float bias[2][rows];          ///< for tiles in turn; added to exponents of 2
    std::uint64_t masks[lines];   ///< of the next tile, once the current masks are in registers
    std::uint64_t any[warps];     ///< by warp: rows that some query sees
    std::uint64_t not_all[warps]; ///< by warp: rows that some query does not see
    std::uint64_t strange[warps]; ///< by warp: rows in which it found an infinite value or NaN
    std::uint32_t firsts[warps];

    /// Starts to copy rows from \p begin on. Rows outside \p any are not read and become 0.
    __device__ __forceinline__ static void copy(T* to, const T* from, std::int64_t stride, int size,
                                                std::uint32_t begin, std::uint64_t any, int thread) {
#pragma unroll
        for (int i = 0; i < copies; ++i) {
            const int row = (i * threads + thread) / chunks;
            const int element = (i * threads + thread) % chunks * chunk;
            copy_async(to + row * width + element, from + (std::int64_t{begin} + row) * stride + element,
                       (any >> row & 1) != 0 && element < size);
        }
    }
    /// The rows in which this thread copied an infinite value or NaN.
    [[nodiscard]] __device__ __forceinline__ std::uint64_t strange_rows(int thread) const {
        std::uint64_t found = 0;
#pragma unroll
        for (int i = 0; i < copies; ++i) {
            const int place = i * threads + thread;
            const bool here = is_strange(values + place / chunks * width + place % chunks * chunk);
            found |= std::uint64_t{here} << place / chunks;
        }
        return found;
    }
    __device__ __forceinline__ void clear_values(std::uint64_t of_rows, int thread) {
#pragma unroll
        for (int i = 0; i < copies; ++i) {
            const int place = i * threads + thread;
            if ((of_rows >> place / chunks & 1) != 0) {
                *reinterpret_cast<uint4*>(values + place / chunks * width + place % chunks * chunk) = {};
            }
        }
    }
    /// The union of the masks of all warps.
    __device__ __forceinline__ static std::uint64_t joined(const std::uint64_t (&of_warps)[warps]) {
        std::uint64_t all = 0;
#pragma unroll
        for (int w = 0; w < warps; ++w) {
            all |= of_warps[w];
        }
        return all;
    }
};

/// The lines of a warp in registers. Numbers 0 and 1 of a lane are of line group, 2 and 3 of group + 8.
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
                // Rows from 8 j and from 8 (j + 1) on, each with both halves of the slice.
                std::uint32_t b[4];
                load_matrices<false>(
                    tile.keys + ((j + matrix / 2) * 8 + lane % 8) * width + s * slice + matrix % 2 * 8, b);
                multiply_add<T>(scores[j], query[s], b[0], b[1]);
                multiply_add<T>(scores[j + 1], query[s], b[2], b[3]);
            }
        }
    }

    /// Turns scores into weights relative to the new maxima, and rescales the sums so far. Weights are powers
    /// of 2: \p scale is log2(e) times the factor on scores. Without Masked, every line sees every row.
    template <bool Masked, bool Biased>
    __device__ __forceinline__ void weigh(const float (&bias)[rows], float scale,
                                          const std::uint64_t (&seen)[2], int lane) {
        constexpr bool Plain = !Masked && !Biased; // scores are scaled last
        float highest[2] = {Plain ? -INFINITY : maximum[0], Plain ? -INFINITY : maximum[1]};
        // Shift the masks, so that the bit positions below are constants.
        const std::uint64_t bits[2] = {seen[0] >> lane % 4 * 2, seen[1] >> lane % 4 * 2};
#pragma unroll
        for (int j = 0; j < rows / 8; ++j) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                float& score = scores[j][i];
                if constexpr (!Plain) {
                    score = fmaf(score, scale, Biased ? bias[j * 8 + lane % 4 * 2 + i % 2] : 0.0F);
                }
                if constexpr (Masked) {
                    score = (bits[i / 2] >> (j * 8 + i % 2) & 1) != 0 ? score : -INFINITY;
                }
                highest[i / 2] = fmaxf(highest[i / 2], score);
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
                // Rows from 16 j and from 16 j + 8 on, for the first and the second half of the slice.
                std::uint32_t b[4];
                load_matrices<true>(tile.values + (j * 16 + matrix % 2 * 8 + lane % 8) * width + s * slice +
                                        matrix / 2 * 8,
                                    b);
                multiply_add<T>(mixed[2 * s], a, b[0], b[1]);
                multiply_add<T>(mixed[2 * s + 1], a, b[2], b[3]);
            }
        }
    }

    /// mix() for one row with values that are not finite, element by element. In a matrix product, 0 times
    /// such a value would reach lines that do not see the row. All lanes must call it.
    __device__ __forceinline__ void mix_row(const Tile<T, Slices>& tile, int row,
                                            const std::uint64_t (&seen)[2], int lane) {
        // Compare with a bit instead of indexing `scores`, so that `scores` stays in registers.
        const unsigned place = 1U << (row / 8 * 2 + row % 2);
        float weight[2] = {0, 0};
#pragma unroll
        for (int j = 0; j < rows / 8; ++j) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                weight[i / 2] += (place >> (2 * j + i % 2) & 1) != 0 ? scores[j][i] : 0;
            }
        }
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            weight[half] = __shfl_sync(all_lanes, weight[half], lane / 4 * 4 + row % 8 / 2);
            const bool sees = (seen[half] >> row & 1) != 0;
#pragma unroll
            for (int n = 0; n < Slices * 2; ++n) {
                const T* const value = tile.values + row * width + n * 8 + lane % 4 * 2;
                mixed[n][2 * half] += sees ? weight[half] * widen(value[0]) : 0;
                mixed[n][2 * half + 1] += sees ? weight[half] * widen(value[1]) : 0;
            }
        }
    }
};

template <typename T, int Slices>
__global__ void __launch_bounds__(threads, Slices <= 4 ? 3 : 2) attend_tiles_kernel(AttendRanges a) {
    using OneTile = Tile<T, Slices>;
    __shared__ OneTile tile;
    const int thread = static_cast<int>(threadIdx.x);
    const int warp = thread / 32;
    const int lane = thread % 32;
    const int group = static_cast<int>(a.query_heads / a.kv_heads);
    const int queries = lines / group; // in a block
    // Start with the last queries, because they see the most rows of causal ranges.
    const std::int64_t first_query = static_cast<std::int64_t>(gridDim.x - 1 - blockIdx.x) * queries;
    const std::int64_t kv_head = blockIdx.y;
    const int size = static_cast<int>(a.head_size);
    const T* const keys = static_cast<const T*>(a.k) + kv_head * a.k_head_stride;
    const T* const values = static_cast<const T*>(a.v) + kv_head * a.v_head_stride;
    const float scale = a.scale * log2_e;

    // The two lines of this lane.
    const auto line_of = [&](int half) { return warp * lines_of_warp + lane / 4 + half * 8; };
    const auto query_of = [&](int half) { return line_of(half) / group; };
    const auto is_present = [&](int half) {
        return query_of(half) < queries && first_query + query_of(half) < a.queries;
    };
    // The offset of a line's head in the queries or in the result.
    const auto place_of = [&](int half, std::int64_t stride, std::int64_t head_stride) {
        return (first_query + query_of(half)) * stride +
               (kv_head * group + line_of(half) % group) * head_stride;
    };
    Lines<T, Slices> own;
#pragma unroll
    for (int s = 0; s < Slices; ++s) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int half = i % 2;
            const int element = s * slice + lane % 4 * 2 + i / 2 * 8;
            const T* const row = static_cast<const T*>(a.q) + place_of(half, a.q_stride, a.q_head_stride);
            own.query[s][i] = is_present(half) && element < size
                                  ? *reinterpret_cast<const std::uint32_t*>(row + element)
                                  : 0;
        }
    }

    // Each thread computes the masks of one query of the block.
    const bool looks = thread < queries && first_query + thread < a.queries;
    const Seen seen_by(a, looks ? first_query + thread : 0);
    const auto write_first = [&](std::uint32_t from) {
        const std::uint32_t first = __reduce_min_sync(all_lanes, looks ? seen_by.next(from) : no_row);
        if (lane == 0) {
            tile.firsts[warp] = first;
        }
    };
    const auto first_of_block = [&] {
        std::uint32_t first = no_row;
#pragma unroll
        for (int w = 0; w < warps; ++w) {
            first = tile.firsts[w] < first ? tile.firsts[w] : first;
        }
        return first;
    };
    const auto write_masks = [&](std::uint32_t begin) {
        const std::uint64_t bits = looks ? seen_by.bits(begin) : 0;
        if (thread < lines) {
            tile.masks[thread] = bits;
        }
        const std::uint64_t any = union_of(bits);
        const std::uint64_t not_all = union_of(looks ? ~bits : 0);
        if (lane == 0) {
            tile.any[warp] = any;
            tile.not_all[warp] = not_all;
        }
    };
    std::uint64_t any = 0;          // rows that some query sees
    bool all_see_all = false;       // every query sees every row
    std::uint64_t seen[2] = {0, 0}; // rows that the lines of this lane see
    int turn = 0;
    const auto begin_tile = [&](std::uint32_t begin) {
        any = OneTile::joined(tile.any);
        all_see_all = OneTile::joined(tile.not_all) == 0;
        OneTile::copy(tile.keys, keys, a.k_stride, size, begin, any, thread);
        if (a.row_bias != nullptr && thread < rows) {
            tile.bias[turn][thread] =
                (any >> thread & 1) != 0 ? a.row_bias[std::int64_t{begin} + thread] * log2_e : 0.0F;
        }
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            seen[half] = is_present(half) ? tile.masks[query_of(half)] : 0;
        }
    };

    write_first(0);
    __syncthreads();
    std::uint32_t begin = first_of_block();
    if (begin != no_row) {
        write_masks(begin);
        __syncthreads();
        begin_tile(begin);
    }
    while (begin != no_row) {
        const std::uint64_t seen_here[2] = {seen[0], seen[1]};
        const bool plain_values = all_see_all; // then infinite values and NaN belong in every sum
        const int turn_here = turn;
        write_first(begin + rows);
        wait_for_copies();
        __syncthreads(); // keys have arrived, and earlier values were read
        OneTile::copy(tile.values, values, a.v_stride, size, begin, any, thread);
        const bool works = !__all_sync(all_lanes, (seen_here[0] | seen_here[1]) == 0);
        if (works) {
            own.score(tile, lane);
        }
        begin = first_of_block();
        if (begin != no_row) {
            write_masks(begin);
        }
        wait_for_copies();
        __syncthreads(); // values have arrived, and keys were read
        turn = 1 - turn;
        if (begin != no_row) {
            begin_tile(begin);
        }
        if (works) {
            const bool masked =
                !__all_sync(all_lanes, (seen_here[0] & seen_here[1]) == all_rows && scale > 0);
            if (a.row_bias != nullptr && masked) {
                own.template weigh<true, true>(tile.bias[turn_here], scale, seen_here, lane);
            } else if (a.row_bias != nullptr) {
                own.template weigh<false, true>(tile.bias[turn_here], scale, seen_here, lane);
            } else if (masked) {
                own.template weigh<true, false>(tile.bias[turn_here], scale, seen_here, lane);
            } else {
                own.template weigh<false, false>(tile.bias[turn_here], scale, seen_here, lane);
            }
        }
        if (!plain_values) {
            const std::uint64_t of_warp = union_of(tile.strange_rows(thread));
            if (lane == 0) {
                tile.strange[warp] = of_warp;
            }
            __syncthreads();
            const std::uint64_t strange = OneTile::joined(tile.strange);
            if (strange != 0) {
#pragma unroll 1
                for (int row = 0; row < rows; ++row) {
                    if ((strange >> row & 1) != 0 && works) {
                        own.mix_row(tile, row, seen_here, lane);
                    }
                }
                __syncthreads();
                tile.clear_values(strange, thread);
                __syncthreads();
            }
        }
        if (works) {
            own.mix(tile, lane);
        }
    }

#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int step = 1; step < 4; step *= 2) {
            own.sum[half] += __shfl_xor_sync(all_lanes, own.sum[half], step);
        }
        if (!is_present(half)) {
            continue;
        }
        const float share = 1 / own.sum[half];
        T* const out = static_cast<T*>(a.out) + place_of(half, a.query_heads * a.head_size, a.head_size);
#pragma unroll
        for (int n = 0; n < Slices * 2; ++n) {
            const int element = n * 8 + lane % 4 * 2;
            if (element < size) {
                *reinterpret_cast<std::uint32_t*>(out + element) =
                    pair_of<T>(own.mixed[n][2 * half] * share, own.mixed[n][2 * half + 1] * share);
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
    // Most models have heads of 64, 80, 96 or 128 elements. Other sizes use the next larger kernel.
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
