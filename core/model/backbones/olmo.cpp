// SPDX-License-Identifier: GPL-3.0-or-later
// OLMo 2 and 3 are Llama with norms on what a sublayer adds, none on what it reads, and norms over all query
// heads together and over all key heads.
#include "core/model/backbones/llama.h"

namespace ponderscope {

namespace {

LlamaTraits olmo_traits(const ModelConfig& config) {
    return {.output_bias = config.attention_bias,
            .q_norm = "self_attn.q_norm",
            .k_norm = "self_attn.k_norm",
            .before_attention = nullptr,
            .after_attention = "post_attention_layernorm",
            .before_mlp = nullptr,
            .after_mlp = "post_feedforward_layernorm"};
}

} // namespace

BackboneEntry olmo2_backbone() {
    return llama_entry<olmo_traits>(Architecture::olmo2);
}

BackboneEntry olmo3_backbone() {
    return llama_entry<olmo_traits>(Architecture::olmo3);
}

} // namespace ponderscope
