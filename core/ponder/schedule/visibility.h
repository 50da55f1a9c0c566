// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernels/attend.h"
#include "core/ponder/choices/run_plan.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace ponderscope {

/// tensor[rows], or tensor itself if either is undefined.
at::Tensor select_rows(const at::Tensor& tensor, const at::Tensor& rows);

/// The K/V rows of a run's tokens. They form segments: one for each step, or one for all steps. A segment has
/// a row for each token of each sequence, in the order of tokens, and free rows for generated tokens. All
/// tensors are int64 [N], with an entry for each token of the run.
struct RowSpace {
    std::int64_t segment_rows = 0;
    at::Tensor sequence_row; ///< the segment's row at which the token's sequence begins
    at::Tensor sequence;     ///< number of the token's sequence; ascending
    at::Tensor position;     ///< position in the sequence, counting tokens of earlier runs
};

/// The rows of a step's slots, and the rows that their queries see.
struct StepRows {
    at::Tensor rows;   ///< int64 [n]
    at::Tensor ranges; ///< int32 [n, m, 2], as in Visibility::ranges
    /// Each sliding window with its ranges. Filled only for KvPolicy::skip.
    std::vector<std::pair<std::int64_t, at::Tensor>> window_ranges = {};
};

/// Assigns rows step by step for the rules that run all tokens of a step together: per_step and
/// two_dimensional. All data stays on the tensors' device.
///
/// per_step: a token's row in the step's segment is its position in the sequence. With one segment (segments
/// = 1), each step overwrites the rows of its active tokens. So a halted token keeps the row of its last
/// step. With a segment for each step, the rows of the previous step are copied first (KvRows::copy). A
/// generation needs this, because step k of a later token reads token t' at step min(k, K_t').
/// two_dimensional: segment k holds the active tokens of step k without gaps, and a query reads one range in
/// each of the k+1 segments.
class StepRowPlanner {
public:
    /// \p earlier_counts, int64 [steps, sequences]: the slots that earlier runs of a generation left in each
    /// segment; only for two_dimensional or \p skips; undefined: none. \p skips: KvPolicy::skip. A query sees
    /// only slots of its own step, whose rows are contiguous. \p windows and \p seen: needed if \p skips is
    /// true and layers have sliding windows, whose width is in tokens. \p seen, int64 [segments,
    /// segment_rows]: for each position of a sequence, how many slots the segment has up to it.
    StepRowPlanner(VisibilityRule rule, RowSpace space, bool segment_each_step,
                   at::Tensor earlier_counts = {}, bool skips = false, std::vector<std::int64_t> windows = {},
                   at::Tensor seen = {});

    /// The rows of the next step; the first call is for step 0. \p tokens: int64 [n], ascending, a subset of
    /// the previous step's tokens; undefined: all tokens.
    [[nodiscard]] StepRows next(const at::Tensor& tokens);
    /// Call it if no token of the run reached step \p k.
    void skip_step(std::int64_t k) const;
    /// First row of the segment of step \p k.
    [[nodiscard]] std::int64_t segment(std::int64_t k) const {
        return segment_each_step_ ? k * space_.segment_rows : 0;
    }

private:
    VisibilityRule rule_;
    RowSpace space_;
    bool segment_each_step_;
    bool skips_;
    at::Tensor earlier_counts_;
    std::vector<std::int64_t> windows_;
    at::Tensor seen_; ///< undefined: no windows
    std::int64_t step_ = 0;
    /// two_dimensional: an int64 [N] for each step. Entry t counts the step's slots in t's sequence up to t.
    std::vector<at::Tensor> visible_;
};

/// Rows and ranges of all slots of all tokens at once under the interleaved rule, ordered by token, then
/// step. \p slots: int64 [N], K_t + 1 for each token. The slots have consecutive rows. \p rows_in_all: the
/// number of rows; if absent, the function waits for the device to count them.
struct InterleavedRows {
    at::Tensor tokens; ///< int64 [n]: the slot's token
    at::Tensor steps;  ///< int64 [n]
    at::Tensor ranges; ///< int32 [n, 1, 2], in rows counted from the first slot's row
};
InterleavedRows interleaved_rows(const at::Tensor& slots, const at::Tensor& sequence,
                                 std::optional<std::int64_t> rows_in_all = {});

} // namespace ponderscope
