// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/backbones/block_stack.h"

#include <ATen/ATen.h>

namespace ponderscope {

namespace {

at::Tensor normed(const at::Tensor& x, const std::optional<blocks::Norm>& norm) {
    return norm ? blocks::normalise(x, *norm) : x;
}

} // namespace

at::Tensor BlockStack::attention(std::int64_t l, const Layer& w, const at::Tensor& x,
                                 const Pass& pass) const {
    const std::int64_t size = config_.head_dim;
    const std::int64_t queries = config_.query_heads * size;
    const std::int64_t keys = config_.kv_heads * size;
    const at::Tensor input = normed(x, w.before_attention);
    const at::Tensor asking = pass.mixer == nullptr ? blocks::attending(input, pass) : input;
    const auto heads = [&](const at::Tensor& rows, const Norm& norm, std::int64_t count) {
        at::Tensor all = norm ? blocks::normalise(rows.contiguous(), *norm) : rows;
        if (config_.scales.qkv_limit) {
            all = all.clamp(-*config_.scales.qkv_limit, *config_.scales.qkv_limit);
        }
        return all.unflatten(1, {count, size});
    };
    at::Tensor q, k, v;
    if (w.qkv_by_head) {
        const at::Tensor all = blocks::linear(input, w.qkv).unflatten(1, {config_.query_heads, 3, size});
        q = all.select(2, 0);
        k = all.select(2, 1);
        v = all.select(2, 2);
    } else {
        const bool fused = w.qkv.weight.defined();
        const at::Tensor all = fused ? blocks::linear(input, w.qkv) : at::Tensor();
        q = heads(fused ? all.narrow(1, 0, queries) : blocks::linear(asking, w.q), w.query_norm,
                  config_.query_heads);
        k = heads(fused ? all.narrow(1, queries, keys) : blocks::linear(input, w.k), w.key_norm,
                  config_.kv_heads);
        v = heads(fused ? all.narrow(1, queries + keys, keys) : blocks::linear(input, w.v), std::nullopt,
                  config_.kv_heads);
    }
    if (w.value_gate.defined()) {
        const at::Tensor rows =
            at::embedding(w.value_table, pass.ids.to(w.value_table.device())).to(v.device()).view(v.sizes());
        const at::Tensor read = input.narrow(1, 0, w.value_gate.size(1));
        v = v + (at::sigmoid(at::linear(read, w.value_gate)) * 2).unsqueeze(2) * rows;
    }
    const at::Tensor attended = blocks::self_attention(l, q, k, v, config_, pass, w.heads, w.score_scale);
    if (!w.attention_gate.weight.defined()) {
        return attended;
    }
    const at::Tensor gate = blocks::linear(blocks::attending(input, pass), w.attention_gate);
    return attended * at::sigmoid(w.attention_gate_scale.defined()
                                      ? blocks::scaled_by(gate, w.attention_gate_scale)
                                      : gate);
}

at::Tensor BlockStack::mlp(std::int64_t l, const Layer& w, const at::Tensor& x, const Pass& pass) const {
    if (w.experts) {
        return w.experts->run(x, l, pass);
    }
    const bool gated = w.gate.weight.defined();
    const at::Tensor inner = blocks::activate(blocks::linear(x, gated ? w.gate : w.up), config_.activation);
    return blocks::linear(gated ? inner * blocks::linear(x, w.up) : inner, w.down);
}

at::Tensor BlockStack::addend(const at::Tensor& output, const Norm& norm) const {
    const at::Tensor added = normed(output, norm);
    return config_.scales.residual == 1.0 ? added : added * config_.scales.residual;
}

at::Tensor BlockStack::run_layer(std::int64_t l, const Layer& w, const at::Tensor& x,
                                 const Pass& pass) const {
    const at::Tensor heads = attention(l, w, x, pass);
    const at::Tensor through = blocks::attending(x, pass);
    const at::Tensor attended =
        normed(through + addend(blocks::linear(heads, w.o), w.after_attention), w.attention_sum);
    const at::Tensor input = normed(w.parallel ? through : attended, w.before_mlp);
    return normed(attended + addend(mlp(l, w, input, pass), w.after_mlp), w.mlp_sum);
}

at::Tensor BlockStack::sublayer(std::int64_t c, const at::Tensor& x, const Pass& pass) const {
    const std::int64_t l = c / 2;
    const Layer& w = weights(l, pass);
    if (c % 2 == 0) {
        return addend(blocks::linear(attention(l, w, x, pass), w.o), w.after_attention);
    }
    return addend(mlp(l, w, normed(x, w.before_mlp), pass), w.after_mlp);
}

} // namespace ponderscope
