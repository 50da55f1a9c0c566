// SPDX-License-Identifier: GPL-3.0-or-later
// Loops over bfloat16 for processors that multiply it: their own product, and operands for the matrix unit.
// With the rule of tile_loops.h: nothing but built-in types.
#pragma once

#include "core/model/kernels/tile_loops.h"

namespace ponderscope::kernels {
namespace {

using Bits = std::uint32_t __attribute__((vector_size(4 * lane_count)));

template <int R, int N>
inline void product_block_bf16(const std::uint16_t* table, std::ptrdiff_t stride, std::int64_t pairs,
                               const std::uint32_t* queries, float* tile, const float* bias) {
    __m512 sum[R][N];
    for (int r = 0; r < R; ++r) {
        for (int v = 0; v < N; ++v) {
            sum[r][v] = _mm512_setzero_ps();
        }
    }
#pragma GCC unroll 1
    for (std::int64_t k = 0; k < pairs; ++k) {
        __m512bh x[N];
        for (int v = 0; v < N; ++v) {
            x[v] = reinterpret_cast<__m512bh>(_mm512_load_si512(queries + (k * N + v) * lane_count));
        }
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
            int pair = 0;
            __builtin_memcpy(&pair, table + r * stride + 2 * k, sizeof pair);
            const __m512bh element = reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair));
            for (int v = 0; v < N; ++v) {
                sum[r][v] = _mm512_dpbf16_ps(sum[r][v], element, x[v]);
            }
        }
    }
    for (int r = 0; r < R; ++r) {
        for (int v = 0; v < N; ++v) {
            const Vector value = reinterpret_cast<Vector>(sum[r][v]);
            vectors_at(tile)[r * N + v] = bias != nullptr ? value + bias[r] : value;
        }
    }
}

template <int N>
void product_of_bf16(const std::uint16_t* table, std::ptrdiff_t stride, std::int64_t rows, std::int64_t pairs,
                     const std::uint32_t* queries, float* tile, const float* bias) {
    constexpr int width = N * lane_count;
    constexpr int step = block_rows<N>();
    std::int64_t r = 0;
    for (; r + step <= rows; r += step) {
        product_block_bf16<step, N>(table + r * stride, stride, pairs, queries, tile + r * width,
                                    bias != nullptr ? bias + r : nullptr);
    }
    for (; r < rows; ++r) {
        product_block_bf16<1, N>(table + r * stride, stride, pairs, queries, tile + r * width,
                                 bias != nullptr ? bias + r : nullptr);
    }
}

void product_bf16_all(const std::uint16_t* table, std::ptrdiff_t stride, std::int64_t rows,
                      std::int64_t pairs, const std::uint32_t* queries, int vectors, float* tile,
                      const float* bias) {
    switch (vectors) {
    case 1:
        return product_of_bf16<1>(table, stride, rows, pairs, queries, tile, bias);
    case 2:
        return product_of_bf16<2>(table, stride, rows, pairs, queries, tile, bias);
    default:
        return product_of_bf16<3>(table, stride, rows, pairs, queries, tile, bias);
    }
}

void pair_rows_all(const std::uint16_t* table, std::ptrdiff_t stride, std::int64_t rows, std::int64_t depth,
                   std::uint32_t* pairs) {
    for (std::int64_t r = 0; r < rows; r += 2) {
        const std::uint16_t* upper = table + r * stride;
        std::uint32_t* out = pairs + r / 2 * depth;
        if (r + 1 < rows) {
            const std::uint16_t* lower = upper + stride;
            for (std::int64_t i = 0; i < depth; ++i) {
                out[i] = upper[i] | static_cast<std::uint32_t>(lower[i]) << 16;
            }
        } else {
            for (std::int64_t i = 0; i < depth; ++i) {
                out[i] = upper[i];
            }
        }
    }
}

/// Swaps blocks of S beside the diagonal of 16 rows.
template <int S>
inline void swap_blocks(__m512i (&x)[16]) {
    alignas(64) std::int32_t upper[16];
    alignas(64) std::int32_t lower[16];
    for (int lane = 0; lane < 16; ++lane) {
        upper[lane] = (lane & S) != 0 ? 16 + lane - S : lane;
        lower[lane] = (lane & S) != 0 ? 16 + lane : lane + S;
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
        if ((i & S) == 0) {
            const __m512i a = x[i];
            const __m512i b = x[i + S];
            x[i] = _mm512_permutex2var_epi32(a, _mm512_load_si512(upper), b);
            x[i + S] = _mm512_permutex2var_epi32(a, _mm512_load_si512(lower), b);
        }
    }
}

/// Rows become columns.
inline void transpose(__m512i (&x)[16]) {
    swap_blocks<1>(x);
    swap_blocks<2>(x);
    swap_blocks<4>(x);
    swap_blocks<8>(x);
}

/// A number cut to bfloat16, and what is cut off (at most 2^-8 of it) rounded to it, both in the upper half
/// of 32 bits.
struct Parts {
    Bits high;
    Bits low;
};

inline Parts parts_of(Vector x) {
    constexpr std::uint32_t upper_half = 0xffff0000;
    const Bits high = reinterpret_cast<Bits>(x) & upper_half;
    const Bits rest = reinterpret_cast<Bits>(x - reinterpret_cast<Vector>(high));
    return {high, (rest + 0x8000U) & upper_half};
}

void split_columns_all(const float* tile, std::int64_t rows, int vectors, std::int64_t stride,
                       std::uint32_t* high, std::uint32_t* low) {
    for (int v = 0; v < vectors; ++v) {
        const auto row = [&](std::int64_t r) {
            return r < rows ? vectors_at(tile)[r * vectors + v] : Vector{};
        };
        for (std::int64_t first = 0; first < rows; first += 2 * lane_count) {
            __m512i highs[lane_count];
            __m512i lows[lane_count];
            for (int pair = 0; pair < lane_count; ++pair) {
                const Parts a = parts_of(row(first + 2 * pair));
                const Parts b = parts_of(row(first + 2 * pair + 1));
                highs[pair] = reinterpret_cast<__m512i>(a.high >> 16 | b.high);
                lows[pair] = reinterpret_cast<__m512i>(a.low >> 16 | b.low);
            }
            transpose(highs);
            transpose(lows);
            const std::int64_t at = v * lane_count * stride + first / 2;
            for (int lane = 0; lane < lane_count; ++lane) {
                _mm512_storeu_si512(high + at + lane * stride, highs[lane]);
                _mm512_storeu_si512(low + at + lane * stride, lows[lane]);
            }
        }
    }
}

constexpr TileKernels with_bf16(TileKernels set) {
    set.product_bf16 = product_bf16_all;
    set.pair_rows = pair_rows_all;
    set.split_columns = split_columns_all;
    return set;
}

} // namespace
} // namespace ponderscope::kernels
