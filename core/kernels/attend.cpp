// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/attend.h"

#include "core/kernels/cuda_library.h"
#include "core/kernels/gradient.h"
#include "core/kernels/query_blocks.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <limits>

namespace ponderscope {

namespace {

void check_shapes(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Visibility& visibility,
                  const at::Tensor& row_bias) {
    TORCH_CHECK(q.dim() == 3 && k.dim() == 3 && v.dim() == 3, "attend: q, k, v must have three dimensions");
    TORCH_CHECK(k.sizes() == v.sizes(), "attend: k is ", k.sizes(), ", v is ", v.sizes());
    TORCH_CHECK(q.size(2) == k.size(2), "attend: head sizes of q and k differ: ", q.size(2), ", ", k.size(2));
    TORCH_CHECK(k.size(1) > 0 && q.size(1) % k.size(1) == 0, "attend: ", q.size(1),
                " query heads do not share ", k.size(1), " KV heads");
    TORCH_CHECK(q.scalar_type() == k.scalar_type() && q.scalar_type() == v.scalar_type(),
                "attend: dtypes differ");
    TORCH_CHECK(q.device() == k.device() && q.device() == v.device(), "attend: devices differ");
    TORCH_CHECK(k.size(0) <= std::numeric_limits<std::int32_t>::max(), "attend: ", k.size(0),
                " K/V rows, more than ranges can name");
    TORCH_CHECK(visibility.window >= 0, "attend: a window cannot be negative");
    TORCH_CHECK(visibility.causal.empty() || !visibility.ranges.defined(),
                "attend: visibility is given both as causal blocks and as ranges");
    if (row_bias.defined()) {
        TORCH_CHECK(row_bias.dim() == 1 && row_bias.size(0) == k.size(0), "attend: row_bias is ",
                    row_bias.sizes(), " for ", k.size(0), " rows");
    }
    if (visibility.ranges.defined()) {
        const auto& ranges = visibility.ranges;
        TORCH_CHECK(ranges.dim() == 3 && ranges.size(0) == q.size(0) && ranges.size(2) == 2 &&
                        ranges.scalar_type() == at::kInt && ranges.device() == q.device(),
                    "attend: ranges must be int32 [", q.size(0), ", m, 2] on the queries' device");
        TORCH_CHECK(!visibility.runs.defined() ||
                        (visibility.runs.dim() == 1 && visibility.runs.scalar_type() == at::kInt &&
                         visibility.runs.device() == q.device() && q.size(0) == k.size(0)),
                    "attend: runs must be int32 [S + 1] on the queries' device, and every row a query's");
        return;
    }
    std::int64_t queries = 0;
    for (const auto& block : visibility.causal) {
        TORCH_CHECK(block.length >= 0 && block.past >= 0 && block.query_begin >= 0 && block.row_begin >= 0 &&
                        block.query_begin + block.length <= q.size(0) &&
                        block.row_begin + block.past + block.length <= k.size(0),
                    "attend: a causal block lies outside of the queries or rows");
        queries += block.length;
    }
    TORCH_CHECK(queries == q.size(0), "attend: causal blocks cover ", queries, " of ", q.size(0), " queries");
}

/// Whether block b has the length of block a and directly follows it, so that one call can compute both.
bool follows(const Visibility::CausalBlock& a, const Visibility::CausalBlock& b) {
    return a.length == b.length && b.query_begin == a.query_begin + a.length &&
           b.row_begin == a.row_begin + a.length;
}

/// Causal blocks by LibTorch's fused kernel, one call for adjacent sequences of equal length. The kernel
/// serves training, too: its gradient keeps no score matrix.
at::Tensor attend_fused(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                        const Visibility& visibility, double scale) {
    const auto group = q.size(1) / k.size(1);
    const auto& blocks = visibility.causal;
    std::vector<at::Tensor> parts;
    for (std::size_t i = 0; i < blocks.size();) {
        std::size_t count = 1;
        while (i + count < blocks.size() && follows(blocks[i + count - 1], blocks[i + count])) {
            ++count;
        }
        const auto batch = static_cast<std::int64_t>(count);
        const auto length = blocks[i].length;
        // [batch * length, heads, d_h] -> [batch, heads, length, d_h]
        const auto stacked = [&](const at::Tensor& rows, std::int64_t begin) {
            return rows.narrow(0, begin, batch * length)
                .view({batch, length, rows.size(1), rows.size(2)})
                .transpose(1, 2);
        };
        // The fp32 kernel of a GPU does not support groups. Without repeated heads LibTorch would use plain
        // products, which keep all scores.
        const bool spread = group > 1 && !q.is_cpu() && q.scalar_type() == at::kFloat;
        const auto shared = [&](const at::Tensor& rows) {
            const auto heads = stacked(rows, blocks[i].row_begin);
            return spread ? heads.repeat_interleave(group, 1) : heads;
        };
        const auto mixed =
            at::scaled_dot_product_attention(stacked(q, blocks[i].query_begin), shared(k), shared(v), {}, 0.0,
                                             /*is_causal=*/true, scale, /*enable_gqa=*/group > 1 && !spread);
        parts.push_back(mixed.transpose(1, 2).reshape({batch * length, q.size(1), q.size(2)}));
        i += count;
    }
    return parts.size() == 1 ? parts.front() : at::cat(parts);
}

/// Whether the fused kernel supports this visibility: whole sequences in order, no past, no window.
bool fused_fits(const Visibility& visibility, const at::Tensor& row_bias) {
    if (visibility.ranges.defined() || row_bias.defined() || visibility.window > 0 ||
        visibility.causal.empty()) {
        return false;
    }
    std::int64_t next = 0;
    for (const auto& block : visibility.causal) {
        if (block.past != 0 || block.query_begin != next || block.length == 0) {
            return false;
        }
        next += block.length;
    }
    return true;
}

/// Whether all blocks are adjacent sequences of equal length. LibTorch's choice on a GPU (cuDNN from Hopper
/// on) is then faster than flash attention. But for one sequence cuDNN would prepare every new length.
bool of_one_length(const std::vector<Visibility::CausalBlock>& blocks) {
    return blocks.size() > 1 &&
           std::adjacent_find(blocks.begin(), blocks.end(),
                              [](const auto& a, const auto& b) { return !follows(a, b); }) == blocks.end();
}

} // namespace

at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Visibility& visibility,
                  double scale, const at::Tensor& row_bias, const ScoreExtras& extras) {
    check_shapes(q, k, v, visibility, row_bias);
    TORCH_CHECK(!extras.sinks.defined() || extras.sinks.sizes() == at::IntArrayRef({q.size(1)}),
                "attend: sinks must be [", q.size(1), "]");
    const bool gradient = wants_gradient(q) || wants_gradient(k) || wants_gradient(v) ||
                          wants_gradient(row_bias) || wants_gradient(extras.sinks);
    if (!gradient && q.is_cpu()) {
        const c10::NoGradGuard no_grad;
        return attend_blocks(q, k, v, visibility, scale, row_bias, extras);
    }
    if (extras.any()) { // neither the GPU kernels nor attend_with_gradient support them
        return attend_plain(q, k, v, visibility, scale, row_bias, extras);
    }
    const CudaKernels* cuda = gradient ? nullptr : cuda_kernels(q);
    const bool fused = fused_fits(visibility, row_bias);
    if (cuda != nullptr && cuda->attend_fits(q) &&
        (!fused || (cuda->flash_fits(q, visibility, row_bias) && !of_one_length(visibility.causal)))) {
        const c10::NoGradGuard no_grad;
        return cuda->attend(q, k, v, visibility, scale, row_bias);
    }
    if (fused) {
        return attend_fused(q, k, v, visibility, scale);
    }
    if (gradient && q.size(0) > 0) {
        return attend_with_gradient(q, k, v, visibility, scale, row_bias);
    }
    return attend_plain(q, k, v, visibility, scale, row_bias);
}

} // namespace ponderscope
