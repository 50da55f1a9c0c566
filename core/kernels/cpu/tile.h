// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>

namespace ponderscope::kernels {

/// The inner loops of attention on the CPU, compiled once for each instruction set and chosen at run time.
///
/// In a tile, each column is a query, and row r belongs to row r of the keys or values. A tile has `vectors *
/// lanes` queries. So the softmax runs down the rows with one query in each SIMD lane and needs no horizontal
/// operation. The kernels broadcast the elements of the table, so they read it in memory order.
///
/// Buffers of tiles and packed queries are 64-byte aligned. Sums over a tile start at 0.
struct TileKernels {
    const char* name; ///< "avx2", "baseline"
    int lanes;        ///< floats in a vector
    int max_vectors;  ///< vectors in a full tile; kernels take any smaller number too

    /// tile[r][j] = bias[r] + Σ_k table[r * row_stride + k] · queries[k][j]. bias may be null.
    void (*product)(const float* table, std::ptrdiff_t row_stride, std::int64_t rows, std::int64_t depth,
                    const float* queries, int vectors, float* tile, const float* bias);

    /// out[i][j] += Σ_r table[r * row_stride + i] · tile[r][j], for i in 0 .. depth-1.
    void (*mix)(const float* table, std::ptrdiff_t row_stride, std::int64_t rows, std::int64_t depth,
                const float* tile, int vectors, float* out);

    /// maximum[j] = max(maximum[j], tile[r][j]). A NaN never replaces the maximum.
    void (*scan)(const float* tile, std::int64_t rows, int vectors, float* maximum);

    /// tile[r][j] becomes e = exp(tile[r][j] - maximum[j]); sum[j] = Σ e.
    void (*exponentials)(float* tile, std::int64_t rows, int vectors, const float* maximum, float* sum);

    /// tile[r][j] = -infinity unless begin[j] <= first_row + r < end[j].
    void (*mask)(float* tile, std::int64_t rows, int vectors, std::int32_t first_row,
                 const std::int32_t* begin, const std::int32_t* end);

    /// out[i][j] *= factor[j].
    void (*rescale)(float* out, std::int64_t depth, int vectors, const float* factor);

    /// Converts count elements to fp32.
    void (*widen_bf16)(const std::uint16_t* from, std::int64_t count, float* to);
    void (*widen_f16)(const std::uint16_t* from, std::int64_t count, float* to);

    /// Elementwise exp, exposed for tests: error at most 1.5 units in the last place on [-87, 0]; 0 below;
    /// NaN stays NaN.
    void (*exponential)(const float* from, std::int64_t count, float* to);
};

/// The fastest kernels that this processor runs.
const TileKernels& tile_kernels();
/// The kernels with this name, for tests and benchmarks; null if this processor or build has none.
const TileKernels* tile_kernels(const char* name);

} // namespace ponderscope::kernels
