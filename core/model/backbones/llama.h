// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/backbones/block_stack.h"

#include <memory>
#include <string>
#include <vector>

namespace ponderscope {

/// Tensors that differ between Llama and its relatives. Other differences are in the config: windows,
/// rotations, scales, the use of a norm's weight.
struct LlamaTraits {
    bool output_bias = true; ///< self_attn.o_proj has a bias if q, k and v have biases
    // Names of the norms over queries and keys, for each head or for all heads (config.qk_norm_all_heads).
    // The key's norm may come after the rotation (config.depth.key_norm_after_rope).
    const char* q_norm = "self_attn.q_norm";
    const char* k_norm = "self_attn.k_norm";
    // Names of the norms of a sublayer's input and output. nullptr: no norm.
    const char* before_attention = "input_layernorm";
    const char* after_attention = nullptr;
    const char* before_mlp = "post_attention_layernorm";
    const char* after_mlp = nullptr;
    bool sinks = false;      ///< self_attn.sinks: see ScoreExtras
    bool entry_norm = false; ///< a norm before the first block
    bool fused = false;      ///< self_attn.qkv_proj replaces q, k, v; mlp.gate_up_proj replaces gate, up
    bool gated = true;       ///< false: mlp.fc1 and mlp.fc2, fc2(act(fc1 x))
    bool strict = false;     ///< an unused tensor in the file is an error
    std::vector<std::string> prefixes = {};    ///< see ParameterLayout
    std::vector<std::string> other_parts = {}; ///< see ParameterLayout
};

/// Llama and its relatives: RMSNorm, rotary embedding, grouped KV heads, gated MLP; optionally a separate
/// head size, biases, and norms on q and k. Another structure (residual.h) may replace the residual sums.
/// With adapters (config.tah), a pass may use the weights into which the adapters were merged.
std::unique_ptr<Backbone> make_llama(const ModelConfig& config, TensorBuilder& builder,
                                     const LlamaTraits& traits);

} // namespace ponderscope
