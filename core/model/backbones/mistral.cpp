// SPDX-License-Identifier: GPL-3.0-or-later
// Relatives of Llama that differ from it in the config alone: Mistral and Ministral (windows), SmolLM3
// (layers without rotation), Granite (multipliers).
#include "core/model/backbones/llama.h"

namespace ponderscope {

BackboneEntry mistral_backbone() {
    return llama_entry<plain_llama>(Architecture::mistral);
}

BackboneEntry ministral_backbone() {
    return llama_entry<plain_llama>(Architecture::ministral);
}

BackboneEntry smollm3_backbone() {
    return llama_entry<biased_llama>(Architecture::smollm3);
}

BackboneEntry granite_backbone() {
    return llama_entry<biased_llama>(Architecture::granite);
}

} // namespace ponderscope
