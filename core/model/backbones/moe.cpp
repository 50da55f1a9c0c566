// SPDX-License-Identifier: GPL-3.0-or-later
// Mixtures of experts on Llama's stack: Qwen3-MoE (norms per head), OLMoE (norms over all heads together, q,
// k and v clipped) and GPT-OSS (a sink per head, a router with a bias, experts with biases).
#include "core/model/backbones/llama.h"

namespace ponderscope {

namespace {

LlamaTraits normed_mixture_traits(const ModelConfig& config) {
    return {.output_bias = config.attention_bias, .q_norm = "self_attn.q_norm", .k_norm = "self_attn.k_norm"};
}

LlamaTraits gpt_oss_traits(const ModelConfig& config) {
    return {.output_bias = config.attention_bias, .sinks = true};
}

} // namespace

BackboneEntry qwen3_moe_backbone() {
    return llama_entry<normed_mixture_traits>(Architecture::qwen3_moe);
}

BackboneEntry olmoe_backbone() {
    return llama_entry<normed_mixture_traits>(Architecture::olmoe);
}

BackboneEntry gpt_oss_backbone() {
    return llama_entry<gpt_oss_traits>(Architecture::gpt_oss);
}

} // namespace ponderscope
