// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/backbone_table.h"
#include "core/model/blocks.h"
#include "core/model/layout_builder.h"

#include <ATen/ATen.h>

namespace ponderscope {

namespace {

constexpr const char* gpt_neox_blocks = "gpt_neox.layers.";

std::string gpt_neox_block(std::int64_t l) {
    return gpt_neox_blocks + std::to_string(l) + ".";
}

/// GPT-NeoX and Pythia: LayerNorm, QKV fused and interleaved per head, partial rotary, parallel or sequential
/// residual.
class GptNeox final : public Backbone {
public:
    static ParameterLayout layout(const ModelConfig& config);
    GptNeox(const ModelConfig& config, const Parameters& parameters);

private:
    struct Layer {
        blocks::Norm input_layernorm, post_attention_layernorm;
        blocks::Linear query_key_value, dense, dense_h_to_4h, dense_4h_to_h;
    };
    [[nodiscard]] at::Tensor layer(std::int64_t l, const at::Tensor& x, const Pass& pass) const override;
    [[nodiscard]] at::Tensor attention(std::int64_t l, const at::Tensor& input, const Pass& pass) const;
    [[nodiscard]] at::Tensor final_norm(const at::Tensor& x) const override;

    struct Weights {
        std::vector<Layer> layers;
        blocks::Norm final_layer_norm;
    };
    static Weights declare(LayoutBuilder& builder, const ModelConfig& config);

    Weights weights_;
};

GptNeox::Weights GptNeox::declare(LayoutBuilder& builder, const ModelConfig& config) {
    const std::int64_t d = config.hidden_size;
    const std::int64_t m = config.intermediate_size;
    const std::int64_t heads = config.query_heads * config.head_dim;
    Weights weights;
    builder.matrix("gpt_neox.embed_in.weight", config.vocab_size, d);
    for (std::int64_t l = 0; l < config.layers; ++l) {
        const std::string name = gpt_neox_block(l);
        Layer layer;
        layer.input_layernorm = builder.norm(name + "input_layernorm", d, true);
        layer.post_attention_layernorm = builder.norm(name + "post_attention_layernorm", d, true);
        layer.query_key_value =
            builder.linear(name + "attention.query_key_value", 3 * heads, d, config.attention_bias);
        layer.dense = builder.linear(name + "attention.dense", d, heads, config.attention_bias);
        layer.dense_h_to_4h = builder.linear(name + "mlp.dense_h_to_4h", m, d, true);
        layer.dense_4h_to_h = builder.linear(name + "mlp.dense_4h_to_h", d, m, true);
        weights.layers.push_back(std::move(layer));
    }
    weights.final_layer_norm = builder.norm("gpt_neox.final_layer_norm", d, true);
    builder.matrix("embed_out.weight", config.vocab_size, d, {"lm_head.weight"});
    return weights;
}

ParameterLayout GptNeox::layout(const ModelConfig& config) {
    LayoutBuilder builder(config);
    declare(builder, config);
    return builder.finish("gpt_neox.embed_in.weight", "embed_out.weight", config.tied_embeddings,
                          {"attention.bias", "attention.masked_bias", "rotary_emb.inv_freq"});
}

GptNeox::GptNeox(const ModelConfig& config, const Parameters& parameters)
    : Backbone(config, parameters, layout(config), gpt_neox_blocks) {
    LayoutBuilder builder(config, &parameters);
    weights_ = declare(builder, config);
}

at::Tensor GptNeox::attention(std::int64_t l, const at::Tensor& input, const Pass& pass) const {
    const Layer& w = weights_.layers[static_cast<std::size_t>(l)];
    const std::int64_t size = config_.head_dim;
    // Per head: its query, its key, its value, then the next head.
    const at::Tensor qkv =
        blocks::linear(input, w.query_key_value).view({input.size(0), config_.query_heads, 3 * size});
    return blocks::self_attention(l, qkv.narrow(2, 0, size), qkv.narrow(2, size, size),
                                  qkv.narrow(2, 2 * size, size), config_, pass);
}

at::Tensor GptNeox::layer(std::int64_t l, const at::Tensor& x, const Pass& pass) const {
    const Layer& w = weights_.layers[static_cast<std::size_t>(l)];
    const at::Tensor normed = blocks::normalise(x, w.input_layernorm);
    const at::Tensor through = blocks::attending(x, pass);
    if (config_.parallel_residual) {
        // Both norms read the layer's input.
        const at::Tensor mlp_input = blocks::normalise(through, w.post_attention_layernorm);
        const at::Tensor attended = blocks::add_linear(through, attention(l, normed, pass), w.dense);
        return blocks::add_mlp(attended, mlp_input, w.dense_h_to_4h, w.dense_4h_to_h, config_.activation);
    }
    const at::Tensor attended = blocks::add_linear(through, attention(l, normed, pass), w.dense);
    const at::Tensor mlp_input = blocks::normalise(attended, w.post_attention_layernorm);
    return blocks::add_mlp(attended, mlp_input, w.dense_h_to_4h, w.dense_4h_to_h, config_.activation);
}

at::Tensor GptNeox::final_norm(const at::Tensor& x) const {
    return blocks::normalise(x, weights_.final_layer_norm);
}

} // namespace

BackboneEntry gpt_neox_backbone() {
    return backbone_entry<GptNeox>(Architecture::gpt_neox);
}

} // namespace ponderscope
