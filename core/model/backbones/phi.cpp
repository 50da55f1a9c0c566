// SPDX-License-Identifier: GPL-3.0-or-later
// Phi-1, 1.5 and 2: one LayerNorm feeds attention and MLP, both are added to the stream; partial rotary,
// biases everywhere, in the head too.
#include "core/model/backbone_table.h"
#include "core/model/blocks.h"
#include "core/model/layout_builder.h"

#include <ATen/ATen.h>

namespace ponderscope {

namespace {

constexpr const char* phi_blocks = "model.layers.";

std::string phi_block(std::int64_t l) {
    return phi_blocks + std::to_string(l) + ".";
}

class Phi final : public Backbone {
public:
    static ParameterLayout layout(const ModelConfig& config);
    Phi(const ModelConfig& config, const Parameters& parameters);

private:
    struct Layer {
        blocks::Norm input_layernorm;
        blocks::Linear q_proj, k_proj, v_proj, dense, fc1, fc2;
    };
    [[nodiscard]] at::Tensor layer(std::int64_t l, const at::Tensor& x, const Pass& pass) const override;
    [[nodiscard]] at::Tensor final_norm(const at::Tensor& x) const override {
        return blocks::normalise(x, weights_.final_layernorm);
    }

    struct Weights {
        std::vector<Layer> layers;
        blocks::Norm final_layernorm;
        at::Tensor head_bias;
    };
    static Weights declare(LayoutBuilder& builder, const ModelConfig& config);

    Weights weights_;
};

Phi::Weights Phi::declare(LayoutBuilder& builder, const ModelConfig& config) {
    const std::int64_t d = config.hidden_size;
    const std::int64_t m = config.intermediate_size;
    const std::int64_t queries = config.query_heads * config.head_dim;
    const std::int64_t keys = config.kv_heads * config.head_dim;
    Weights weights;
    builder.matrix("model.embed_tokens.weight", config.vocab_size, d);
    for (std::int64_t l = 0; l < config.layers; ++l) {
        const std::string name = phi_block(l);
        Layer layer;
        layer.input_layernorm = builder.norm(name + "input_layernorm", d, true);
        layer.q_proj = builder.linear(name + "self_attn.q_proj", queries, d, true);
        layer.k_proj = builder.linear(name + "self_attn.k_proj", keys, d, true);
        layer.v_proj = builder.linear(name + "self_attn.v_proj", keys, d, true);
        layer.dense = builder.linear(name + "self_attn.dense", d, queries, true);
        layer.fc1 = builder.linear(name + "mlp.fc1", m, d, true);
        layer.fc2 = builder.linear(name + "mlp.fc2", d, m, true);
        weights.layers.push_back(std::move(layer));
    }
    weights.final_layernorm = builder.norm("model.final_layernorm", d, true);
    builder.matrix("lm_head.weight", config.vocab_size, d);
    weights.head_bias = builder.vector("lm_head.bias", config.vocab_size, 0.0);
    return weights;
}

ParameterLayout Phi::layout(const ModelConfig& config) {
    LayoutBuilder builder(config);
    declare(builder, config);
    return builder.finish("model.embed_tokens.weight", "lm_head.weight", config.tied_embeddings,
                          {"rotary_emb.inv_freq"});
}

Phi::Phi(const ModelConfig& config, const Parameters& parameters)
    : Backbone(config, parameters, layout(config), phi_blocks) {
    LayoutBuilder builder(config, &parameters);
    weights_ = declare(builder, config);
    head_bias_ = weights_.head_bias;
}

at::Tensor Phi::layer(std::int64_t l, const at::Tensor& x, const Pass& pass) const {
    const Layer& w = weights_.layers[static_cast<std::size_t>(l)];
    const at::Tensor normed = blocks::normalise(x, w.input_layernorm);
    const at::Tensor through = blocks::attending(normed, pass);
    const auto heads = [&](const at::Tensor& rows, const blocks::Linear& projection, std::int64_t count) {
        return blocks::linear(rows, projection).view({rows.size(0), count, config_.head_dim});
    };
    const at::Tensor attended = blocks::self_attention(
        l, heads(through, w.q_proj, config_.query_heads), heads(normed, w.k_proj, config_.kv_heads),
        heads(normed, w.v_proj, config_.kv_heads), config_, pass);
    return blocks::add_mlp(blocks::add_linear(blocks::attending(x, pass), attended, w.dense), through, w.fc1,
                           w.fc2, config_.activation);
}

} // namespace

BackboneEntry phi_backbone() {
    return backbone_entry<Phi>(Architecture::phi);
}

} // namespace ponderscope
