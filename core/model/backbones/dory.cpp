// SPDX-License-Identifier: GPL-3.0-or-later
// Dory (NVIDIA): input, looped and output layers on the unit sphere.
//   x = u(x);  x = x + |λ1·α/σ| ⊙ (u(Attn(x)) - x);   x = u(x);  x = x + |λ2·α/σ| ⊙ (u(MLP(x)) - x)
// u(x) = x / |x|. Queries and keys have length 1, and what attention gives passes a gate. A loop reads u(x) +
// e, e what the input layers left, on the sphere.
#include "core/model/backbone_table.h"
#include "core/model/blocks.h"
#include "core/model/layout_builder.h"

#include <ATen/ATen.h>

#include <cmath>
#include <string>
#include <vector>

namespace ponderscope {

namespace {

class Dory final : public Backbone {
public:
    static ParameterLayout layout(const ModelConfig& config);
    Dory(const ModelConfig& config, const Parameters& parameters);

    [[nodiscard]] at::Tensor final_norm(const at::Tensor& x) const override { return unit(x); }
    [[nodiscard]] at::Tensor inject(const at::Tensor& state, const at::Tensor& entering) const override {
        return state + entering;
    }

private:
    struct Layer {
        blocks::Linear q_proj, k_proj, v_proj, o_proj, attention_gate;
        blocks::Linear gate_proj, up_proj, down_proj;
        // In fp32, as they are applied.
        at::Tensor attention_rate, mlp_rate;     ///< [d]
        at::Tensor query_scale;                  ///< [n_q, d_h]
        at::Tensor gate_scale;                   ///< [n_q·d_h]
        at::Tensor mlp_gate_scale, mlp_up_scale; ///< [m]
    };
    struct Weights {
        std::vector<Layer> layers;
        at::Tensor logit_scale; ///< [V]
    };
    static Weights declare(LayoutBuilder& builder, const ModelConfig& config);
    static Layer declare_layer(LayoutBuilder& builder, const ModelConfig& config, std::int64_t l);
    [[nodiscard]] at::Tensor unit(const at::Tensor& x) const {
        return blocks::normalise(x, {NormKind::unit, {}, {}, config_.norm_eps});
    }
    [[nodiscard]] at::Tensor after_prelude(const at::Tensor& x) const override { return unit(x); }
    [[nodiscard]] at::Tensor after_core(const at::Tensor& x) const override { return unit(x); }
    [[nodiscard]] at::Tensor layer(std::int64_t l, const at::Tensor& x, const Pass& pass) const override;
    [[nodiscard]] at::Tensor attention(std::int64_t l, const at::Tensor& x, const Pass& pass) const;
    [[nodiscard]] at::Tensor mlp(const Layer& w, const at::Tensor& x) const;

    Weights weights_;
};

/// x ⊙ scale, the scale in fp32, rounded once.
at::Tensor scaled_by(const at::Tensor& x, const at::Tensor& scale) {
    return (x * scale).to(x.scalar_type());
}

/// A stored vector times a factor, in fp32; undefined where only the layout is declared.
at::Tensor as_applied(const at::Tensor& stored, double factor) {
    return stored.defined() ? stored.to(at::kFloat) * factor : stored;
}

/// One sublayer's tensors under the names of its three kinds of files: the class's own, those that
/// transformers saves (a block is a layer) and those of released files (attention and MLP are blocks of their
/// own).
struct SublayerTensors {
    LayoutBuilder& builder;
    std::string own, saved, released;

    at::Tensor add(const std::string& name, const std::string& other, std::vector<std::int64_t> shape,
                   TensorSpec::Init init, double value) const {
        return builder.add({own + name, std::move(shape), init, value, {saved + other, released + other}});
    }
    blocks::Linear linear(const std::string& name, std::int64_t out, std::int64_t in, bool bias,
                          double deviation, const std::string& other = "") const {
        const std::string theirs = other.empty() ? name : other;
        blocks::Linear linear;
        linear.weight =
            add(name + ".weight", theirs + ".weight", {out, in}, TensorSpec::Init::normal, deviation);
        if (bias) {
            linear.bias = add(name + ".bias", theirs + ".bias", {out}, TensorSpec::Init::constant, 0.0);
        }
        return linear;
    }
    at::Tensor vector(const std::string& name, std::int64_t size, double start) const {
        return add(name, name, {size}, TensorSpec::Init::constant, start);
    }
};

Dory::Layer Dory::declare_layer(LayoutBuilder& builder, const ModelConfig& config, std::int64_t l) {
    const std::int64_t d = config.hidden_size;
    const std::int64_t m = config.intermediate_size;
    const std::int64_t queries = config.query_heads * config.head_dim;
    const std::int64_t keys = config.kv_heads * config.head_dim;
    const bool bias = config.attention_bias;
    const double deviation = config.released.deviation;
    const double root_d = std::sqrt(static_cast<double>(d));
    const std::string name = sandwich_block_name(config, l);
    const auto block = [](std::int64_t number) { return "backbone.layers." + std::to_string(number) + "."; };
    const SublayerTensors attention{builder, name + "self_attn.", block(l) + "self_attn.",
                                    block(2 * l) + "mixer."};
    const SublayerTensors mlp{builder, name + "mlp.", block(l) + "mlp.", block(2 * l + 1) + "mixer."};
    Layer layer;
    layer.q_proj = attention.linear("q_proj", queries, d, bias, deviation);
    layer.k_proj = attention.linear("k_proj", keys, d, bias, deviation);
    layer.v_proj = attention.linear("v_proj", keys, d, bias, deviation);
    layer.o_proj = attention.linear("o_proj", d, queries, bias, deviation);
    layer.attention_gate = attention.linear("gate_proj", queries, d, false, deviation, "g_proj");
    layer.query_scale = as_applied(attention.vector("sqk", queries, deviation),
                                   std::sqrt(static_cast<double>(config.head_dim)) / deviation);
    layer.gate_scale =
        as_applied(attention.vector("s_gate", queries, deviation), std::sqrt(root_d) / deviation);
    layer.gate_proj = mlp.linear("gate_proj", m, d, config.mlp_bias, deviation);
    layer.up_proj = mlp.linear("up_proj", m, d, config.mlp_bias, deviation);
    layer.down_proj = mlp.linear("down_proj", d, m, config.mlp_bias, deviation);
    layer.mlp_gate_scale = as_applied(mlp.vector("suv_gate", m, 1.0), root_d);
    layer.mlp_up_scale = as_applied(mlp.vector("suv_up", m, 1.0), root_d);
    const auto rate = [&](const char* own, const std::string& released) {
        return as_applied(
            builder.add({name + own, {d}, TensorSpec::Init::constant, deviation, {block(l) + own, released}}),
            config.released.update_rate);
    };
    layer.attention_rate = rate("lambda_1", block(2 * l) + "attn_alpha");
    layer.mlp_rate = rate("lambda_2", block(2 * l + 1) + "mlp_alpha");
    if (layer.query_scale.defined()) {
        layer.query_scale = layer.query_scale.square().view({config.query_heads, config.head_dim});
        layer.gate_scale = layer.gate_scale.square();
        layer.attention_rate = layer.attention_rate.abs();
        layer.mlp_rate = layer.mlp_rate.abs();
    }
    return layer;
}

Dory::Weights Dory::declare(LayoutBuilder& builder, const ModelConfig& config) {
    Weights weights;
    builder.matrix("model.embed_tokens.weight", config.vocab_size, config.hidden_size,
                   {"backbone.embeddings.weight"});
    for (std::int64_t l = 0; l < config.layers; ++l) {
        weights.layers.push_back(declare_layer(builder, config, l));
    }
    builder.matrix("lm_head.weight", config.vocab_size, config.hidden_size);
    weights.logit_scale =
        as_applied(builder.vector("lm_head.logit_scale", config.vocab_size, config.released.deviation),
                   1.0 / config.released.deviation);
    return weights;
}

ParameterLayout Dory::layout(const ModelConfig& config) {
    LayoutBuilder builder(config);
    declare(builder, config);
    return builder.finish("model.embed_tokens.weight", "lm_head.weight", config.tied_embeddings,
                          {"rotary_emb.inv_freq"});
}

Dory::Dory(const ModelConfig& config, const Parameters& parameters)
    : Backbone(config, parameters, layout(config), "model.layers.") {
    LayoutBuilder builder(config, &parameters);
    weights_ = declare(builder, config);
    head_ = (head_.to(at::kFloat) * weights_.logit_scale.unsqueeze(1)).to(head_.scalar_type());
}

at::Tensor Dory::attention(std::int64_t l, const at::Tensor& x, const Pass& pass) const {
    const Layer& w = weights_.layers[static_cast<std::size_t>(l)];
    const auto heads = [&](const blocks::Linear& projection, std::int64_t count) {
        return blocks::linear(x, projection).view({x.size(0), count, config_.head_dim});
    };
    blocks::HeadExtras extras;
    extras.query = extras.key = blocks::Norm{NormKind::unit, {}, {}, config_.norm_eps};
    extras.query_scale = w.query_scale;
    const at::Tensor attended =
        blocks::self_attention(l, heads(w.q_proj, config_.query_heads), heads(w.k_proj, config_.kv_heads),
                               heads(w.v_proj, config_.kv_heads), config_, pass, extras);
    const at::Tensor gate = blocks::linear(x, w.attention_gate);
    const at::Tensor open = attended * at::sigmoid(scaled_by(gate, w.gate_scale));
    return blocks::linear(unit(open), w.o_proj);
}

at::Tensor Dory::mlp(const Layer& w, const at::Tensor& x) const {
    const at::Tensor gate = scaled_by(blocks::linear(x, w.gate_proj), w.mlp_gate_scale);
    const at::Tensor up = scaled_by(blocks::linear(x, w.up_proj), w.mlp_up_scale);
    const at::Tensor inner = unit(blocks::activate(gate, config_.activation) * up);
    return blocks::linear(inner, w.down_proj);
}

at::Tensor Dory::layer(std::int64_t l, const at::Tensor& x, const Pass& pass) const {
    const Layer& w = weights_.layers[static_cast<std::size_t>(l)];
    const auto towards = [&](const at::Tensor& from, const at::Tensor& target, const at::Tensor& rate) {
        return from + scaled_by(unit(target) - from, rate);
    };
    const at::Tensor entering = unit(x);
    const at::Tensor attended = unit(towards(entering, attention(l, entering, pass), w.attention_rate));
    return towards(attended, mlp(w, attended), w.mlp_rate);
}

} // namespace

BackboneEntry dory_backbone() {
    return backbone_entry<Dory>(Architecture::dory);
}

} // namespace ponderscope
