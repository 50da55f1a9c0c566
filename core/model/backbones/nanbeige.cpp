// SPDX-License-Identifier: GPL-3.0-or-later
// Nanbeige is Llama with optional norms over each query and key head before the rotation. That the stack runs
// several times is the method's affair (looped), and so is the final norm after every pass.
#include "core/model/backbones/llama.h"

namespace ponderscope {

namespace {

LlamaTraits nanbeige_traits(const ModelConfig& config) {
    LlamaTraits traits{.output_bias = config.attention_bias};
    if (config.qk_norm) {
        traits.q_norm = "self_attn.q_layernorm";
        traits.k_norm = "self_attn.k_layernorm";
    }
    return traits;
}

} // namespace

BackboneEntry nanbeige_backbone() {
    return llama_entry<nanbeige_traits>(Architecture::nanbeige);
}

} // namespace ponderscope
