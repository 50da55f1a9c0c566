// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/attend.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace ponderscope {

namespace {

/// bool [n, R]: true if the query sees the row.
at::Tensor visibility_mask(const Visibility& visibility, std::int64_t queries, std::int64_t rows,
                           at::Device device) {
    const auto ranges = visible_ranges(visibility, queries, device);
    const auto row = at::arange(rows, ranges.options()).view({1, 1, rows});
    return row.ge(ranges.narrow(2, 0, 1)).logical_and(row.lt(ranges.narrow(2, 1, 1))).any(1);
}

} // namespace

at::Tensor softmax_with_sinks(const at::Tensor& scores, const at::Tensor& sinks) {
    if (!sinks.defined()) {
        return at::softmax(scores, -1);
    }
    const auto extra = sinks.to(scores.scalar_type()).view({-1, 1, 1}).expand({-1, scores.size(1), 1});
    return at::softmax(at::cat({scores, extra}, -1), -1).narrow(2, 0, scores.size(2));
}

at::Tensor visible_ranges(const Visibility& visibility, std::int64_t queries, at::Device device) {
    if (!visibility.ranges.defined()) {
        auto ranges =
            at::empty({queries, 1, 2}, at::TensorOptions(at::kLong).pinned_memory(!device.is_cpu()));
        auto* numbers = ranges.mutable_data_ptr<std::int64_t>();
        for (const auto& block : visibility.causal) {
            for (std::int64_t i = 0; i < block.length; ++i) {
                const std::int64_t end = block.row_begin + block.past + i + 1;
                std::int64_t* range = numbers + 2 * (block.query_begin + i);
                range[0] = visibility.window > 0 ? std::max(block.row_begin, end - visibility.window)
                                                 : block.row_begin;
                range[1] = end;
            }
        }
        return ranges.to(device, at::kLong, /*non_blocking=*/true);
    }
    const auto ranges = visibility.ranges.to(at::kLong);
    if (visibility.window == 0) {
        return ranges;
    }
    // The part of the window that later ranges have used.
    auto taken = at::zeros({queries}, ranges.options());
    std::vector<at::Tensor> trimmed;
    for (std::int64_t m = ranges.size(1) - 1; m >= 0; --m) {
        const auto last = ranges.select(1, m).select(1, 1);
        const auto first =
            at::maximum(ranges.select(1, m).select(1, 0), last - (visibility.window - taken).clamp_min(0));
        taken = taken + (last - first).clamp_min(0);
        trimmed.insert(trimmed.begin(), at::stack({first, last}, 1));
    }
    return at::stack(trimmed, 1);
}

namespace {

/// Attention of some queries. \p mask: [these queries, rows].
at::Tensor attend_some(const at::Tensor& q, const at::Tensor& keys, const at::Tensor& values,
                       const at::Tensor& mask, double scale, const at::Tensor& row_bias,
                       const ScoreExtras& extras) {
    auto scores = at::matmul(q.to(keys.scalar_type()).transpose(0, 1), keys.transpose(1, 2)) * scale;
    if (extras.softcap > 0) {
        scores = at::tanh(scores / extras.softcap) * extras.softcap;
    }
    if (row_bias.defined()) {
        scores = scores + row_bias.to(keys.scalar_type());
    }
    scores = scores.masked_fill(mask.logical_not().unsqueeze(0), -std::numeric_limits<double>::infinity());
    return at::matmul(softmax_with_sinks(scores, extras.sinks), values).transpose(0, 1);
}

} // namespace

at::Tensor attend_plain(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                        const Visibility& visibility, double scale, const at::Tensor& row_bias,
                        const ScoreExtras& extras) {
    constexpr std::int64_t most_scores = std::int64_t{1} << 28; // in memory at once
    const auto n = q.size(0);
    const auto group = q.size(1) / k.size(1);
    const auto compute = q.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    // Put heads first and repeat the KV heads: [n_q, n, d_h] and [n_q, R, d_h].
    const auto keys = k.to(compute).transpose(0, 1).repeat_interleave(group, 0);
    const auto mask = visibility_mask(visibility, n, k.size(0), q.device());
    // Zero the values of unseen rows. Free rows of a cache may contain NaN, and 0 times NaN is NaN.
    const auto free = mask.any(0).logical_not().view({-1, 1, 1});
    const auto values = v.to(compute).masked_fill(free, 0).transpose(0, 1).repeat_interleave(group, 0);
    const std::int64_t some =
        std::max<std::int64_t>(1, most_scores / std::max<std::int64_t>(1, q.size(1) * k.size(0)));
    std::vector<at::Tensor> parts;
    for (std::int64_t begin = 0; begin < std::max<std::int64_t>(n, 1); begin += some) {
        const std::int64_t count = std::min(some, n - begin);
        parts.push_back(attend_some(q.narrow(0, begin, count), keys, values, mask.narrow(0, begin, count),
                                    scale, row_bias, extras));
    }
    return (parts.size() == 1 ? parts.front() : at::cat(parts)).contiguous().to(q.scalar_type());
}

} // namespace ponderscope
