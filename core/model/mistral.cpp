// SPDX-License-Identifier: GPL-3.0-or-later
// Mistral is Llama whose layers may see a sliding window of keys: a matter of the config alone.
#include "core/model/llama.h"

namespace ponderscope {

BackboneEntry mistral_backbone() {
    return llama_entry<plain_llama>(Architecture::mistral);
}

} // namespace ponderscope
