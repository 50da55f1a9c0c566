// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace ponderscope {

/// Which K/V rows each packed query sees: a few half-open ranges of rows (design: attention takes ranges, not
/// masks). Exactly one of the two forms describes all queries.
struct Visibility {
    /// Queries [query_begin, query_begin + length) of one sequence; query i of them sees rows [row_begin,
    /// row_begin + past + i + 1).
    struct CausalBlock {
        std::int64_t query_begin = 0;
        std::int64_t length = 0;
        std::int64_t row_begin = 0;
        std::int64_t past = 0; ///< rows of the sequence before the first query's own (cached decoding)
    };
    /// Plainly causal packing, known on the host: nothing is read back from a device.
    std::vector<CausalBlock> causal;
    /// General form, int32 [n, m, 2] (begin, end) on the queries' device; an empty range has begin == end;
    /// ranges of one query do not overlap; every query sees at least one row. Undefined when `causal` is
    /// used.
    at::Tensor ranges;
    /// Beside equivalent ranges, if only the device knows how many slots a sequence has; undefined elsewhere.
    /// int32 [S + 1] on the queries' device: queries and rows [runs[s], runs[s + 1]) are one sequence, row i
    /// belongs to query i, and each query sees its sequence up to row i.
    at::Tensor runs;
    std::int64_t longest_run = 0; ///< with runs: no sequence has more queries
    std::int64_t most_rows = 0;   ///< with ranges: no query sees more; 0: not known
    /// Keys a query sees at most, its own included (sliding window); 0 = all. Applied to the form that is
    /// used: of several ranges, the last `window` rows in all, counted back from the end of the last range.
    std::int64_t window = 0;
};

/// What some families add to the softmax of the scores. The defaults add nothing.
struct ScoreExtras {
    double softcap =
        0.0;          ///< c: a score s becomes c·tanh(s / c), after the scale, before bias and mask; 0: none
    at::Tensor sinks; ///< [n_q]: one more score of each query head, which carries no value; undefined: none

    [[nodiscard]] bool any() const { return softcap > 0 || sinks.defined(); }
};

/// The rows that each of \p queries queries sees as int64 [queries, m, 2] on \p device, windows applied:
/// ranges with begin >= end are empty.
at::Tensor visible_ranges(const Visibility& visibility, std::int64_t queries, at::Device device);

/// Softmax attention of packed queries over K/V rows, with grouped KV heads: query head h reads KV head
/// h / (n_q / g).
///
/// q: [n, n_q, d_h]; k, v: [R, g, d_h]; all of one dtype and device, in any strides. row_bias: undefined, or
/// fp32 [R], added to the logits of a key row for every query and head (PonderLM-3's log w). scale multiplies
/// q·k. Softmax in fp32. Returns [n, n_q, d_h] in q's dtype. Rows that no query sees may hold anything.
///
/// Implementations, chosen here: on the CPU our blocked one (attend_cpu.h); on a GPU the library's attention
/// for whole sequences in fp32 or of one length, its flash attention in half precision for other causal
/// blocks and runs, and ours (cuda/) for everything else; with a gradient, the library's kernel where it fits
/// and else attend_gradient.h. Elsewhere, and on a GPU with extras, attend_plain, some queries at a time.
/// c10::Error when shapes do not fit.
at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Visibility& visibility,
                  double scale, const at::Tensor& row_bias = {}, const ScoreExtras& extras = {});

/// The same through an explicit mask and plain tensor operations: slow, differentiable, the reference of the
/// others.
at::Tensor attend_plain(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                        const Visibility& visibility, double scale, const at::Tensor& row_bias = {},
                        const ScoreExtras& extras = {});

} // namespace ponderscope
