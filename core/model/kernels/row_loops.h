// SPDX-License-Identifier: GPL-3.0-or-later
// Loops for a few rows, where a tile of queries would be mostly empty: sums run along a row, in as many parts
// as a vector has lanes. Only for tile_loops.h, and with its rule: nothing but built-in types, of the
// standard library no function.
#pragma once

#include "core/model/kernels/tile_vectors.h"

#include <cstddef>
#include <cstdint>
#include <utility>

namespace ponderscope::kernels {
namespace {

#if defined(__AVX512F__)
constexpr int dot_rows = 8;
#else
constexpr int dot_rows = 4; // of 16 registers, with three rows of x
#endif
constexpr int dot_columns = 3;

/// The first `count` of a vector's elements, and zeros.
inline Vector load_first(const float* from, std::int64_t count) {
    Vector some{};
    for (std::int64_t i = 0; i < count; ++i) {
        some[i] = from[i];
    }
    return some;
}

template <int Places, std::size_t... I>
inline Vector turned(Vector parts, std::index_sequence<I...>) {
    return __builtin_shufflevector(parts, parts, ((I + Places) % lane_count)...);
}

/// Halves are added to each other until one element is left.
template <int Half = lane_count / 2>
inline float sum_of(Vector parts) {
    if constexpr (Half == 0) {
        return parts[0];
    } else {
        return sum_of<Half / 2>(parts + turned<Half>(parts, std::make_index_sequence<lane_count>()));
    }
}

template <int R, int N>
inline void dot_block(const float* table, std::ptrdiff_t stride, std::int64_t depth, const float* x,
                      std::ptrdiff_t x_stride, float scale, const float* bias, float* out,
                      std::ptrdiff_t out_stride, bool add) {
    Vector sum[R][N] = {};
    const auto step = [&](std::int64_t k, auto&& loaded) __attribute__((always_inline)) {
        Vector some[N];
#pragma GCC unroll 8
        for (int j = 0; j < N; ++j) {
            some[j] = loaded(x + j * x_stride + k);
        }
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
            const Vector row = loaded(table + r * stride + k);
#pragma GCC unroll 8
            for (int j = 0; j < N; ++j) {
                sum[r][j] = multiply_add(row, some[j], sum[r][j]);
            }
        }
    };
    std::int64_t k = 0;
#pragma GCC unroll 1
    for (; k + lane_count <= depth; k += lane_count) {
        step(
            k, [](const float* from) __attribute__((always_inline)) { return load(from); });
    }
    if (k < depth) {
        step(k, [&](const float* from) { return load_first(from, depth - k); });
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
        for (int j = 0; j < N; ++j) {
            float& target = out[j * out_stride + r];
            const float one = multiply_add(sum_of(sum[r][j]), scale, bias != nullptr ? bias[r] : 0.0F);
            target = add ? target + one : one;
        }
    }
}

template <int N>
void dots_of(const float* table, std::ptrdiff_t stride, std::int64_t rows, std::int64_t depth, const float* x,
             std::ptrdiff_t x_stride, float scale, const float* bias, float* out, std::ptrdiff_t out_stride,
             bool add) {
    std::int64_t r = 0;
    for (; r + dot_rows <= rows; r += dot_rows) {
        dot_block<dot_rows, N>(table + r * stride, stride, depth, x, x_stride, scale,
                               bias != nullptr ? bias + r : nullptr, out + r, out_stride, add);
    }
    for (; r < rows; ++r) {
        dot_block<1, N>(table + r * stride, stride, depth, x, x_stride, scale,
                        bias != nullptr ? bias + r : nullptr, out + r, out_stride, add);
    }
}

void dots_all(const float* table, std::ptrdiff_t stride, std::int64_t rows, std::int64_t depth,
              const float* x, std::ptrdiff_t x_stride, std::int64_t count, float scale, const float* bias,
              float* out, std::ptrdiff_t out_stride, bool add) {
    // So many rows of the table that they stay in the cache while all of x passes by.
    const std::int64_t near = depth < 4096 ? 32768 / depth / dot_rows * dot_rows : dot_rows;
    for (std::int64_t r = 0; r < rows; r += near) {
        const std::int64_t here = rows - r < near ? rows - r : near;
        const float* part = table + r * stride;
        const float* offsets = bias != nullptr ? bias + r : nullptr;
        std::int64_t j = 0;
        for (; j + dot_columns <= count; j += dot_columns) {
            dots_of<dot_columns>(part, stride, here, depth, x + j * x_stride, x_stride, scale, offsets,
                                 out + j * out_stride + r, out_stride, add);
        }
        for (; j < count; ++j) {
            dots_of<1>(part, stride, here, depth, x + j * x_stride, x_stride, scale, offsets,
                       out + j * out_stride + r, out_stride, add);
        }
    }
}

/// V vectors of the depth at once.
template <int V>
inline void weigh_block(const float* table, std::ptrdiff_t stride, std::int64_t rows, const float* weights,
                        float* out) {
    Vector sum[V] = {};
#pragma GCC unroll 1
    for (std::int64_t r = 0; r < rows; ++r) {
#pragma GCC unroll 8
        for (int v = 0; v < V; ++v) {
            sum[v] = multiply_add(load(table + r * stride + v * lane_count), splat(weights[r]), sum[v]);
        }
    }
    for (int v = 0; v < V; ++v) {
        store(out + v * lane_count, sum[v]);
    }
}

void weigh_all(const float* table, std::ptrdiff_t stride, std::int64_t rows, std::int64_t depth,
               const float* weights, float* out) {
    std::int64_t i = 0;
    for (; i + 4 * lane_count <= depth; i += 4 * lane_count) {
        weigh_block<4>(table + i, stride, rows, weights, out + i);
    }
    for (; i + lane_count <= depth; i += lane_count) {
        weigh_block<1>(table + i, stride, rows, weights, out + i);
    }
    for (; i < depth; ++i) {
        float sum = 0;
        for (std::int64_t r = 0; r < rows; ++r) {
            sum = multiply_add(table[r * stride + i], weights[r], sum);
        }
        out[i] = sum;
    }
}

} // namespace
} // namespace ponderscope::kernels
