// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/device.h"
#include "core/ponder/recording/part_recorders.h"
#include "core/ponder/schedule/visibility.h"
#include "core/trace/records.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace ponderscope {

namespace {

/// Queries whose weights are in memory together.
constexpr std::int64_t queries_at_once = 64;

class AttentionRecorder final : public PartRecorder {
public:
    AttentionRecorder(AttentionChoice choice, at::Tensor values, at::Tensor place)
        : choice_(std::move(choice)),
          values_(std::move(values)),
          longest_(values_.size(-1)),
          key_steps_(values_.dim() > 5 ? values_.size(4) : 1),
          heads_(send(choice_.heads, values_.device())),
          place_(std::move(place)) {}

    [[nodiscard]] bool wants(std::string_view name) const override { return name == signal::attention; }

    void attends(const Attending& attending) override {
        const auto found = std::find(choice_.layers.begin(), choice_.layers.end(), attending.layer);
        if (found == choice_.layers.end()) {
            return;
        }
        const std::int64_t n = attending.query.size(0);
        const auto integers = at::TensorOptions(at::kLong).device(attending.query.device());
        at::Tensor tokens = attending.tokens.defined() ? attending.tokens : at::arange(n, integers);
        learn_rows(attending, tokens);
        at::Tensor slots = at::arange(n, integers);
        if (place_.defined()) {
            slots = at::nonzero(place_.index_select(0, tokens) >= 0).view(-1);
        }
        const at::Tensor ranges =
            visible_ranges(attending.visibility, n, integers.device()).index_select(0, slots);
        tokens = tokens.index_select(0, slots);
        const at::Tensor steps = attending.steps.defined() ? attending.steps.index_select(0, slots)
                                                           : at::full_like(slots, attending.step);
        const at::Tensor where =
            (place_.defined() ? place_.index_select(0, tokens) : tokens) * values_.size(1) + steps;
        at::Tensor target = values_.view({-1, values_.size(2), values_.size(3), key_steps_ * longest_})
                                .select(1, found - choice_.layers.begin());
        for (std::int64_t first = 0; first < slots.size(0); first += queries_at_once) {
            const std::int64_t count = std::min(queries_at_once, slots.size(0) - first);
            const at::Tensor some = weights(attending, slots.narrow(0, first, count),
                                            ranges.narrow(0, first, count), tokens.narrow(0, first, count));
            target.index_copy_(0, where.narrow(0, first, count), some.to(at::kHalf));
        }
    }

private:
    /// Stores the token and step of each K/V row. Rows of halted tokens keep theirs from earlier passes.
    void learn_rows(const Attending& attending, const at::Tensor& tokens) {
        const at::Tensor steps =
            attending.steps.defined() ? attending.steps : at::full_like(tokens, attending.step);
        if (!attending.rows.defined()) {
            row_token_ = tokens;
            row_step_ = steps;
            return;
        }
        const std::int64_t rows = attending.keys.size(0);
        if (!row_token_.defined() || row_token_.size(0) != rows) {
            row_token_ = at::zeros({rows}, tokens.options());
            row_step_ = at::zeros({rows}, tokens.options());
        }
        row_token_ = row_token_.index_copy(0, attending.rows, tokens);
        row_step_ = row_step_.index_copy(0, attending.rows, steps);
    }

    /// Attention weights of b queries, [b, heads, key_steps * back].
    [[nodiscard]] at::Tensor weights(const Attending& attending, const at::Tensor& queries,
                                     const at::Tensor& ranges, const at::Tensor& tokens) const {
        // For each range: the rows that at least one query sees, and a mask of the rows that each query sees.
        const at::Tensor begin = ranges.select(2, 0);
        const at::Tensor end = ranges.select(2, 1);
        const at::Tensor none = begin.ge(end);
        const at::Tensor hull =
            at::stack({begin.masked_fill(none, std::numeric_limits<std::int64_t>::max()).amin(0),
                       end.masked_fill(none, 0).amax(0)},
                      1)
                .to(at::kCPU);
        std::vector<at::Tensor> rows;
        std::vector<at::Tensor> seen;
        for (std::int64_t m = 0; m < ranges.size(1); ++m) {
            const auto first = hull[m][0].item<std::int64_t>();
            const auto last = hull[m][1].item<std::int64_t>();
            if (first < last) {
                rows.push_back(at::arange(first, last, tokens.options()));
                seen.push_back(
                    rows.back().ge(begin.narrow(1, m, 1)).logical_and(rows.back().lt(end.narrow(1, m, 1))));
            }
        }
        const at::Tensor keys = at::cat(rows);
        const std::int64_t group = attending.query.size(1) / attending.keys.size(1);
        // [heads, b, d_h] times [heads, d_h, rows].
        const at::Tensor query =
            attending.query.index_select(0, queries).index_select(1, heads_).to(at::kFloat).transpose(0, 1);
        const at::Tensor key = attending.keys.index_select(0, keys)
                                   .index_select(1, heads_.floor_divide(group))
                                   .to(at::kFloat)
                                   .permute({1, 2, 0});
        at::Tensor scores = at::matmul(query, key) * attending.scale;
        if (attending.extras.softcap > 0) {
            scores = at::tanh(scores / attending.extras.softcap) * attending.extras.softcap;
        }
        if (attending.row_bias.defined()) {
            scores = scores + attending.row_bias.index_select(0, keys).to(at::kFloat);
        }
        scores.masked_fill_(at::cat(seen, 1).logical_not(), -std::numeric_limits<float>::infinity());
        const at::Tensor& sinks = attending.extras.sinks;
        const at::Tensor shares =
            softmax_with_sinks(scores, sinks.defined() ? sinks.index_select(0, heads_) : sinks);
        const at::Tensor back =
            (tokens.unsqueeze(1) - row_token_.index_select(0, keys)).clamp(0, longest_ - 1);
        const at::Tensor column =
            key_steps_ > 1 ? back + row_step_.index_select(0, keys) * longest_ : back; // [b, rows]
        // Rows that a query does not see have weight 0, so their column does not matter.
        return at::zeros({shares.size(0), shares.size(1), key_steps_ * longest_}, shares.options())
            .scatter_add_(2, column.unsqueeze(0).expand_as(shares), shares)
            .transpose(0, 1);
    }

    AttentionChoice choice_;
    at::Tensor values_;               ///< [M, step, layer, head, (key step,) back]
    std::int64_t longest_;            ///< tokens of the longest sequence
    std::int64_t key_steps_;          ///< K + 1; with per-step visibility 1
    at::Tensor heads_;                ///< int64 [heads]
    at::Tensor place_;                ///< ReportedTokens::place
    at::Tensor row_token_, row_step_; ///< int64 [R]: token and step of each K/V row
};

} // namespace

std::unique_ptr<PartRecorder> attention_recorder(const AttentionChoice& choice, const at::Tensor& values,
                                                 const at::Tensor& place) {
    return std::make_unique<AttentionRecorder>(choice, values, place);
}

} // namespace ponderscope
