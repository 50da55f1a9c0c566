// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace ponderscope {

/// The K/V rows that each packed query sees. Either `causal` or `ranges` describes all queries.
struct Visibility {
    /// Queries [query_begin, query_begin + length) of one sequence. Query i of the block sees rows
    /// [row_begin, row_begin + past + i + 1).
    struct CausalBlock {
        std::int64_t query_begin = 0;
        std::int64_t length = 0;
        std::int64_t row_begin = 0;
        std::int64_t past = 0; ///< number of earlier rows of the sequence (cached decoding)
    };
    /// For purely causal queries. The host knows these numbers, so nothing is copied from the device.
    std::vector<CausalBlock> causal;
    /// General form: m half-open ranges [begin, end) of rows for each query, int32 [n, m, 2] on the queries'
    /// device. An empty range has begin == end. The ranges of one query do not overlap, and every query sees
    /// at least one row. Undefined if `causal` is used.
    at::Tensor ranges;
    /// int32 [S + 1] on the queries' device: queries and rows [runs[s], runs[s + 1]) are sequence s. Row i
    /// belongs to query i. Each query sees the rows of its sequence up to its own row; `ranges` describes
    /// the same rows. Defined if only the device knows the number of slots of each sequence.
    at::Tensor runs;
    std::int64_t longest_run = 0; ///< if `runs` is defined: the largest number of queries in a sequence
    std::int64_t most_rows = 0;   ///< with `ranges`: largest number of rows that a query sees; 0: unknown
    /// Sliding window: the largest number of keys that a query sees, including its own key. 0: all. With
    /// several ranges, the window covers the last rows of all ranges together.
    std::int64_t window = 0;
};

/// Extensions of the softmax for some model families. The defaults have no effect.
struct ScoreExtras {
    double softcap = 0.0; ///< c: scores become c·tanh(score / c), after the scale, before the bias; 0: none
    at::Tensor sinks; ///< [n_q]: an extra score for each query head, without a value vector; undefined: none

    [[nodiscard]] bool any() const { return softcap > 0 || sinks.defined(); }
};

/// The softmax of scores [n_q, n, rows] over their rows and the heads' sinks (ScoreExtras::sinks).
at::Tensor softmax_with_sinks(const at::Tensor& scores, const at::Tensor& sinks);

/// The rows that each query sees, as int64 [queries, m, 2] on \p device, with windows applied. Ranges with
/// begin >= end are empty.
at::Tensor visible_ranges(const Visibility& visibility, std::int64_t queries, at::Device device);

/// Softmax attention of packed queries over K/V rows. Query head h reads KV head h / (n_q / g).
///
/// q: [n, n_q, d_h]; k, v: [R, g, d_h]; all of one dtype and device, in any strides. row_bias: undefined, or
/// fp32 [R], added to the logits of a key row for every query and head (PonderLM-3's log w). scale multiplies
/// q·k. Softmax in fp32. Returns [n, n_q, d_h] in q's dtype. Rows that no query sees may have any content.
///
/// c10::Error if shapes do not fit. The first case that applies runs: (1) CPU without a gradient:
/// query_blocks.h; (2) ScoreExtras: attend_plain; (3) whole sequences without window and bias: LibTorch's
/// attention (on a GPU without a gradient, in half precision for one sequence or different lengths: its flash
/// attention); (4) a gradient: attend_with_gradient; (5) GPU: cuda/; (6) attend_plain.
at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Visibility& visibility,
                  double scale, const at::Tensor& row_bias = {}, const ScoreExtras& extras = {});

/// attend with an explicit mask and plain operations. Slow, differentiable: the reference implementation.
at::Tensor attend_plain(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                        const Visibility& visibility, double scale, const at::Tensor& row_bias = {},
                        const ScoreExtras& extras = {});

} // namespace ponderscope
