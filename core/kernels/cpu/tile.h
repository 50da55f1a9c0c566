// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>

namespace ponderscope::kernels {

/// The inner loops of attention on the CPU, compiled once for each instruction set and chosen at run time.
///
/// Each tile has one query in each column: row r of a tile belongs to row r of the keys or values, and has
/// `vectors * lanes` queries side by side. So a softmax runs down the rows with one query in each SIMD lane
/// and needs no horizontal operation; and the table is read in its memory order, because its elements are
/// broadcast.
///
/// Buffers of tiles and packed queries are 64-byte aligned. Sums over a tile start at 0.
struct TileKernels {
    const char* name; ///< "avx2", "baseline"
    int lanes;        ///< floats in a vector
    int max_vectors;  ///< vectors side by side in a full tile; any smaller number works too

    /// tile[r][j] = bias[r] + Σ_k table[r * row_stride + k] · queries[k][j]. bias may be null.
    void (*product)(const float* table, std::ptrdiff_t row_stride, std::int64_t rows, std::int64_t depth,
                    const float* queries, int vectors, float* tile, const float* bias);

    /// out[i][j] += Σ_r table[r * row_stride + i] · tile[r][j], for i in 0 .. depth-1.
    void (*mix)(const float* table, std::ptrdiff_t row_stride, std::int64_t rows, std::int64_t depth,
                const float* tile, int vectors, float* out);

    /// maximum[j] = max(maximum[j], tile[r][j]). NaN is larger than nothing.
    void (*scan)(const float* tile, std::int64_t rows, int vectors, float* maximum);

    /// e = exp(tile[r][j] - maximum[j]) takes the place of tile; sum[j] = Σ e.
    void (*exponentials)(float* tile, std::int64_t rows, int vectors, const float* maximum, float* sum);

    /// tile[r][j] = -infinity unless begin[j] <= first_row + r < end[j].
    void (*mask)(float* tile, std::int64_t rows, int vectors, std::int32_t first_row,
                 const std::int32_t* begin, const std::int32_t* end);

    /// out[i][j] *= factor[j].
    void (*rescale)(float* out, std::int64_t depth, int vectors, const float* factor);

    /// count elements to fp32.
    void (*widen_bf16)(const std::uint16_t* from, std::int64_t count, float* to);
    void (*widen_f16)(const std::uint16_t* from, std::int64_t count, float* to);

    /// Elementwise exp for tests of its error: at most 1.5 units in the last place on [-87, 0]; 0 below; NaN
    /// stays NaN.
    void (*exponential)(const float* from, std::int64_t count, float* to);
};

/// The best set that this processor runs.
const TileKernels& tile_kernels();
/// One by name, for tests and benchmarks; null when this processor or build has none of that name.
const TileKernels* tile_kernels(const char* name);

} // namespace ponderscope::kernels
