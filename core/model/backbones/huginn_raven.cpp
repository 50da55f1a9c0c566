// SPDX-License-Identifier: GPL-3.0-or-later
// Huginn and the models retrofitted in its format (methods-released.md sections 3 and 5): prelude, core and
// coda of the same blocks, and an adapter that joins the state and the prelude's output.
#include "core/model/backbones/block_stack.h"

#include <ATen/ATen.h>

namespace ponderscope {

namespace {

/// Three kinds of blocks. Huginn's own kind, sandwich, normalises the residual stream itself.
///   sandwich:  x = N2(Attn(N1(x)) + x);   x = N4(MLP(N3(x)) + x)
///   llama:     x = x + Attn(N1(x));       x = x + MLP(N2(x))
///   olmo2:     x = x + N1(Attn(x));       x = x + N2(MLP(x)), with norms of q and k over all heads
/// MLP(y) = proj(silu(a) * b), [a; b] = fc y.
class HuginnRaven final : public BlockStack {
public:
    HuginnRaven(const ModelConfig& config, TensorBuilder& builder) : BlockStack(config) {
        const std::int64_t d = config.hidden_size;
        embedding_ = builder.embedding("transformer.wte.weight");
        for (const std::string& name :
             builder.blocks([&](std::int64_t l) { return sandwich_block_name(config, l); })) {
            layers_.push_back(declare(builder, name));
        }
        adapter_ = builder.linear("transformer.adapter", d, 2 * d, config.sandwich.injection_bias);
        norm_ = builder.norm("transformer.ln_f", d);
        head_ = builder.head("lm_head.weight");
    }

    /// W_a [x ; e] + b_a, with the state x and the prelude's output e.
    [[nodiscard]] at::Tensor inject(const at::Tensor& state, const at::Tensor& entering) const override {
        return blocks::linear(at::cat({state.to(entering.scalar_type()), entering}, 1), adapter_);
    }
    [[nodiscard]] std::int64_t injection_flops() const override {
        return 4 * config_.hidden_size * config_.hidden_size;
    }

private:
    [[nodiscard]] Layer declare(TensorBuilder& builder, const std::string& name) const {
        const std::int64_t d = config_.hidden_size;
        const std::int64_t m = config_.intermediate_size;
        const std::int64_t queries = config_.query_heads * config_.head_dim;
        const std::int64_t keys = config_.kv_heads * config_.head_dim;
        const RavenBlock kind = config_.released.block;
        Layer layer;
        const blocks::Norm norm_1 = builder.norm(name + "norm_1", d);
        const blocks::Norm norm_2 = builder.norm(name + "norm_2", d);
        if (kind == RavenBlock::sandwich) {
            layer.before_attention = norm_1;
            layer.attention_sum = norm_2;
            layer.before_mlp = builder.norm(name + "norm_3", d);
            layer.mlp_sum = builder.norm(name + "norm_4", d);
        } else {
            (kind == RavenBlock::llama ? layer.before_attention : layer.after_attention) = norm_1;
            (kind == RavenBlock::llama ? layer.before_mlp : layer.after_mlp) = norm_2;
        }
        layer.qkv.weight = builder.matrix(name + "attn.Wqkv.weight", queries + 2 * keys, d);
        if (config_.released.qk_bias) {
            const at::Tensor bias =
                builder.tensor(name + "attn.qk_bias", {2, 1, config_.query_heads, config_.head_dim}, 0.0);
            if (bias.defined()) {
                layer.qkv.bias = at::cat({bias.reshape({-1}), at::zeros({queries}, bias.options())});
            }
        }
        if (kind == RavenBlock::olmo2) {
            layer.query_norm = builder.norm(name + "attn.q_norm", queries);
            layer.key_norm = builder.norm(name + "attn.k_norm", keys);
        }
        layer.o = builder.linear(name + "attn.proj", d, queries);
        const blocks::Linear fc = builder.linear(name + "mlp.fc", 2 * m, d);
        layer.gate = fc.part(0, m);
        layer.up = fc.part(m, m);
        layer.down = builder.linear(name + "mlp.proj", d, m);
        return layer;
    }
    [[nodiscard]] at::Tensor before_coda(const at::Tensor& x) const override {
        return config_.sandwich.norm_before_coda ? final_norm(x) : x;
    }

    blocks::Linear adapter_;
};

} // namespace

std::unique_ptr<Backbone> huginn_raven_backbone(const ModelConfig& config, TensorBuilder& builder) {
    return std::make_unique<HuginnRaven>(config, builder);
}

} // namespace ponderscope
