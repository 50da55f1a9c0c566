// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/attend.h"

#include <ATen/ATen.h>

#include <limits>

namespace ponderscope {

namespace {

using at::indexing::None;

/// bool [n, R]: which rows each query sees.
at::Tensor visibility_mask(const Visibility& visibility, std::int64_t queries, std::int64_t rows,
                           at::Device device) {
    const auto integers = at::TensorOptions().dtype(at::kLong).device(device);
    const auto row = at::arange(rows, integers).unsqueeze(0);
    if (!visibility.ranges.defined()) {
        auto mask = at::zeros({queries, rows}, integers.dtype(at::kBool));
        for (const auto& block : visibility.causal) {
            const auto end =
                (at::arange(block.length, integers) + (block.row_begin + block.past + 1)).unsqueeze(1);
            auto visible = row.lt(end).logical_and(row.ge(block.row_begin));
            if (visibility.window > 0) {
                visible = visible.logical_and(row.ge(end - visibility.window));
            }
            mask.narrow(0, block.query_begin, block.length).copy_(visible);
        }
        return mask;
    }
    const auto begin = visibility.ranges.select(2, 0).to(at::kLong);
    const auto end = visibility.ranges.select(2, 1).to(at::kLong);
    auto mask = at::zeros({queries, rows}, integers.dtype(at::kBool));
    // Rows that the ranges behind this one have already taken of the window.
    auto taken = at::zeros({queries}, integers);
    for (std::int64_t m = visibility.ranges.size(1) - 1; m >= 0; --m) {
        auto first = begin.select(1, m);
        const auto last = end.select(1, m);
        if (visibility.window > 0) {
            first = at::maximum(first, last - (visibility.window - taken).clamp_min(0));
            taken = taken + (last - first).clamp_min(0);
        }
        mask = mask.logical_or(row.ge(first.unsqueeze(1)).logical_and(row.lt(last.unsqueeze(1))));
    }
    return mask;
}

} // namespace

at::Tensor attend_reference(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const Visibility& visibility, double scale, const at::Tensor& row_bias) {
    const auto n = q.size(0);
    const auto query_heads = q.size(1);
    const auto kv_heads = k.size(1);
    const auto group = query_heads / kv_heads;
    const auto compute = q.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    // Heads lead: [n_q, n, d_h] against [n_q, R, d_h], the KV heads repeated.
    const auto queries = q.to(compute).transpose(0, 1);
    const auto keys = k.to(compute).transpose(0, 1).repeat_interleave(group, 0);
    const auto values = v.to(compute).transpose(0, 1).repeat_interleave(group, 0);
    auto scores = at::matmul(queries, keys.transpose(1, 2)) * scale;
    if (row_bias.defined()) {
        scores = scores + row_bias.to(compute);
    }
    const auto mask = visibility_mask(visibility, n, k.size(0), q.device());
    scores = scores.masked_fill(mask.logical_not().unsqueeze(0), -std::numeric_limits<double>::infinity());
    const auto mixed = at::matmul(at::softmax(scores, -1), values);
    return mixed.transpose(0, 1).contiguous().to(q.scalar_type());
}

} // namespace ponderscope
