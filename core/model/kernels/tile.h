// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>

namespace ponderscope::kernels {

enum class RowActivation : std::uint8_t { none, gelu, gelu_tanh, relu, silu, sigmoid, tanh };

/// The inner loops of the output head and of attention on the CPU, compiled once for each instruction set and
/// chosen at run time.
///
/// All of them work on tiles that lie with one query a column: row r of a tile belongs to row r of the table
/// that the queries are multiplied with (a word of the vocabulary, a key), and `vectors * lanes` queries lie
/// beside each other in it. Every operation of a softmax then runs down the rows with one query a SIMD lane,
/// without a single horizontal step; and the table is read as it lies in memory, since its elements are
/// broadcast. A query's result is one fixed chain of additions: it does not depend on the other columns, on
/// their number, nor on where in the tile it stands, bit for bit.
///
/// Buffers of tiles and packed queries are 64-byte aligned. Sums over a tile start at 0: the caller adds
/// tiles up in double.
struct TileKernels {
    const char* name; ///< "avx512", "avx2", "baseline"
    int lanes;        ///< floats in a vector
    int max_vectors;  ///< vectors side by side in a full tile; any smaller number works too

    /// tile[r][j] = bias[r] + Σ_k table[r * row_stride + k] · queries[k][j]. bias may be null.
    void (*product)(const float* table, std::ptrdiff_t row_stride, std::int64_t rows, std::int64_t depth,
                    const float* queries, int vectors, float* tile, const float* bias);

    /// The same from bfloat16 with fp32 sums: a row holds `pairs` pairs of neighbouring elements (row_stride
    /// counts elements), queries [pairs][columns] of (2k, 2k+1). Null where the processor has no such
    /// instruction.
    void (*product_bf16)(const std::uint16_t* table, std::ptrdiff_t row_stride, std::int64_t rows,
                         std::int64_t pairs, const std::uint32_t* queries, int vectors, float* tile,
                         const float* bias);

    /// Operands of the matrix unit (core/model/matrix_unit.h); null with product_bf16. Rows in pairs:
    /// pairs[r / 2][i] holds (row r, row r + 1) of element i, 0 after the last row.
    void (*pair_rows)(const std::uint16_t* table, std::ptrdiff_t row_stride, std::int64_t rows,
                      std::int64_t depth, std::uint32_t* pairs);
    /// Columns of a tile as rows of bfloat16, in two parts whose sum is the element within 2^-17 of it:
    /// high[j * stride + r / 2] holds (r, r + 1), 0 after the last row up to a multiple of 32; stride is at
    /// least as long. Not for infinities.
    void (*split_columns)(const float* tile, std::int64_t rows, int vectors, std::int64_t stride,
                          std::uint32_t* high, std::uint32_t* low);

    /// The same in one part, rounded: within 2^-8.
    void (*round_columns)(const float* tile, std::int64_t rows, int vectors, std::int64_t stride,
                          std::uint32_t* out);
    /// Pairs down a column instead: out[k * stride + r] holds elements (2k, 2k + 1) of row r, for r in 0 ..
    /// stride-1, a multiple of the lanes, 0 after the last row.
    void (*pair_columns)(const std::uint16_t* table, std::ptrdiff_t row_stride, std::int64_t rows,
                         std::int64_t pairs, std::int64_t stride, std::uint32_t* out);
    /// A product's rows become bfloat16: out[r * stride + i] = activation(tile[r * tile_stride + i] +
    /// bias[i]), plus or times other[r * stride + i]; bias and other may be null, other may be out. Null with
    /// product_bf16, as pair_columns is.
    void (*close_rows)(const float* tile, std::ptrdiff_t tile_stride, std::int64_t rows, std::int64_t columns,
                       const std::uint16_t* bias, RowActivation activation, const std::uint16_t* other,
                       bool multiply, std::ptrdiff_t stride, std::uint16_t* out);

    /// out[i][j] += Σ_r table[r * row_stride + i] · tile[r][j], for i in 0 .. depth-1.
    void (*mix)(const float* table, std::ptrdiff_t row_stride, std::int64_t rows, std::int64_t depth,
                const float* tile, int vectors, float* out);

    /// maximum[j] = max(maximum[j], tile[r][j]); larger[j] += number of r with tile[r][j] > pivot[j] (both
    /// null: not counted). NaN is larger than nothing.
    void (*scan)(const float* tile, std::int64_t rows, int vectors, float* maximum, const float* pivot,
                 std::int32_t* larger);

    /// Puts elements larger than the last of a column's list into it: values [columns][length] in falling
    /// order, ids beside them. Rows arrive in rising order of id, so that of equals the lower id stays first.
    /// first_id: id of row 0.
    void (*keep_largest)(const float* tile, std::int64_t rows, int vectors, int columns,
                         std::int32_t first_id, std::int64_t length, float* values, std::int32_t* ids,
                         float* thresholds);

    /// e = exp((tile[r][j] - maximum[j]) · rate) takes the place of tile when `store`; sum[j] = Σ e;
    /// weighted[j] = Σ e · (tile - maximum), unless null.
    void (*exponentials)(float* tile, std::int64_t rows, int vectors, const float* maximum, float rate,
                         bool store, float* sum, float* weighted);

    /// For both Kullback–Leibler divergences of P = softmax of columns of p, Q likewise, with dp = p -
    /// p_maximum, dq = q - q_maximum: q_sum = Σ exp(dq), forward = Σ exp(dp) · (dp - dq), backward = Σ
    /// exp(dq) · (dq - dp); +infinity where a word is impossible (-infinity) in the other one alone.
    void (*divergence)(const float* p, const float* q, std::int64_t rows, int vectors, const float* p_maximum,
                       const float* q_maximum, float* q_sum, float* forward, float* backward);

    /// tile[r][j] = -infinity unless begin[j] <= first_row + r < end[j].
    void (*mask)(float* tile, std::int64_t rows, int vectors, std::int32_t first_row,
                 const std::int32_t* begin, const std::int32_t* end);

    /// out[j * stride + r] = tile[r][j].
    void (*columns)(const float* tile, std::int64_t rows, int vectors, std::int64_t stride, float* out);

    /// out[i][j] *= factor[j].
    void (*rescale)(float* out, std::int64_t depth, int vectors, const float* factor);

    /// out[i] += factor · row[i].
    void (*accumulate)(const float* row, std::int64_t count, float factor, float* out);

    // For a few rows, where a tile would be mostly empty; any alignment. An element is one fixed chain of
    // additions here, too, whatever lies beside it.
    /// out[j * out_stride + r] = bias[r] + scale · Σ_k table[r * row_stride + k] · x[j * x_stride + k], for j
    /// in 0 .. count-1, or added to what is there. bias may be null.
    void (*dots)(const float* table, std::ptrdiff_t row_stride, std::int64_t rows, std::int64_t depth,
                 const float* x, std::ptrdiff_t x_stride, std::int64_t count, float scale, const float* bias,
                 float* out, std::ptrdiff_t out_stride, bool add);
    /// out[i] = Σ_r table[r * row_stride + i] · weights[r], for i in 0 .. depth-1.
    void (*weigh)(const float* table, std::ptrdiff_t row_stride, std::int64_t rows, std::int64_t depth,
                  const float* weights, float* out);

    /// Rows of a matrix, for training, which needs whole rows of probabilities; any alignment.
    /// row becomes softmax(row · rate); returns log Σ exp(row · rate).
    float (*softmax_row)(float* row, std::int64_t count, float rate);
    /// gradient becomes that of the logits: p · (gradient - mean) · rate, mean = Σ p · gradient.
    void (*softmax_gradient_row)(const float* p, std::int64_t count, float mean, float rate, float* gradient);

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
