// SPDX-License-Identifier: GPL-3.0-or-later
// Phi-1, 1.5 and 2: the keys and defaults of transformers' PhiConfig.
#include "core/checkpoint/config_reader.h"

namespace ponderscope {

void read_phi(const ConfigReader& reader, ModelConfig& config) {
    config.vocab_size = reader.size("vocab_size", 51200, config_limits::vocabulary);
    config.hidden_size = reader.size("hidden_size", 2048, config_limits::width);
    config.layers = reader.size("num_hidden_layers", 24, config_limits::layers);
    read_head_counts(reader, config, "num_attention_heads", 32);
    config.kv_heads = reader.size_or_null("num_key_value_heads", config.query_heads, config_limits::heads);
    if (config.query_heads % config.kv_heads != 0) {
        reader.json().fail("num_key_value_heads", "a divisor of the number of query heads, " +
                                                      std::to_string(config.query_heads) + ",");
    }
    config.head_dim = even_head_dim(reader, config, "hidden_size");
    config.intermediate_size = reader.size("intermediate_size", 8192, config_limits::width);
    config.max_positions = reader.size("max_position_embeddings", 2048, config_limits::positions);
    config.norm = NormKind::layer_norm;
    config.norm_eps = reader.positive("layer_norm_eps", 1e-5, true);
    config.activation = reader.activation("hidden_act", "gelu_new");
    config.parallel_residual = true;
    config.attention_bias = true;
    config.mlp_bias = true;
    config.tied_embeddings = reader.flag("tie_word_embeddings", false);
    reader.refuse_unless("qk_layernorm", false, "this build cannot run the checkpoint");
    read_token_ids(reader, config, 1, 2);
    read_rope(reader, config, {"rope_theta", 10000.0, "partial_rotary_factor", 0.5});
}

} // namespace ponderscope
