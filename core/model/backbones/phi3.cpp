// SPDX-License-Identifier: GPL-3.0-or-later
// Phi-3 and Phi-4 are Llama with fused projections, partial rotation and longrope.
#include "core/model/backbones/llama.h"

namespace ponderscope {

namespace {

LlamaTraits phi3_traits(const ModelConfig&) {
    return {.fused = true};
}

} // namespace

BackboneEntry phi3_backbone() {
    return llama_entry<phi3_traits>(Architecture::phi3);
}

} // namespace ponderscope
