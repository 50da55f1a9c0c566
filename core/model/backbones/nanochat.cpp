// SPDX-License-Identifier: GPL-3.0-or-later
// nanochat is Llama without weights in its norms, one of them before the first block, with a rotation the
// other way round and a plain MLP. The norms of queries and keys come after the rotation, which
// multiplies lengths by one factor: here they come before, with an eps that is divided by its square.
#include "core/model/backbones/llama.h"

namespace ponderscope {

namespace {

LlamaTraits nanochat_traits(const ModelConfig& config) {
    return {.output_bias = config.attention_bias,
            .q_norm = "self_attn.q_norm",
            .k_norm = "self_attn.k_norm",
            .entry_norm = true,
            .gated = false,
            .strict = true};
}

} // namespace

BackboneEntry nanochat_backbone() {
    return llama_entry<nanochat_traits>(Architecture::nanochat);
}

} // namespace ponderscope
