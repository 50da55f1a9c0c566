// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/query_blocks.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>
#include <utility>
#include <vector>

namespace ponderscope {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

void add_rows(const at::Tensor& all, const QueryBlock& block, const at::Tensor& addend) {
    std::int64_t at = 0;
    for (const auto& [first, end] : block.pieces) {
        all.narrow(0, first, end - first).add_(addend.narrow(0, at, end - first));
        at += end - first;
    }
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
        const at::Tensor on_host = saved[4].cpu().contiguous(); // to form the blocks; masks use saved[4]
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
            const QueryBlock block = QueryBlock::at(begin, on_host, q.size(1));
            const std::int64_t count = block.queries();
            begin = block.end;
            // [count, g * group, d_h] -> [g, group * count, d_h]: heads that share keys share one product.
            const auto queries = [&](const at::Tensor& all) {
                return all.narrow(0, block.begin, count)
                    .to(type)
                    .view({count, kv_heads, group, all.size(2)})
                    .permute({1, 2, 0, 3})
                    .reshape({kv_heads, group * count, all.size(2)});
            };
            const at::Tensor keys = block.rows_of(k, type).transpose(0, 1);
            const at::Tensor values = block.rows_of(v, type).transpose(0, 1);
            const at::Tensor asked = queries(q) * scale;
            const at::Tensor grad = queries(gradients[0]);
            const at::Tensor weights = block.weights(asked, keys, saved[4], bias, {});
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
