// SPDX-License-Identifier: GPL-3.0-or-later
// Llama and the families that differ from it in LlamaTraits.
#include "core/model/backbones/llama.h"

namespace ponderscope {

namespace {

/// The traits of an architecture. The config has all other differences: windows, rotations, multipliers,
/// biases, norms over queries and keys, experts.
LlamaTraits traits_of(Architecture architecture) {
    LlamaTraits traits;
    switch (architecture) {
    case Architecture::qwen2:
        traits.output_bias = false;
        break;
    case Architecture::gpt_oss:
        traits.sinks = true;
        break;
    case Architecture::phi3:
        traits.fused = true;
        break;
    case Architecture::nanbeige:
        traits.q_norm = "self_attn.q_layernorm";
        traits.k_norm = "self_attn.k_layernorm";
        break;
    case Architecture::ouro: // also norms on the outputs of attention and MLP
        traits.after_attention = "input_layernorm_2";
        traits.after_mlp = "post_attention_layernorm_2";
        break;
    case Architecture::olmo2: // norms on the outputs of sublayers, not on the inputs
    case Architecture::olmo3:
        traits.before_attention = traits.before_mlp = nullptr;
        traits.after_attention = "post_attention_layernorm";
        traits.after_mlp = "post_feedforward_layernorm";
        break;
    case Architecture::gemma3: // an image model: the same stack with longer names
        traits.prefixes = {"language_model.", "model.language_model."};
        traits.other_parts = {"vision_tower.", "multi_modal_projector."};
        [[fallthrough]];
    case Architecture::gemma2: // norms before and after each sublayer
    case Architecture::gemma3_text:
        traits.after_attention = "post_attention_layernorm";
        traits.before_mlp = "pre_feedforward_layernorm";
        traits.after_mlp = "post_feedforward_layernorm";
        break;
    case Architecture::nanochat:
        // Norms without weights, one of them before the first block, and a plain MLP. The original norms of
        // queries and keys come after the rotation, which multiplies lengths by a factor. Here they come
        // before it, with eps divided by the square of the factor (llama.cpp).
        traits.entry_norm = true;
        traits.gated = false;
        traits.strict = true;
        break;
    default:
        break;
    }
    return traits;
}

} // namespace

#define PONDERSCOPE_LLAMA(name)                                                                              \
    std::unique_ptr<Backbone> name##_backbone(const ModelConfig& config, TensorBuilder& builder) {           \
        return make_llama(config, builder, traits_of(config.architecture));                                  \
    }
PONDERSCOPE_LLAMA(llama)
PONDERSCOPE_LLAMA(mistral)
PONDERSCOPE_LLAMA(ministral)
PONDERSCOPE_LLAMA(qwen2)
PONDERSCOPE_LLAMA(qwen3)
PONDERSCOPE_LLAMA(qwen3_moe)
PONDERSCOPE_LLAMA(phi3)
PONDERSCOPE_LLAMA(gemma2)
PONDERSCOPE_LLAMA(gemma3_text)
PONDERSCOPE_LLAMA(gemma3)
PONDERSCOPE_LLAMA(olmo2)
PONDERSCOPE_LLAMA(olmo3)
PONDERSCOPE_LLAMA(olmoe)
PONDERSCOPE_LLAMA(smollm3)
PONDERSCOPE_LLAMA(nanochat)
PONDERSCOPE_LLAMA(granite)
PONDERSCOPE_LLAMA(gpt_oss)
PONDERSCOPE_LLAMA(nanbeige)
PONDERSCOPE_LLAMA(ouro)
#undef PONDERSCOPE_LLAMA

} // namespace ponderscope
