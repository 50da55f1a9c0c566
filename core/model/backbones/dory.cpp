// SPDX-License-Identifier: GPL-3.0-or-later
// Dory (NVIDIA): input, looped and output layers on the unit sphere.
//   x = u(x);  x = x + |λ1·α/σ| ⊙ (u(Attn(x)) - x);   x = u(x);  x = x + |λ2·α/σ| ⊙ (u(MLP(x)) - x)
// u(x) = x / |x|. Queries and keys have length 1. A gate multiplies the output of attention. A loop reads
// u(x) + e, where e is the output of the input layers, on the sphere.
#include "core/model/backbones/block_stack.h"

#include <ATen/ATen.h>

#include <cmath>

namespace ponderscope {

namespace {

class Dory final : public BlockStack {
public:
    Dory(const ModelConfig& config, TensorBuilder& builder);

    [[nodiscard]] at::Tensor inject(const at::Tensor& state, const at::Tensor& entering) const override {
        return state + entering;
    }

private:
    /// The scales of a layer besides its projections, in fp32, ready to multiply.
    struct Scales {
        at::Tensor attention_rate, mlp_rate; ///< [d]
        at::Tensor mlp_gate, mlp_up;         ///< [m]
    };
    void declare(TensorBuilder& builder, const std::string& name, std::int64_t l);
    [[nodiscard]] at::Tensor unit(const at::Tensor& x) const { return final_norm(x); }
    [[nodiscard]] at::Tensor after_prelude(const at::Tensor& x) const override { return unit(x); }
    [[nodiscard]] at::Tensor after_core(const at::Tensor& x) const override { return unit(x); }
    [[nodiscard]] at::Tensor layer(std::int64_t l, const at::Tensor& x, const Pass& pass) const override;

    std::vector<Scales> scales_;
};

/// Adds the other names of a layer's tensors, which are [first, end) of the layout: the names of transformers
/// (a block is a layer), and the names in released files (attention and MLP are separate blocks).
void add_other_names(ParameterLayout& layout, std::size_t first, const std::string& own, std::int64_t l) {
    const auto block = [](std::int64_t number) { return "backbone.layers." + std::to_string(number) + "."; };
    const std::pair<std::string, std::string> released[] = {{"self_attn.", block(2 * l) + "mixer."},
                                                            {"mlp.", block(2 * l + 1) + "mixer."},
                                                            {"lambda_1", block(2 * l) + "attn_alpha"},
                                                            {"lambda_2", block(2 * l + 1) + "mlp_alpha"}};
    for (std::size_t i = first; i < layout.tensors.size(); ++i) {
        std::string name = layout.tensors[i].name.substr(own.size());
        if (name.starts_with("self_attn.gate_proj")) {
            name.replace(0, std::string("self_attn.gate_proj").size(), "self_attn.g_proj");
        }
        layout.tensors[i].aliases = {block(l) + name};
        for (const auto& [ours, theirs] : released) {
            if (name.starts_with(ours)) {
                layout.tensors[i].aliases.push_back(theirs + name.substr(ours.size()));
            }
        }
    }
}

void Dory::declare(TensorBuilder& builder, const std::string& name, std::int64_t l) {
    const std::int64_t d = config_.hidden_size;
    const std::int64_t m = config_.intermediate_size;
    const std::int64_t queries = config_.query_heads * config_.head_dim;
    const std::int64_t keys = config_.kv_heads * config_.head_dim;
    const bool bias = config_.attention_bias;
    const double deviation = config_.released.deviation;
    const double root_d = std::sqrt(static_cast<double>(d));
    const double root_h = std::sqrt(static_cast<double>(config_.head_dim));
    const std::size_t first = builder.layout().tensors.size();
    /// A stored vector times a factor, in fp32.
    const auto vector = [&](const char* own, std::int64_t size, double start, double factor) {
        const at::Tensor stored = builder.vector(name + own, size, start);
        return stored.defined() ? stored.to(at::kFloat) * factor : stored;
    };
    Layer layer;
    layer.q = builder.linear(name + "self_attn.q_proj", queries, d, bias);
    layer.k = builder.linear(name + "self_attn.k_proj", keys, d, bias);
    layer.v = builder.linear(name + "self_attn.v_proj", keys, d, bias);
    layer.o = builder.linear(name + "self_attn.o_proj", d, queries, bias);
    layer.attention_gate = builder.linear(name + "self_attn.gate_proj", queries, d);
    layer.heads.query = layer.heads.key = norm_;
    layer.heads.query_scale = vector("self_attn.sqk", queries, deviation, root_h / deviation);
    layer.attention_gate_scale =
        vector("self_attn.s_gate", queries, deviation, std::sqrt(root_d) / deviation);
    layer.gate = builder.linear(name + "mlp.gate_proj", m, d, config_.mlp_bias);
    layer.up = builder.linear(name + "mlp.up_proj", m, d, config_.mlp_bias);
    layer.down = builder.linear(name + "mlp.down_proj", d, m, config_.mlp_bias);
    Scales scales;
    scales.mlp_gate = vector("mlp.suv_gate", m, 1.0, root_d);
    scales.mlp_up = vector("mlp.suv_up", m, 1.0, root_d);
    scales.attention_rate = vector("lambda_1", d, deviation, config_.released.update_rate);
    scales.mlp_rate = vector("lambda_2", d, deviation, config_.released.update_rate);
    if (layer.attention_gate_scale.defined()) {
        layer.heads.query_scale =
            layer.heads.query_scale.square().view({config_.query_heads, config_.head_dim});
        layer.attention_gate_scale = layer.attention_gate_scale.square();
        scales.attention_rate = scales.attention_rate.abs();
        scales.mlp_rate = scales.mlp_rate.abs();
    }
    layers_.push_back(std::move(layer));
    scales_.push_back(std::move(scales));
    add_other_names(builder.layout(), first, name, l);
}

Dory::Dory(const ModelConfig& config, TensorBuilder& builder) : BlockStack(config) {
    norm_ = blocks::Norm{NormKind::unit, {}, {}, config.norm_eps};
    embedding_ = builder.embedding("model.embed_tokens.weight", {"backbone.embeddings.weight"});
    for (const std::string& name :
         builder.blocks([&](std::int64_t l) { return sandwich_block_name(config, l); })) {
        declare(builder, name, static_cast<std::int64_t>(layers_.size()));
    }
    head_ = builder.head("lm_head.weight");
    const double deviation = config.released.deviation;
    if (const at::Tensor scale = builder.vector("lm_head.logit_scale", config.vocab_size, deviation);
        scale.defined()) {
        head_ =
            (head_.to(at::kFloat) * (scale.to(at::kFloat) / deviation).unsqueeze(1)).to(head_.scalar_type());
    }
}

at::Tensor Dory::layer(std::int64_t l, const at::Tensor& x, const Pass& pass) const {
    const Layer& w = layers_[static_cast<std::size_t>(l)];
    const Scales& scales = scales_[static_cast<std::size_t>(l)];
    const auto towards = [&](const at::Tensor& from, const at::Tensor& target, const at::Tensor& rate) {
        return from + blocks::scaled_by(unit(target) - from, rate);
    };
    const at::Tensor entering = unit(x);
    const at::Tensor heads = unit(attention(l, w, entering, pass));
    const at::Tensor attended = unit(towards(entering, blocks::linear(heads, w.o), scales.attention_rate));
    const at::Tensor gate = blocks::scaled_by(blocks::linear(attended, w.gate), scales.mlp_gate);
    const at::Tensor up = blocks::scaled_by(blocks::linear(attended, w.up), scales.mlp_up);
    const at::Tensor inner = unit(blocks::activate(gate, config_.activation) * up);
    return towards(attended, blocks::linear(inner, w.down), scales.mlp_rate);
}

} // namespace

std::unique_ptr<Backbone> dory_backbone(const ModelConfig& config, TensorBuilder& builder) {
    return std::make_unique<Dory>(config, builder);
}

} // namespace ponderscope
