// SPDX-License-Identifier: GPL-3.0-or-later
// The loops behind core/kernels/cpu/tile.h. Each tile_*.cpp includes this file and is compiled for one
// instruction set. The file uses built-in types only: if it compiled an inline function of a library for a
// newer processor, the linker could keep this copy for the whole program.
#pragma once

#include "core/kernels/cpu/tile.h"
#include "core/kernels/cpu/tile_vectors.h"

namespace ponderscope::kernels {
namespace {

constexpr int full_vectors = 3;

/// Number of rows that are summed at once for N vectors: the sums fill the 16 registers and hide the latency
/// of an addition.
template <int N>
constexpr int block_rows() {
    return N == 1 ? 8 : N == 2 ? 6 : 4;
}

/// R rows times N vectors, held in registers over the whole depth. Element (r, k) of the table is table[r *
/// RowStep + k * DepthStep], and one of the two steps is 1.
template <int R, int N, bool RowsTogether>
inline void multiply(const float* table, std::ptrdiff_t stride, std::int64_t depth, const Vector* queries,
                     Vector (&sum)[R][N]) {
#pragma GCC unroll 1
    for (std::int64_t k = 0; k < depth; ++k) {
        Vector x[N];
        for (int v = 0; v < N; ++v) {
            x[v] = queries[k * N + v];
        }
        const float* row = RowsTogether ? table + k * stride : table + k;
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
            const float element = RowsTogether ? row[r] : row[r * stride];
            for (int v = 0; v < N; ++v) {
                sum[r][v] = multiply_add(splat(element), x[v], sum[r][v]);
            }
        }
    }
}

template <int R, int N>
inline void product_block(const float* table, std::ptrdiff_t stride, std::int64_t depth, const float* queries,
                          float* tile, const float* bias) {
    Vector sum[R][N] = {};
    multiply<R, N, false>(table, stride, depth, vectors_at(queries), sum);
    Vector* out = vectors_at(tile);
    for (int r = 0; r < R; ++r) {
        for (int v = 0; v < N; ++v) {
            out[r * N + v] = bias != nullptr ? sum[r][v] + bias[r] : sum[r][v];
        }
    }
}

template <int N>
void product_of(const float* table, std::ptrdiff_t stride, std::int64_t rows, std::int64_t depth,
                const float* queries, int, float* tile, const float* bias) {
    constexpr int width = N * lane_count;
    constexpr int step = block_rows<N>();
    std::int64_t r = 0;
    for (; r + step <= rows; r += step) {
        product_block<step, N>(table + r * stride, stride, depth, queries, tile + r * width,
                               bias != nullptr ? bias + r : nullptr);
    }
    for (; r < rows; ++r) {
        product_block<1, N>(table + r * stride, stride, depth, queries, tile + r * width,
                            bias != nullptr ? bias + r : nullptr);
    }
}

template <int R, int N>
inline void mix_block(const float* table, std::ptrdiff_t stride, std::int64_t rows, const float* tile,
                      float* out) {
    Vector sum[R][N];
    Vector* target = vectors_at(out);
    for (int r = 0; r < R; ++r) {
        for (int v = 0; v < N; ++v) {
            sum[r][v] = target[r * N + v];
        }
    }
    multiply<R, N, true>(table, stride, rows, vectors_at(tile), sum);
    for (int r = 0; r < R; ++r) {
        for (int v = 0; v < N; ++v) {
            target[r * N + v] = sum[r][v];
        }
    }
}

template <int N>
void mix_of(const float* table, std::ptrdiff_t stride, std::int64_t rows, std::int64_t depth,
            const float* tile, int, float* out) {
    constexpr int width = N * lane_count;
    constexpr int step = block_rows<N>();
    std::int64_t i = 0;
    for (; i + step <= depth; i += step) {
        mix_block<step, N>(table + i, stride, rows, tile, out + i * width);
    }
    for (; i < depth; ++i) {
        mix_block<1, N>(table + i, stride, rows, tile, out + i * width);
    }
}

template <int N>
void scan_of(const float* tile, std::int64_t rows, int, float* maximum) {
    const Vector* in = vectors_at(tile);
    for (int v = 0; v < N; ++v) {
        Vector best = vectors_at(maximum)[v];
        for (std::int64_t r = 0; r < rows; ++r) {
            const Vector x = in[r * N + v];
            best = x > best ? x : best;
        }
        vectors_at(maximum)[v] = best;
    }
}

template <int N>
void exponentials_of(float* tile, std::int64_t rows, int, const float* maximum, float* sum) {
    Vector* in = vectors_at(tile);
    for (int v = 0; v < N; ++v) {
        const Vector m = vectors_at(maximum)[v];
        Vector s[2] = {}; // two chains: an addition takes four cycles
        for (std::int64_t r = 0; r < rows; ++r) {
            Vector& e = in[r * N + v];
            e = exponential_of(e - m);
            s[r % 2] += e;
        }
        vectors_at(sum)[v] = s[0] + s[1];
    }
}

template <int N>
void mask_of(float* tile, std::int64_t rows, int, std::int32_t first_row, const std::int32_t* begin,
             const std::int32_t* end) {
    const Vector nothing = splat(-__builtin_inff());
    Vector* out = vectors_at(tile);
    for (int v = 0; v < N; ++v) {
        const Integers b = reinterpret_cast<const Integers*>(begin)[v];
        const Integers e = reinterpret_cast<const Integers*>(end)[v];
        for (std::int64_t r = 0; r < rows; ++r) {
            const Integers row = splat(first_row + static_cast<std::int32_t>(r));
            const Integers visible = (row >= b) & (row < e);
            out[r * N + v] = visible ? out[r * N + v] : nothing;
        }
    }
}

void rescale_all(float* out, std::int64_t depth, int vectors, const float* factor) {
    for (std::int64_t i = 0; i < depth; ++i) {
        for (int v = 0; v < vectors; ++v) {
            vectors_at(out)[i * vectors + v] *= vectors_at(factor)[v];
        }
    }
}

void widen_bf16_all(const std::uint16_t* from, std::int64_t count, float* to) {
    for (std::int64_t i = 0; i < count; ++i) {
        const std::uint32_t bits = static_cast<std::uint32_t>(from[i]) << 16;
        __builtin_memcpy(to + i, &bits, sizeof bits);
    }
}

void widen_f16_all(const std::uint16_t* from, std::int64_t count, float* to) {
    for (std::int64_t i = 0; i < count; ++i) {
        const std::uint32_t half = from[i];
        const std::uint32_t magnitude = (half & 0x7fffU) << 13;
        // The exponent is re-biased by a multiplication, which makes subnormal halves normal numbers too.
        float value = 0;
        __builtin_memcpy(&value, &magnitude, sizeof value);
        value *= 0x1p112F;
        std::uint32_t bits = 0;
        __builtin_memcpy(&bits, &value, sizeof bits);
        bits |= (half & 0x7c00U) == 0x7c00U ? 0x7f800000U : 0U; // infinity, NaN
        bits |= (half & 0x8000U) << 16;
        __builtin_memcpy(to + i, &bits, sizeof bits);
    }
}

void exponential_all(const float* from, std::int64_t count, float* to) {
    for (std::int64_t i = 0; i < count; i += lane_count) {
        const std::int64_t here = count - i < lane_count ? count - i : lane_count;
        Vector x = {};
        for (std::int64_t j = 0; j < here; ++j) {
            x[j] = from[i + j];
        }
        const Vector e = exponential_of(x);
        for (std::int64_t j = 0; j < here; ++j) {
            to[i + j] = e[j];
        }
    }
}

/// The number of vectors side by side: the first `int` among a kernel's parameters.
template <typename First, typename... Rest>
inline int vectors_in(First first, Rest... rest) {
    if constexpr (__is_same(First, int)) {
        return first;
    } else {
        return vectors_in(rest...);
    }
}

/// A kernel of the loops for one, two and three vectors.
template <auto One, auto Two, auto Three>
struct Widths;
template <typename... Parameters, void (*One)(Parameters...), void (*Two)(Parameters...),
          void (*Three)(Parameters...)>
struct Widths<One, Two, Three> {
    static void any(Parameters... parameters) {
        switch (vectors_in(parameters...)) {
        case 1:
            return One(parameters...);
        case 2:
            return Two(parameters...);
        default:
            return Three(parameters...);
        }
    }
};

constexpr TileKernels kernels_of(const char* name) {
    TileKernels set{};
    set.name = name;
    set.lanes = lane_count;
    set.max_vectors = full_vectors;
    set.product = Widths<product_of<1>, product_of<2>, product_of<3>>::any;
    set.mix = Widths<mix_of<1>, mix_of<2>, mix_of<3>>::any;
    set.scan = Widths<scan_of<1>, scan_of<2>, scan_of<3>>::any;
    set.exponentials = Widths<exponentials_of<1>, exponentials_of<2>, exponentials_of<3>>::any;
    set.mask = Widths<mask_of<1>, mask_of<2>, mask_of<3>>::any;
    set.rescale = rescale_all;
    set.widen_bf16 = widen_bf16_all;
    set.widen_f16 = widen_f16_all;
    set.exponential = exponential_all;
    return set;
}

} // namespace
} // namespace ponderscope::kernels
