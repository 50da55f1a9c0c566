// SPDX-License-Identifier: GPL-3.0-or-later
// Ouro is Llama with norms on what attention and MLP add to the stream, before they are added. That the stack
// runs several times over its normed output, and when it stops, is the method's affair.
#include "core/model/backbones/llama.h"

namespace ponderscope {

namespace {

LlamaTraits ouro_traits(const ModelConfig&) {
    return {.after_attention = "input_layernorm_2", .after_mlp = "post_attention_layernorm_2"};
}

} // namespace

BackboneEntry ouro_backbone() {
    return llama_entry<ouro_traits>(Architecture::ouro);
}

} // namespace ponderscope
