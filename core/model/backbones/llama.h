// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/backbones/block_stack.h"

#include <memory>
#include <string>
#include <vector>

namespace ponderscope {

/// Differences of Llama's relatives in tensors. Options without tensors are in the config: windows,
/// rotations, scales, how a norm's weight is meant.
struct LlamaTraits {
    bool output_bias = true; ///< where q, k and v have biases, so has self_attn.o_proj
    // Norms over queries and keys, each head or all (config.qk_norm_all_heads), where the config has them.
    // The key's may come after the rotation: config.depth.key_norm_after_rope.
    const char* q_norm = "self_attn.q_norm";
    const char* k_norm = "self_attn.k_norm";
    // Norms of a block: of a sublayer's input and of its output. nullptr: none.
    const char* before_attention = "input_layernorm";
    const char* after_attention = nullptr;
    const char* before_mlp = "post_attention_layernorm";
    const char* after_mlp = nullptr;
    bool sinks = false;      ///< self_attn.sinks: a score of each head that carries no value
    bool entry_norm = false; ///< a norm before the first block
    bool fused = false;  ///< self_attn.qkv_proj and mlp.gate_up_proj in the place of three and two tensors
    bool gated = true;   ///< else mlp.fc1, mlp.fc2: fc2(act(fc1 x))
    bool strict = false; ///< a file with further tensors is of another model
    std::vector<std::string> prefixes = {};    ///< of ParameterLayout
    std::vector<std::string> other_parts = {}; ///< of ParameterLayout
};

/// Llama and its kind: RMSNorm, rotary embedding, grouped KV heads, gated MLP; optional head size of its own,
/// biases and norms on q and k. The residual sums may be replaced by another structure (residual.h). With
/// adapters (config.tah), a pass may run through the weights that they were merged into.
std::unique_ptr<Backbone> make_llama(const ModelConfig& config, TensorBuilder& builder,
                                     const LlamaTraits& traits);

} // namespace ponderscope
