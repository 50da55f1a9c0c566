// SPDX-License-Identifier: GPL-3.0-or-later
// Qwen2 is Llama with biases on q, k and v but none on the output projection, and sliding windows in chosen
// layers.
#include "core/model/backbones/llama.h"

namespace ponderscope {

BackboneEntry qwen2_backbone() {
    return llama_entry<plain_llama>(Architecture::qwen2);
}

} // namespace ponderscope
