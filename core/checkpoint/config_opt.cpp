// SPDX-License-Identifier: GPL-3.0-or-later
// OPT, Galactica and GeoGalactica: the keys and defaults of transformers' OPTConfig.
#include "core/checkpoint/config_reader.h"

namespace ponderscope {

void read_opt(const ConfigReader& reader, ModelConfig& config) {
    config.vocab_size = reader.size("vocab_size", 50272, config_limits::vocabulary);
    config.hidden_size = reader.size("hidden_size", 768, config_limits::width);
    config.layers = reader.size("num_hidden_layers", 12, config_limits::layers);
    read_head_counts(reader, config, "num_attention_heads", 12);
    config.head_dim = even_head_dim(reader, config, "hidden_size");
    config.intermediate_size = reader.size("ffn_dim", 3072, config_limits::width);
    config.max_positions = reader.size("max_position_embeddings", 2048, config_limits::positions);
    config.norm = NormKind::layer_norm;
    config.norm_eps = 1e-5; // the class has no key for it
    config.activation = reader.activation("activation_function", "relu");
    const bool biases = reader.flag("enable_bias", true);
    config.attention_bias = biases;
    config.mlp_bias = biases;
    config.tied_embeddings = reader.flag("tie_word_embeddings", true);
    config.embed_dim = reader.size_or_null("word_embed_proj_dim", config.hidden_size, config_limits::width);
    config.pre_norm = reader.flag("do_layer_norm_before", true);
    config.norm_affine = reader.flag("layer_norm_elementwise_affine", true);
    config.remove_final_norm = reader.flag("_remove_final_layer_norm", false);
    read_token_ids(reader, config, 2, 2);
}

} // namespace ponderscope
