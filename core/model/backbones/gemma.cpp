// SPDX-License-Identifier: GPL-3.0-or-later
// Gemma 2 and 3 are Llama with norms before and after each sublayer, scaled embeddings and a score scale of
// their own; Gemma 2 caps scores, Gemma 3 norms queries and keys per head. Norms multiply by 1 + w. Gemma 3
// with images holds the same stack under longer names.
#include "core/model/backbones/llama.h"

namespace ponderscope {

namespace {

LlamaTraits gemma_traits(const ModelConfig& config) {
    LlamaTraits traits{.output_bias = config.attention_bias,
                       .after_attention = "post_attention_layernorm",
                       .before_mlp = "pre_feedforward_layernorm",
                       .after_mlp = "post_feedforward_layernorm"};
    if (config.qk_norm) {
        traits.q_norm = "self_attn.q_norm";
        traits.k_norm = "self_attn.k_norm";
    }
    if (config.architecture == Architecture::gemma3) {
        traits.prefixes = {"language_model.", "model.language_model."};
        traits.other_parts = {"vision_tower.", "multi_modal_projector."};
    }
    return traits;
}

} // namespace

BackboneEntry gemma2_backbone() {
    return llama_entry<gemma_traits>(Architecture::gemma2);
}

BackboneEntry gemma3_text_backbone() {
    return llama_entry<gemma_traits>(Architecture::gemma3_text);
}

BackboneEntry gemma3_backbone() {
    return llama_entry<gemma_traits>(Architecture::gemma3);
}

} // namespace ponderscope
