// SPDX-License-Identifier: GPL-3.0-or-later
// Nanbeige is Llama with optional norms over each query and key head before the rotation. That the stack runs
// several times is the method's affair (looped), and so is the final norm after every pass.
#include "core/model/llama.h"

namespace ponderscope {

namespace {

LlamaTraits nanbeige_traits(const ModelConfig& config) {
    if (!config.qk_norm) {
        return {config.attention_bias};
    }
    return {config.attention_bias, "self_attn.q_layernorm", "self_attn.k_layernorm"};
}

} // namespace

BackboneEntry nanbeige_backbone() {
    return llama_entry<nanbeige_traits>(Architecture::nanbeige);
}

} // namespace ponderscope
