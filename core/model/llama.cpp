// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/llama.h"

#include "core/model/layout_builder.h"

#include <ATen/ATen.h>

namespace ponderscope {

namespace {

constexpr const char* block_prefix = "model.layers.";

std::string block(std::int64_t l) {
    return block_prefix + std::to_string(l) + ".";
}

} // namespace

ParameterLayout Llama::layout(const ModelConfig& config) {
    const std::int64_t d = config.hidden_size;
    const std::int64_t queries = config.query_heads * config.head_dim;
    const std::int64_t keys = config.kv_heads * config.head_dim;
    LayoutBuilder builder;
    builder.matrix("model.embed_tokens.weight", config.vocab_size, d);
    for (std::int64_t l = 0; l < config.layers; ++l) {
        builder.norm(block(l) + "input_layernorm", d, false);
        builder.linear(block(l) + "self_attn.q_proj", queries, d, config.attention_bias);
        builder.linear(block(l) + "self_attn.k_proj", keys, d, config.attention_bias);
        builder.linear(block(l) + "self_attn.v_proj", keys, d, config.attention_bias);
        builder.linear(block(l) + "self_attn.o_proj", d, queries, config.attention_bias);
        builder.norm(block(l) + "post_attention_layernorm", d, false);
        builder.linear(block(l) + "mlp.gate_proj", config.intermediate_size, d, config.mlp_bias);
        builder.linear(block(l) + "mlp.up_proj", config.intermediate_size, d, config.mlp_bias);
        builder.linear(block(l) + "mlp.down_proj", d, config.intermediate_size, config.mlp_bias);
    }
    builder.norm("model.norm", d, false);
    builder.matrix("lm_head.weight", config.vocab_size, d);
    return builder.finish("model.embed_tokens.weight", "lm_head.weight", config.tied_embeddings,
                          {"rotary_emb.inv_freq"});
}

Llama::Llama(const ModelConfig& config, const Parameters& parameters)
    : Backbone(config, parameters, layout(config), block_prefix) {
    for (std::int64_t l = 0; l < config.layers; ++l) {
        layers_.push_back({blocks::Norm::from(parameters, block(l) + "input_layernorm", config),
                           blocks::Norm::from(parameters, block(l) + "post_attention_layernorm", config),
                           blocks::Linear::from(parameters, block(l) + "self_attn.q_proj"),
                           blocks::Linear::from(parameters, block(l) + "self_attn.k_proj"),
                           blocks::Linear::from(parameters, block(l) + "self_attn.v_proj"),
                           blocks::Linear::from(parameters, block(l) + "self_attn.o_proj"),
                           blocks::Linear::from(parameters, block(l) + "mlp.gate_proj"),
                           blocks::Linear::from(parameters, block(l) + "mlp.up_proj"),
                           blocks::Linear::from(parameters, block(l) + "mlp.down_proj")});
    }
    norm_ = blocks::Norm::from(parameters, "model.norm", config);
}

at::Tensor Llama::attention(std::int64_t l, const at::Tensor& input, const Pass& pass) const {
    const Layer& w = layers_[static_cast<std::size_t>(l)];
    const auto heads = [&](const blocks::Linear& projection, std::int64_t count, Workspace::Use use) {
        return blocks::linear(input, projection, pass, use).view({input.size(0), count, config_.head_dim});
    };
    return blocks::self_attention(l, heads(w.q_proj, config_.query_heads, Workspace::Use::projection),
                                  heads(w.k_proj, config_.kv_heads, Workspace::Use::key_projection),
                                  heads(w.v_proj, config_.kv_heads, Workspace::Use::value_projection),
                                  config_, pass);
}

at::Tensor Llama::layer(std::int64_t l, const at::Tensor& x, const Pass& pass) const {
    const Layer& w = layers_[static_cast<std::size_t>(l)];
    const at::Tensor normed = blocks::normalise(x, w.input_layernorm, pass, Workspace::Use::normed);
    const at::Tensor attended = blocks::add_linear(x, attention(l, normed, pass), w.o_proj, pass);
    const at::Tensor mlp_input =
        blocks::normalise(attended, w.post_attention_layernorm, pass, Workspace::Use::normed);
    return blocks::add_gated_mlp(attended, mlp_input, w.gate_proj, w.up_proj, w.down_proj, config_.activation,
                                 pass);
}

at::Tensor Llama::final_norm(const at::Tensor& x) const {
    return blocks::normalise(x, norm_);
}

} // namespace ponderscope
