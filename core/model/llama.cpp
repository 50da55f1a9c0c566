// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/llama.h"

#include "core/model/layout_builder.h"
#include "core/model/residual.h"

#include <ATen/ATen.h>

namespace ponderscope {

namespace {

constexpr const char* block_prefix = "model.layers.";

std::string block_name(std::int64_t l) {
    return block_prefix + std::to_string(l) + ".";
}

/// The norms per head are of the Depth-Attention authors' Llama, with a switch of their own.
LlamaTraits traits_of_llama(const ModelConfig& config) {
    if (!config.depth.use_qk_norm) {
        return {config.attention_bias};
    }
    return {config.attention_bias, "self_attn.q_norm", "self_attn.k_norm"};
}

} // namespace

ParameterLayout Llama::layout(const ModelConfig& config, const LlamaTraits& traits) {
    const std::int64_t d = config.hidden_size;
    const std::int64_t queries = config.query_heads * config.head_dim;
    const std::int64_t keys = config.kv_heads * config.head_dim;
    LayoutBuilder builder;
    builder.matrix("model.embed_tokens.weight", config.vocab_size, d);
    for (std::int64_t l = 0; l < config.layers; ++l) {
        builder.norm(block_name(l) + "input_layernorm", d, false);
        builder.linear(block_name(l) + "self_attn.q_proj", queries, d, config.attention_bias);
        builder.linear(block_name(l) + "self_attn.k_proj", keys, d, config.attention_bias);
        builder.linear(block_name(l) + "self_attn.v_proj", keys, d, config.attention_bias);
        builder.linear(block_name(l) + "self_attn.o_proj", d, queries, traits.output_bias);
        if (traits.q_norm != nullptr) {
            builder.norm(block_name(l) + traits.q_norm, config.head_dim, false);
            builder.norm(block_name(l) + traits.k_norm, config.head_dim, false);
        }
        builder.norm(block_name(l) + "post_attention_layernorm", d, false);
        builder.linear(block_name(l) + "mlp.gate_proj", config.intermediate_size, d, config.mlp_bias);
        builder.linear(block_name(l) + "mlp.up_proj", config.intermediate_size, d, config.mlp_bias);
        builder.linear(block_name(l) + "mlp.down_proj", d, config.intermediate_size, config.mlp_bias);
    }
    builder.norm("model.norm", d, false);
    builder.matrix("lm_head.weight", config.vocab_size, d);
    // The files of Depth-Attention's authors hold a norm that their code never applies.
    ParameterLayout layout =
        builder.finish("model.embed_tokens.weight", "lm_head.weight", config.tied_embeddings,
                       {"rotary_emb.inv_freq", "lm_head_layernorm.weight"});
    for (TensorSpec& spec : residual_tensors(config)) {
        layout.tensors.push_back(std::move(spec));
    }
    return layout;
}

Llama::Llama(const ModelConfig& config, const Parameters& parameters, const LlamaTraits& traits)
    : Backbone(config, parameters, layout(config, traits), block_prefix) {
    for (std::int64_t l = 0; l < config.layers; ++l) {
        layers_.push_back({blocks::Norm::from(parameters, block_name(l) + "input_layernorm", config),
                           blocks::Norm::from(parameters, block_name(l) + "post_attention_layernorm", config),
                           blocks::Linear::from(parameters, block_name(l) + "self_attn.q_proj"),
                           blocks::Linear::from(parameters, block_name(l) + "self_attn.k_proj"),
                           blocks::Linear::from(parameters, block_name(l) + "self_attn.v_proj"),
                           blocks::Linear::from(parameters, block_name(l) + "self_attn.o_proj"),
                           blocks::Linear::from(parameters, block_name(l) + "mlp.gate_proj"),
                           blocks::Linear::from(parameters, block_name(l) + "mlp.up_proj"),
                           blocks::Linear::from(parameters, block_name(l) + "mlp.down_proj"),
                           {}});
        if (traits.q_norm != nullptr) {
            layers_.back().head_norms = {
                blocks::Norm::from(parameters, block_name(l) + traits.q_norm, config),
                blocks::Norm::from(parameters, block_name(l) + traits.k_norm, config),
                config.depth.key_norm_after_rope};
        }
    }
    norm_ = blocks::Norm::from(parameters, "model.norm", config);
}

at::Tensor Llama::attention(std::int64_t l, const at::Tensor& input, const Pass& pass) const {
    const Layer& w = layers_[static_cast<std::size_t>(l)];
    const auto heads = [&](const at::Tensor& rows, const blocks::Linear& projection, std::int64_t count,
                           Workspace::Use use) {
        return blocks::linear(rows, projection, pass, use).view({rows.size(0), count, config_.head_dim});
    };
    const at::Tensor asking = pass.mixer == nullptr ? blocks::attending(input, pass) : input;
    return blocks::self_attention(l, heads(asking, w.q_proj, config_.query_heads, Workspace::Use::projection),
                                  heads(input, w.k_proj, config_.kv_heads, Workspace::Use::key_projection),
                                  heads(input, w.v_proj, config_.kv_heads, Workspace::Use::value_projection),
                                  config_, pass, w.head_norms);
}

at::Tensor Llama::layer(std::int64_t l, const at::Tensor& x, const Pass& pass) const {
    const Layer& w = layers_[static_cast<std::size_t>(l)];
    const at::Tensor normed = blocks::normalise(x, w.input_layernorm, pass, Workspace::Use::normed);
    const at::Tensor attended =
        blocks::add_linear(blocks::attending(x, pass), attention(l, normed, pass), w.o_proj, pass);
    const at::Tensor mlp_input =
        blocks::normalise(attended, w.post_attention_layernorm, pass, Workspace::Use::normed);
    return blocks::add_gated_mlp(attended, mlp_input, w.gate_proj, w.up_proj, w.down_proj, config_.activation,
                                 pass);
}

at::Tensor Llama::sublayer(std::int64_t c, const at::Tensor& x, const Pass& pass) const {
    const Layer& w = layers_[static_cast<std::size_t>(c / 2)];
    if (c % 2 == 0) {
        const at::Tensor normed = blocks::normalise(x, w.input_layernorm, pass, Workspace::Use::normed);
        return blocks::linear(attention(c / 2, normed, pass), w.o_proj, pass, Workspace::Use::projection);
    }
    const at::Tensor normed = blocks::normalise(x, w.post_attention_layernorm, pass, Workspace::Use::normed);
    return blocks::add_gated_mlp(at::zeros_like(x), normed, w.gate_proj, w.up_proj, w.down_proj,
                                 config_.activation, pass);
}

at::Tensor Llama::final_norm(const at::Tensor& x) const {
    return blocks::normalise(x, norm_);
}

BackboneEntry llama_backbone() {
    return llama_entry<traits_of_llama>(Architecture::llama);
}

} // namespace ponderscope
