// SPDX-License-Identifier: GPL-3.0-or-later
// GPT-NeoX and Pythia: the keys and defaults of transformers' GPTNeoXConfig.
#include "core/checkpoint/config_reader.h"

namespace ponderscope {

void read_gpt_neox(const ConfigReader& reader, ModelConfig& config) {
    config.vocab_size = reader.size("vocab_size", 50432, config_limits::vocabulary);
    config.hidden_size = reader.size("hidden_size", 6144, config_limits::width);
    config.layers = reader.size("num_hidden_layers", 44, config_limits::layers);
    read_head_counts(reader, config, "num_attention_heads", 64);
    config.head_dim = even_head_dim(reader, config, "hidden_size");
    reader.refuse_unless("head_dim", config.head_dim,
                         "GPT-NeoX heads are hidden_size / num_attention_heads wide: correct the file");
    config.intermediate_size = reader.size("intermediate_size", 24576, config_limits::width);
    config.max_positions = reader.size("max_position_embeddings", 2048, config_limits::positions);
    config.norm = NormKind::layer_norm;
    config.norm_eps = reader.positive("layer_norm_eps", 1e-5, true);
    config.activation = reader.activation("hidden_act", "gelu");
    config.parallel_residual = reader.flag("use_parallel_residual", true);
    config.attention_bias = reader.flag("attention_bias", true);
    config.mlp_bias = true;
    config.tied_embeddings = reader.flag("tie_word_embeddings", false);
    read_token_ids(reader, config, 0, 2);

    const JsonObject& json = reader.json();
    // The architecture has its own two names; what other architectures call these is not read.
    const std::optional<double> other_theta = json.number("rope_theta");
    if (other_theta && *other_theta != json.number("rotary_emb_base").value_or(10000.0) &&
        !json.has("rope_parameters")) {
        reader.notice("\"rope_theta\" is ignored: GPT-NeoX reads \"rotary_emb_base\".");
    }
    const std::optional<double> other_part = json.number("partial_rotary_factor");
    if (other_part && *other_part != json.number("rotary_pct").value_or(0.25)) {
        reader.notice("\"partial_rotary_factor\" is ignored: GPT-NeoX reads \"rotary_pct\".");
    }
    read_rope(reader, config, {"rotary_emb_base", 10000.0, "rotary_pct", 0.25});
}

} // namespace ponderscope
