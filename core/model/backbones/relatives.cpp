// SPDX-License-Identifier: GPL-3.0-or-later
// Llama and the families that differ from it by traits.
#include "core/model/backbones/llama.h"
#include "core/model/make_backbone.h"

namespace ponderscope {

using Built = std::unique_ptr<Backbone>;

namespace {

constexpr const char* head_query_norm = "self_attn.q_norm";
constexpr const char* head_key_norm = "self_attn.k_norm";

/// config.attention_bias is of the output projection, too.
LlamaTraits with_output_bias(const ModelConfig& config) {
    return {.output_bias = config.attention_bias};
}

LlamaTraits with_query_and_key_norms(const ModelConfig& config) {
    return {.output_bias = config.attention_bias, .q_norm = head_query_norm, .k_norm = head_key_norm};
}

} // namespace

/// The norms per head are of the Depth-Attention authors' Llama, with a switch of their own. Their files hold
/// a norm that their code never applies.
Built llama_backbone(const ModelConfig& config, LayoutBuilder& builder) {
    return make_llama(config, builder,
                      config.depth.use_qk_norm ? with_query_and_key_norms(config) : with_output_bias(config));
}

// Mistral and Ministral (windows), SmolLM3 (layers without rotation), Granite (multipliers): the config says
// it all.
Built mistral_backbone(const ModelConfig& config, LayoutBuilder& builder) {
    return make_llama(config, builder, {});
}
Built ministral_backbone(const ModelConfig& config, LayoutBuilder& builder) {
    return make_llama(config, builder, {});
}
Built smollm3_backbone(const ModelConfig& config, LayoutBuilder& builder) {
    return make_llama(config, builder, with_output_bias(config));
}
Built granite_backbone(const ModelConfig& config, LayoutBuilder& builder) {
    return make_llama(config, builder, with_output_bias(config));
}

/// Biases on q, k and v but none on the output projection, and sliding windows in chosen layers.
Built qwen2_backbone(const ModelConfig& config, LayoutBuilder& builder) {
    return make_llama(config, builder, {});
}
/// A norm over each query and key head before the rotation.
Built qwen3_backbone(const ModelConfig& config, LayoutBuilder& builder) {
    return make_llama(config, builder, with_query_and_key_norms(config));
}

// Mixtures of experts: Qwen3-MoE (norms per head), OLMoE (norms over all heads together, q, k and v clipped)
// and GPT-OSS (a sink per head, a router with a bias, experts with biases).
Built qwen3_moe_backbone(const ModelConfig& config, LayoutBuilder& builder) {
    return make_llama(config, builder, with_query_and_key_norms(config));
}
Built olmoe_backbone(const ModelConfig& config, LayoutBuilder& builder) {
    return make_llama(config, builder, with_query_and_key_norms(config));
}
Built gpt_oss_backbone(const ModelConfig& config, LayoutBuilder& builder) {
    return make_llama(config, builder, {.output_bias = config.attention_bias, .sinks = true});
}

/// Fused projections, partial rotation and longrope.
Built phi3_backbone(const ModelConfig& config, LayoutBuilder& builder) {
    return make_llama(config, builder, {.fused = true});
}

/// Norms on what attention and MLP add to the stream, before they are added. That the stack runs several
/// times over its normed output, and when it stops, is the method's affair.
Built ouro_backbone(const ModelConfig& config, LayoutBuilder& builder) {
    return make_llama(config, builder,
                      {.after_attention = "input_layernorm_2", .after_mlp = "post_attention_layernorm_2"});
}

/// Optional norms over each query and key head before the rotation. The passes are the method's affair
/// (looped), and so is the final norm after every pass.
Built nanbeige_backbone(const ModelConfig& config, LayoutBuilder& builder) {
    LlamaTraits traits = with_output_bias(config);
    if (config.qk_norm) {
        traits.q_norm = "self_attn.q_layernorm";
        traits.k_norm = "self_attn.k_layernorm";
    }
    return make_llama(config, builder, traits);
}

// OLMo 2 and 3: norms on what a sublayer adds, none on what it reads, and norms over all query heads together
// and over all key heads.
Built olmo2_backbone(const ModelConfig& config, LayoutBuilder& builder) {
    LlamaTraits traits = with_query_and_key_norms(config);
    traits.before_attention = traits.before_mlp = nullptr;
    traits.after_attention = "post_attention_layernorm";
    traits.after_mlp = "post_feedforward_layernorm";
    return make_llama(config, builder, traits);
}
Built olmo3_backbone(const ModelConfig& config, LayoutBuilder& builder) {
    return olmo2_backbone(config, builder);
}

// Gemma 2 and 3: norms before and after each sublayer, scaled embeddings and a score scale of their own;
// Gemma 2 caps scores, Gemma 3 norms queries and keys per head. Norms multiply by 1 + w.
Built gemma2_backbone(const ModelConfig& config, LayoutBuilder& builder) {
    LlamaTraits traits = config.qk_norm ? with_query_and_key_norms(config) : with_output_bias(config);
    traits.after_attention = "post_attention_layernorm";
    traits.before_mlp = "pre_feedforward_layernorm";
    traits.after_mlp = "post_feedforward_layernorm";
    if (config.architecture == Architecture::gemma3) { // with images: the same stack under longer names
        traits.prefixes = {"language_model.", "model.language_model."};
        traits.other_parts = {"vision_tower.", "multi_modal_projector."};
    }
    return make_llama(config, builder, traits);
}
Built gemma3_text_backbone(const ModelConfig& config, LayoutBuilder& builder) {
    return gemma2_backbone(config, builder);
}
Built gemma3_backbone(const ModelConfig& config, LayoutBuilder& builder) {
    return gemma2_backbone(config, builder);
}

/// No weights in its norms, one of them before the first block, a rotation the other way round and a plain
/// MLP. The norms of queries and keys come after the rotation, which multiplies lengths by one factor: here
/// they come before, with an eps that is divided by its square.
Built nanochat_backbone(const ModelConfig& config, LayoutBuilder& builder) {
    LlamaTraits traits = with_query_and_key_norms(config);
    traits.entry_norm = true;
    traits.gated = false;
    traits.strict = true;
    return make_llama(config, builder, traits);
}

} // namespace ponderscope
