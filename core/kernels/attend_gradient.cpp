// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/attend_gradient.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace ponderscope {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

/// Neighbouring queries whose rows are looked at together: enough for products of a good shape, few enough
/// that little of a causal triangle is computed in vain.
constexpr std::int64_t block_queries = 128;

/// Queries [begin, end) and the rows that any of them sees, a piece a range.
struct Block {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::vector<std::pair<std::int64_t, std::int64_t>> pieces;
    std::int64_t rows = 0;
};

Block block_at(std::int64_t begin, const at::Tensor& ranges) {
    const auto* range = ranges.const_data_ptr<std::int64_t>();
    const std::int64_t columns = ranges.size(1);
    Block block{begin, begin, {}, 0};
    block.pieces.assign(static_cast<std::size_t>(columns), {std::numeric_limits<std::int64_t>::max(), 0});
    const std::int64_t last = std::min(ranges.size(0), begin + block_queries);
    std::int64_t reach = 0; ///< of the rows so far
    for (std::int64_t i = begin; i < last; ++i) {
        // Another sequence has rows of its own: all of them behind or before what was seen until now.
        std::int64_t low = std::numeric_limits<std::int64_t>::max();
        std::int64_t high = 0;
        for (std::int64_t m = 0; m < columns; ++m) {
            const auto first = range[2 * (i * columns + m)];
            const auto end = range[2 * (i * columns + m) + 1];
            if (first < end) {
                low = std::min(low, first);
                high = std::max(high, end);
            }
        }
        if (i > begin && low >= reach) {
            break;
        }
        reach = std::max(reach, high);
        for (std::int64_t m = 0; m < columns; ++m) {
            const auto first = range[2 * (i * columns + m)];
            const auto end = range[2 * (i * columns + m) + 1];
            if (first < end) {
                auto& piece = block.pieces[static_cast<std::size_t>(m)];
                piece = {std::min(piece.first, first), std::max(piece.second, end)};
            }
        }
        block.end = i + 1;
    }
    std::erase_if(block.pieces, [](const auto& piece) { return piece.first >= piece.second; });
    // Ranges of one query do not overlap, but their unions over the block may: joined, a row comes once.
    std::sort(block.pieces.begin(), block.pieces.end());
    std::vector<std::pair<std::int64_t, std::int64_t>> joined;
    for (const auto& piece : block.pieces) {
        if (!joined.empty() && piece.first < joined.back().second) {
            joined.back().second = std::max(joined.back().second, piece.second);
        } else {
            joined.push_back(piece);
        }
    }
    block.pieces = std::move(joined);
    for (const auto& [first, end] : block.pieces) {
        block.rows += end - first;
    }
    return block;
}

/// [rows of the pieces, ...] of a tensor [R, ...].
at::Tensor rows_of(const at::Tensor& all, const Block& block, at::ScalarType type) {
    std::vector<at::Tensor> parts;
    for (const auto& [first, end] : block.pieces) {
        parts.push_back(all.narrow(0, first, end - first));
    }
    return (parts.size() == 1 ? parts.front() : at::cat(parts)).to(type);
}

void add_rows(const at::Tensor& all, const Block& block, const at::Tensor& addend) {
    std::int64_t at = 0;
    for (const auto& [first, end] : block.pieces) {
        all.narrow(0, first, end - first).add_(addend.narrow(0, at, end - first));
        at += end - first;
    }
}

/// bool [queries, rows] of a block, made where the ranges lie.
at::Tensor mask_of(const Block& block, const at::Tensor& ranges) {
    std::vector<at::Tensor> places;
    for (const auto& [first, end] : block.pieces) {
        places.push_back(at::arange(first, end, ranges.options()));
    }
    const at::Tensor row = (places.size() == 1 ? places.front() : at::cat(places)).unsqueeze(0);
    const at::Tensor mine = ranges.narrow(0, block.begin, block.end - block.begin);
    at::Tensor mask;
    for (std::int64_t m = 0; m < ranges.size(1); ++m) {
        const at::Tensor first = mine.select(1, m).select(1, 0).unsqueeze(1);
        const at::Tensor end = mine.select(1, m).select(1, 1).unsqueeze(1);
        const at::Tensor here = row.ge(first).logical_and_(row.lt(end));
        mask = mask.defined() ? mask.logical_or_(here) : here;
    }
    return mask;
}

class RangedAttention : public Function<RangedAttention> {
public:
    static at::Tensor forward(AutogradContext* context, const at::Tensor& q, const at::Tensor& k,
                              const at::Tensor& v, const std::optional<at::Tensor>& row_bias,
                              const at::Tensor& ranges, double scale) {
        const at::Tensor bias = row_bias.value_or(at::Tensor());
        Visibility visibility;
        visibility.ranges = ranges.to(at::kInt);
        const at::Tensor out = attend(q.detach(), k.detach(), v.detach(), visibility, scale,
                                      bias.defined() ? bias.detach() : bias);
        context->save_for_backward({q, k, v, bias, ranges, out});
        context->saved_data["scale"] = scale;
        return out;
    }

    static variable_list backward(AutogradContext* context, const variable_list& gradients) {
        const auto saved = context->get_saved_variables();
        const at::Tensor &q = saved[0], &k = saved[1], &v = saved[2], &bias = saved[3], &out = saved[5];
        const at::Tensor on_host = saved[4].cpu().contiguous(); // which rows go together; masks stay there
        const double scale = context->saved_data["scale"].toDouble();
        const auto type = q.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
        const auto options = q.options().dtype(type);
        const std::int64_t kv_heads = k.size(1);
        const std::int64_t group = q.size(1) / kv_heads;
        const at::Tensor grad_q = at::empty(q.sizes(), options);
        const at::Tensor grad_k = at::zeros(k.sizes(), options);
        const at::Tensor grad_v = at::zeros(v.sizes(), options);
        const at::Tensor grad_bias = bias.defined() ? at::zeros(bias.sizes(), options) : at::Tensor();

        for (std::int64_t begin = 0; begin < q.size(0);) {
            const Block block = block_at(begin, on_host);
            const std::int64_t count = block.end - block.begin;
            begin = block.end;
            // [count, g * group, d_h] -> [g, group * count, d_h]: the heads that share keys share a product.
            const auto queries = [&](const at::Tensor& all) {
                return all.narrow(0, block.begin, count)
                    .to(type)
                    .view({count, kv_heads, group, all.size(2)})
                    .permute({1, 2, 0, 3})
                    .reshape({kv_heads, group * count, all.size(2)});
            };
            const at::Tensor hidden = mask_of(block, saved[4]).logical_not_();
            const at::Tensor unseen = hidden.all(0).view({-1, 1, 1}); // such a row may hold anything
            const at::Tensor keys = rows_of(k, block, type).masked_fill(unseen, 0).transpose(0, 1);
            const at::Tensor values = rows_of(v, block, type).masked_fill(unseen, 0).transpose(0, 1);
            const at::Tensor asked = queries(q) * scale;
            const at::Tensor grad = queries(gradients[0]);
            at::Tensor scores = at::bmm(asked, keys.transpose(1, 2));
            if (bias.defined()) {
                scores.add_(rows_of(bias, block, type).masked_fill(hidden.all(0), 0));
            }
            scores.view({kv_heads, group, count, block.rows})
                .masked_fill_(hidden, -std::numeric_limits<double>::infinity());
            const at::Tensor weights = at::softmax(scores, -1);
            add_rows(grad_v, block, at::bmm(weights.transpose(1, 2), grad).transpose(0, 1));
            const at::Tensor share = (grad * queries(out)).sum(-1, /*keepdim=*/true);
            at::Tensor grad_scores = at::bmm(grad, values.transpose(1, 2)).sub_(share).mul_(weights);
            grad_q.narrow(0, block.begin, count)
                .view({count, kv_heads, group, q.size(2)})
                .copy_(at::bmm(grad_scores, keys)
                           .view({kv_heads, group, count, q.size(2)})
                           .permute({2, 0, 1, 3})
                           .mul(scale));
            add_rows(grad_k, block, at::bmm(grad_scores.transpose(1, 2), asked).transpose(0, 1));
            if (bias.defined()) {
                add_rows(grad_bias, block, grad_scores.sum(at::IntArrayRef{0, 1}));
            }
        }
        return {grad_q.to(q.scalar_type()),
                grad_k.to(k.scalar_type()),
                grad_v.to(v.scalar_type()),
                bias.defined() ? grad_bias.to(bias.scalar_type()) : at::Tensor(),
                {},
                {}};
    }
};

} // namespace

at::Tensor attend_with_gradient(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                const Visibility& visibility, double scale, const at::Tensor& row_bias) {
    return RangedAttention::apply(q, k, v, row_bias.defined() ? std::optional(row_bias) : std::nullopt,
                                  visible_ranges(visibility, q.size(0), q.device()), scale);
}

} // namespace ponderscope
