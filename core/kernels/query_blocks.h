// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernels/attend.h"

#include <utility>
#include <vector>

namespace ponderscope {

/// Neighbouring queries [begin, end) and all rows that any of these queries sees. A block is large enough for
/// efficient products, and small enough to compute little beyond the causal triangle.
struct QueryBlock {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::vector<std::pair<std::int64_t, std::int64_t>> pieces; ///< ranges of rows, ascending, without overlap
    std::int64_t rows = 0;                                     ///< number of these rows
    /// With one range for each query: the rows that all queries see. Empty: unknown.
    std::pair<std::int64_t, std::int64_t> common;

    /// The block at query \p begin. \p ranges: int64 [n, m, 2] on the host. \p heads: number of query heads.
    static QueryBlock at(std::int64_t begin, const at::Tensor& ranges, std::int64_t heads);

    [[nodiscard]] std::int64_t queries() const { return end - begin; }
    /// The block's rows of a tensor [R, ...], as [rows, ...].
    [[nodiscard]] at::Tensor rows_of(const at::Tensor& all, at::ScalarType type) const;
    /// The softmax [g, group * queries, rows] of the block's scores. \p asked: [g, group * queries, d_h],
    /// queries times the scale; \p keys: [g, rows, d_h]; \p ranges: as in at(), on the device of \p keys.
    [[nodiscard]] at::Tensor weights(const at::Tensor& asked, const at::Tensor& keys,
                                     const at::Tensor& ranges, const at::Tensor& row_bias,
                                     const ScoreExtras& extras) const;
};

/// attend for checked arguments on the CPU, without gradient. Multiplies blocks of queries with the rows that
/// they see, in fp32 (fp64 tensors: in fp64). at::parallel_for runs blocks on several threads.
at::Tensor attend_blocks(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                         const Visibility& visibility, double scale, const at::Tensor& row_bias,
                         const ScoreExtras& extras);

/// attend with a gradient, differentiable once in q, k, v and row_bias, on any device. The backward pass
/// computes the weights again, block by block, so no matrix [queries, rows] exists. On a GPU it copies the
/// ranges to the host once, to form the blocks.
at::Tensor attend_with_gradient(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                const Visibility& visibility, double scale, const at::Tensor& row_bias);

} // namespace ponderscope
