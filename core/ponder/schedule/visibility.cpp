// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/schedule/visibility.h"

#include <ATen/ATen.h>

#include <utility>

namespace ponderscope {

namespace {

/// For each token, the sum of \p counts [N] over earlier tokens of its sequence. \p sequence [N] is sorted.
at::Tensor before_in_sequence(const at::Tensor& counts, const at::Tensor& sequence) {
    const at::Tensor before = at::cumsum(counts, 0) - counts;
    // Find each sequence's first token on the device, without a copy to the host.
    const at::Tensor first = at::searchsorted(sequence, sequence);
    return before - before.index_select(0, first);
}

at::Tensor as_ranges(const std::vector<at::Tensor>& begins, const std::vector<at::Tensor>& ends) {
    std::vector<at::Tensor> columns;
    for (std::size_t i = 0; i < begins.size(); ++i) {
        columns.push_back(at::stack({begins[i], ends[i]}, 1));
    }
    return at::stack(columns, 1).to(at::kInt);
}

} // namespace

at::Tensor select_rows(const at::Tensor& tensor, const at::Tensor& rows) {
    return tensor.defined() && rows.defined() ? tensor.index_select(0, rows) : tensor;
}

StepRowPlanner::StepRowPlanner(VisibilityRule rule, RowSpace space, bool segment_each_step,
                               at::Tensor earlier_counts, bool skips, std::vector<std::int64_t> windows,
                               at::Tensor seen)
    : rule_(rule),
      space_(std::move(space)),
      segment_each_step_(segment_each_step),
      skips_(skips),
      earlier_counts_(std::move(earlier_counts)),
      windows_(std::move(windows)),
      seen_(std::move(seen)) {
    TORCH_CHECK(rule != VisibilityRule::interleaved, "interleaved slots are not planned by step");
    TORCH_CHECK(rule != VisibilityRule::two_dimensional || segment_each_step,
                "two-dimensional visibility needs every step's rows");
}

StepRows StepRowPlanner::next(const at::Tensor& tokens) {
    const std::int64_t k = step_++;
    const at::Tensor sequence_row = select_rows(space_.sequence_row, tokens);
    if (rule_ == VisibilityRule::per_step && !skips_) {
        const at::Tensor begin = sequence_row + segment(k);
        const at::Tensor rows = begin + select_rows(space_.position, tokens);
        return {rows, as_ranges({begin}, {rows + 1})};
    }
    at::Tensor active = at::ones_like(space_.sequence);
    if (tokens.defined()) {
        active = at::zeros_like(space_.sequence).index_fill_(0, tokens, 1);
    }
    at::Tensor before = before_in_sequence(active, space_.sequence);
    if (earlier_counts_.defined()) {
        before = before + earlier_counts_.select(0, k).index_select(0, space_.sequence);
    }
    if (skips_) {
        const at::Tensor begin = sequence_row + segment(k);
        const at::Tensor rows = begin + select_rows(before, tokens);
        StepRows result{rows, as_ranges({begin}, {rows + 1})};
        if (seen_.defined()) {
            const at::Tensor seen = seen_.select(0, segment_each_step_ ? k : 0);
            seen.index_copy_(0, space_.sequence_row + space_.position, before + active);
            for (const std::int64_t window : windows_) {
                const at::Tensor last =
                    select_rows(space_.position, tokens) - window; // last position outside of the window
                const at::Tensor outside = seen.index_select(0, sequence_row + last.clamp_min(0));
                result.window_ranges.emplace_back(
                    window, as_ranges({begin + outside.masked_fill(last < 0, 0)}, {rows + 1}));
            }
        }
        return result;
    }
    visible_.push_back(before + active);
    std::vector<at::Tensor> begins;
    std::vector<at::Tensor> ends;
    for (std::int64_t j = 0; j <= k; ++j) {
        begins.push_back(sequence_row + segment(j));
        ends.push_back(begins.back() + select_rows(visible_[static_cast<std::size_t>(j)], tokens));
    }
    return {begins.back() + select_rows(before, tokens), as_ranges(begins, ends)};
}

void StepRowPlanner::skip_step(std::int64_t k) const {
    if (seen_.defined() && earlier_counts_.defined()) {
        seen_.select(0, segment_each_step_ ? k : 0)
            .index_copy_(0, space_.sequence_row + space_.position,
                         earlier_counts_.select(0, k).index_select(0, space_.sequence));
    }
}

InterleavedRows interleaved_rows(const at::Tensor& slots, const at::Tensor& sequence,
                                 std::optional<std::int64_t> rows_in_all) {
    const at::Tensor end = at::cumsum(slots, 0);
    const at::Tensor begin = end - slots;
    const at::Tensor tokens = at::repeat_interleave(slots, rows_in_all);
    const at::Tensor rows = at::arange(tokens.size(0), slots.options());
    const at::Tensor first = begin.index_select(0, at::searchsorted(sequence, sequence));
    return {tokens, rows - begin.index_select(0, tokens),
            as_ranges({first.index_select(0, tokens)}, {rows + 1})};
}

} // namespace ponderscope
