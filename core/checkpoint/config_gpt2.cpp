// SPDX-License-Identifier: GPL-3.0-or-later
// GPT-2: the keys and defaults of transformers' GPT2Config, which also answers to the common names of other
// classes.
#include "core/checkpoint/config_reader.h"

namespace ponderscope {

void read_gpt2(const ConfigReader& reader, ModelConfig& config) {
    config.vocab_size = reader.size("vocab_size", 50257, config_limits::vocabulary);
    const std::string_view width = reader.either("n_embd", "hidden_size");
    config.hidden_size = reader.size(width, 768, config_limits::width);
    config.layers = reader.size(reader.either("n_layer", "num_hidden_layers"), 12, config_limits::layers);
    read_head_counts(reader, config, reader.either("n_head", "num_attention_heads"), 12);
    config.head_dim = even_head_dim(reader, config, width);
    config.max_positions =
        reader.size(reader.either("n_positions", "max_position_embeddings"), 1024, config_limits::positions);
    config.intermediate_size = reader.size_or_null("n_inner", 4 * config.hidden_size, config_limits::width);
    config.norm = NormKind::layer_norm;
    config.norm_eps = reader.positive("layer_norm_epsilon", 1e-5, true);
    config.activation = reader.activation("activation_function", "gelu_new");
    config.attention_bias = true;
    config.mlp_bias = true;
    config.tied_embeddings = reader.flag("tie_word_embeddings", true);
    config.scale_attn_weights = reader.flag("scale_attn_weights", true);
    config.scale_attn_by_inverse_layer_idx = reader.flag("scale_attn_by_inverse_layer_idx", false);
    read_token_ids(reader, config, 50256, 50256);
}

} // namespace ponderscope
