// SPDX-License-Identifier: GPL-3.0-or-later
// Qwen3 is Llama with an RMSNorm over each query and key head before the rotation, and sliding windows in
// chosen layers.
#include "core/model/backbones/llama.h"

namespace ponderscope {

namespace {

LlamaTraits qwen3_traits(const ModelConfig& config) {
    return {.output_bias = config.attention_bias, .q_norm = "self_attn.q_norm", .k_norm = "self_attn.k_norm"};
}

} // namespace

BackboneEntry qwen3_backbone() {
    return llama_entry<qwen3_traits>(Architecture::qwen3);
}

} // namespace ponderscope
