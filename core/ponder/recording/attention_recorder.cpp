// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/recording/attention_recorder.h"

#include "core/model/device.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace ponderscope {

namespace {

/// Queries whose weights are there at once.
constexpr std::int64_t queries_at_once = 64;

} // namespace

AttentionForm::AttentionForm(const AttentionChoice& choice, VisibilityRule rule, std::int64_t max_steps)
    : steps(max_steps + 1),
      layers(static_cast<std::int64_t>(choice.layers.size())),
      heads(static_cast<std::int64_t>(choice.heads.size())),
      key_steps(rule == VisibilityRule::per_step ? 1 : max_steps + 1) {}

SignalInfo AttentionForm::info(const AttentionChoice& choice) const {
    SignalInfo info{signal::attention,
                    {"token", "step", "layer", "head"},
                    "weight",
                    "Sequence attention",
                    "Weight of the key so many tokens back in the attention of each slot, of " +
                        choice.text() + " in that order; 0 where there is no such slot.",
                    DType::f16, SignalStorage::trimmed};
    if (key_steps > 1) {
        info.axes.emplace_back("key_step");
    }
    info.axes.emplace_back("back");
    return info;
}

AttentionRecorder::AttentionRecorder(AttentionChoice choice, const AttentionForm& form, std::int64_t tokens,
                                     const at::Tensor& reported, std::int64_t longest, at::Device device)
    : choice_(std::move(choice)), form_(form), longest_(longest) {
    const auto integers = at::TensorOptions(at::kLong).device(device);
    heads_ = send(choice_.heads, device);
    std::int64_t count = tokens;
    if (reported.defined()) {
        count = reported.size(0);
        place_ = at::full({tokens}, -1, integers).index_copy_(0, reported, at::arange(count, integers));
    }
    std::vector<std::int64_t> shape{count, form.steps, form.layers, form.heads};
    if (form.key_steps > 1) {
        shape.push_back(form.key_steps);
    }
    shape.push_back(longest);
    values_ = at::zeros(shape, integers.dtype(at::kHalf));
}

/// Rows keep what a halted token left in them, so that what is known of them lives on from pass to pass.
void AttentionRecorder::learn_rows(const Attending& attending, const at::Tensor& tokens) {
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

at::Tensor AttentionRecorder::weights(const Attending& attending, const at::Tensor& queries,
                                      const at::Tensor& ranges, const at::Tensor& tokens) const {
    // The rows that one of these queries sees, range by range, and which of them each query sees.
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
    // [heads, b, d_h] against [heads, d_h, rows].
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
    at::Tensor shares;
    if (attending.extras.sinks.defined()) {
        const at::Tensor sinks =
            attending.extras.sinks.index_select(0, heads_).to(at::kFloat).view({-1, 1, 1});
        shares = at::softmax(at::cat({scores, sinks.expand({-1, scores.size(1), 1})}, -1), -1)
                     .narrow(2, 0, scores.size(2));
    } else {
        shares = at::softmax(scores, -1);
    }
    const at::Tensor back = (tokens.unsqueeze(1) - row_token_.index_select(0, keys)).clamp(0, longest_ - 1);
    const at::Tensor column =
        form_.key_steps > 1 ? back + row_step_.index_select(0, keys) * longest_ : back; // [b, rows]
    // What a query does not see has the weight 0, wherever it is added.
    return at::zeros({shares.size(0), shares.size(1), form_.key_steps * longest_}, shares.options())
        .scatter_add_(2, column.unsqueeze(0).expand_as(shares), shares)
        .transpose(0, 1);
}

void AttentionRecorder::attends(const Attending& attending) {
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
        (place_.defined() ? place_.index_select(0, tokens) : tokens) * form_.steps + steps;
    at::Tensor target = values_.view({-1, form_.layers, form_.heads, form_.key_steps * longest_})
                            .select(1, found - choice_.layers.begin());
    for (std::int64_t first = 0; first < slots.size(0); first += queries_at_once) {
        const std::int64_t count = std::min(queries_at_once, slots.size(0) - first);
        const at::Tensor some = weights(attending, slots.narrow(0, first, count),
                                        ranges.narrow(0, first, count), tokens.narrow(0, first, count));
        target.index_copy_(0, where.narrow(0, first, count), some.to(at::kHalf));
    }
}

} // namespace ponderscope
