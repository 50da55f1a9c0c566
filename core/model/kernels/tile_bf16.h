// SPDX-License-Identifier: GPL-3.0-or-later
// Loops over bfloat16 for processors that multiply it: their own product, and operands for the matrix unit.
// With the rule of tile_loops.h: nothing but built-in types.
#pragma once

#include "core/model/kernels/tile_loops.h"

namespace ponderscope::kernels {
namespace {

using Bits = std::uint32_t __attribute__((vector_size(4 * lane_count)));

/// R rows of a product of pairs of bfloat16.
struct Bf16Block {
    using Element = std::uint16_t;
    using Query = std::uint32_t;
    template <int R, int N>
    static void product(const std::uint16_t* table, std::ptrdiff_t stride, std::int64_t pairs,
                        const std::uint32_t* queries, Vector (&sum)[R][N]) {
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
                    sum[r][v] = reinterpret_cast<Vector>(
                        _mm512_dpbf16_ps(reinterpret_cast<__m512>(sum[r][v]), element, x[v]));
                }
            }
        }
    }
};

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

void pair_columns_all(const std::uint16_t* table, std::ptrdiff_t row_stride, std::int64_t rows,
                      std::int64_t pairs, std::int64_t stride, std::uint32_t* out) {
    for (std::int64_t r = 0; r < stride; r += lane_count) {
        for (std::int64_t k = 0; k < pairs; k += lane_count) {
            const std::int64_t here = pairs - k < lane_count ? pairs - k : lane_count;
            const auto some = static_cast<__mmask16>((1U << here) - 1);
            __m512i x[lane_count];
            for (int i = 0; i < lane_count; ++i) {
                x[i] = r + i < rows ? _mm512_maskz_loadu_epi32(some, table + (r + i) * row_stride + 2 * k)
                                    : _mm512_setzero_si512();
            }
            transpose(x);
            for (int i = 0; i < here; ++i) {
                _mm512_storeu_si512(out + (k + i) * stride + r, x[i]);
            }
        }
    }
}

/// 1 / x for finite x, within 2^-27: a division takes as long as the rest of an activation.
inline Vector reciprocal_of(Vector x) {
    const auto about = reinterpret_cast<Vector>(_mm512_rcp14_ps(reinterpret_cast<__m512>(x)));
    return about * multiply_add(-x, about, splat(2.0F));
}

inline Vector sigmoid_of(Vector x) {
    const Vector e = exponential_of(x < 0.0F ? x : -x);
    return (x < 0.0F ? e : splat(1.0F)) * reciprocal_of(1.0F + e);
}

/// x Φ(x). The complement of the error function: Abramowitz and Stegun, 7.1.26, within 1.5e-7.
inline Vector gelu_of(Vector x) {
    const Vector far = (x < 0.0F ? -x : x) * 0.70710678F;
    const Vector z = far > 16.0F ? splat(16.0F) : far;
    const Vector t = reciprocal_of(multiply_add(z, splat(0.3275911F), splat(1.0F)));
    constexpr float terms[] = {-1.453152027F, 1.421413741F, -0.284496736F, 0.254829592F};
    Vector p = splat(1.061405429F);
    for (const float term : terms) {
        p = multiply_add(t, p, splat(term));
    }
    const Vector half = 0.5F * (t * p) * exponential_of(-z * z);
    return x * (x < 0.0F ? half : 1.0F - half);
}

template <RowActivation A>
inline Vector activated(Vector x) {
    switch (A) {
    case RowActivation::gelu:
        return gelu_of(x);
    case RowActivation::gelu_tanh: // (1 + tanh u) / 2 is the sigmoid of 2u
        return x * sigmoid_of(1.59576912F * multiply_add(x * x * x, splat(0.044715F), x));
    case RowActivation::relu:
        return x < 0.0F ? Vector{} : x;
    case RowActivation::silu:
        return x * sigmoid_of(x);
    case RowActivation::sigmoid:
        return sigmoid_of(x);
    case RowActivation::tanh:
        return multiply_add(splat(2.0F), sigmoid_of(2.0F * x), splat(-1.0F));
    default:
        return x;
    }
}

inline Vector widened(__mmask16 some, const std::uint16_t* from) {
    return reinterpret_cast<Vector>(
        _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(some, from)), 16));
}

template <RowActivation A>
void close_rows_of(const float* tile, std::ptrdiff_t tile_stride, std::int64_t rows, std::int64_t columns,
                   const std::uint16_t* bias, const std::uint16_t* other, bool multiply,
                   std::ptrdiff_t stride, std::uint16_t* out) {
    for (std::int64_t i = 0; i < columns; i += lane_count) {
        const std::int64_t here = columns - i < lane_count ? columns - i : lane_count;
        const auto some = static_cast<__mmask16>((1U << here) - 1);
        const Vector offset = bias != nullptr ? widened(some, bias + i) : Vector{};
        for (std::int64_t r = 0; r < rows; ++r) {
            Vector x = activated<A>(
                reinterpret_cast<Vector>(_mm512_maskz_loadu_ps(some, tile + r * tile_stride + i)) + offset);
            if (other != nullptr) {
                const Vector y = widened(some, other + r * stride + i);
                x = multiply ? x * y : x + y;
            }
            _mm256_mask_storeu_epi16(
                out + r * stride + i, some,
                reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(reinterpret_cast<__m512>(x))));
        }
    }
}

template <RowActivation... A>
void close_rows_with(const float* tile, std::ptrdiff_t tile_stride, std::int64_t rows, std::int64_t columns,
                     const std::uint16_t* bias, RowActivation activation, const std::uint16_t* other,
                     bool multiply, std::ptrdiff_t stride, std::uint16_t* out) {
    ((activation == A ? close_rows_of<A>(tile, tile_stride, rows, columns, bias, other, multiply, stride, out)
                      : void()),
     ...);
}

/// To bfloat16, in the upper half of 32 bits. Not for infinities.
inline Bits rounded(Vector x) {
    return (reinterpret_cast<Bits>(x) + 0x8000U) & 0xffff0000U;
}

void round_columns_all(const float* tile, std::int64_t rows, int vectors, std::int64_t stride,
                       std::uint32_t* out) {
    for (int v = 0; v < vectors; ++v) {
        const auto row = [&](std::int64_t r) {
            return r < rows ? rounded(vectors_at(tile)[r * vectors + v]) : Bits{};
        };
        for (std::int64_t first = 0; first < rows; first += 2 * lane_count) {
            __m512i pairs[lane_count];
            for (int pair = 0; pair < lane_count; ++pair) {
                pairs[pair] =
                    reinterpret_cast<__m512i>(row(first + 2 * pair) >> 16 | row(first + 2 * pair + 1));
            }
            transpose(pairs);
            const std::int64_t at = v * lane_count * stride + first / 2;
            for (int lane = 0; lane < lane_count; ++lane) {
                _mm512_storeu_si512(out + at + lane * stride, pairs[lane]);
            }
        }
    }
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
    set.product_bf16 =
        Widths<product_of<1, Bf16Block>, product_of<2, Bf16Block>, product_of<3, Bf16Block>>::any;
    set.pair_rows = pair_rows_all;
    set.split_columns = split_columns_all;
    set.round_columns = round_columns_all;
    set.pair_columns = pair_columns_all;
    set.close_rows = close_rows_with<RowActivation::none, RowActivation::gelu, RowActivation::gelu_tanh,
                                     RowActivation::relu, RowActivation::silu, RowActivation::sigmoid,
                                     RowActivation::tanh>;
    return set;
}

} // namespace
} // namespace ponderscope::kernels
