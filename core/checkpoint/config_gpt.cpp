// SPDX-License-Identifier: GPL-3.0-or-later
// Models with layer norms: keys and defaults of transformers' GPT2Config (which also accepts the key names of
// other classes), GPTNeoXConfig (Pythia), OPTConfig (Galactica) and PhiConfig (Phi-1, 1.5 and 2).
#include "core/checkpoint/config_reader.h"

namespace ponderscope {

void read_gpt2(const ConfigReader& reader, ModelConfig& config) {
    read_sizes(reader, config,
               {.vocab_size = 50257,
                .hidden_size = 768,
                .layers = 12,
                .heads = 12,
                .max_positions = 1024,
                .bos = 50256,
                .eos = 50256,
                .norm_eps = 1e-5,
                .tied = true,
                .activation = Activation::gelu_tanh,
                .norm = NormKind::layer_norm,
                .hidden_key = reader.either("n_embd", "hidden_size"),
                .layers_key = reader.either("n_layer", "num_hidden_layers"),
                .heads_key = reader.either("n_head", "num_attention_heads"),
                .positions_key = reader.either("n_positions", "max_position_embeddings"),
                .activation_key = "activation_function",
                .intermediate_key = {},
                .kv_heads_key = {},
                .head_dim_key = {},
                .norm_key = "layer_norm_epsilon"});
    config.intermediate_size = reader.size_or_null("n_inner", 4 * config.hidden_size, config_limits::width);
    config.attention_bias = true;
    config.mlp_bias = true;
    config.scale_attn_weights = reader.flag("scale_attn_weights", true);
    config.scale_attn_by_inverse_layer_idx = reader.flag("scale_attn_by_inverse_layer_idx", false);
}

void read_gpt_neox(const ConfigReader& reader, ModelConfig& config) {
    read_sizes(reader, config,
               {.vocab_size = 50432,
                .hidden_size = 6144,
                .intermediate_size = 24576,
                .layers = 44,
                .heads = 64,
                .bos = 0,
                .norm_eps = 1e-5,
                .activation = Activation::gelu,
                .norm = NormKind::layer_norm,
                .kv_heads_key = {},
                .head_dim_key = {},
                .norm_key = "layer_norm_eps"});
    reader.refuse_unless("head_dim", config.head_dim,
                         "GPT-NeoX heads are hidden_size / num_attention_heads wide: correct the file");
    config.parallel_residual = reader.flag("use_parallel_residual", true);
    config.attention_bias = reader.flag("attention_bias", true);
    config.mlp_bias = true;

    const JsonObject& json = reader.json();
    // This architecture has its own names for these two keys, and ignores the names of other architectures.
    const std::optional<double> other_theta = json.number("rope_theta");
    if (other_theta && *other_theta != json.number("rotary_emb_base").value_or(10000.0) &&
        !json.has("rope_parameters")) {
        reader.notice(NoticeId::config_ignored,
                      "\"rope_theta\" is ignored: GPT-NeoX reads \"rotary_emb_base\".");
    }
    const std::optional<double> other_part = json.number("partial_rotary_factor");
    if (other_part && *other_part != json.number("rotary_pct").value_or(0.25)) {
        reader.notice(NoticeId::config_ignored,
                      "\"partial_rotary_factor\" is ignored: GPT-NeoX reads \"rotary_pct\".");
    }
    read_rope(reader, config, {"rotary_emb_base", 10000.0, "rotary_pct", 0.25});
}

void read_opt(const ConfigReader& reader, ModelConfig& config) {
    read_sizes(reader, config,
               {.vocab_size = 50272,
                .hidden_size = 768,
                .intermediate_size = 3072,
                .layers = 12,
                .heads = 12,
                .bos = 2,
                .norm_eps = 1e-5,
                .tied = true,
                .activation = Activation::relu,
                .norm = NormKind::layer_norm,
                .activation_key = "activation_function",
                .intermediate_key = "ffn_dim",
                .kv_heads_key = {},
                .head_dim_key = {},
                .norm_key = {}});
    config.attention_bias = config.mlp_bias = reader.flag("enable_bias", true);
    config.embed_dim = reader.size_or_null("word_embed_proj_dim", config.hidden_size, config_limits::width);
    config.pre_norm = reader.flag("do_layer_norm_before", true);
    config.norm_weight =
        reader.flag("layer_norm_elementwise_affine", true) ? NormWeight::as_stored : NormWeight::none;
    config.remove_final_norm = reader.flag("_remove_final_layer_norm", false);
}

void read_phi(const ConfigReader& reader, ModelConfig& config) {
    read_sizes(reader, config,
               {.vocab_size = 51200,
                .hidden_size = 2048,
                .intermediate_size = 8192,
                .layers = 24,
                .norm_eps = 1e-5,
                .activation = Activation::gelu_tanh,
                .norm = NormKind::layer_norm,
                .head_dim_key = {},
                .norm_key = "layer_norm_eps"});
    config.parallel_residual = true;
    config.attention_bias = true;
    config.mlp_bias = true;
    reader.refuse_unless("qk_layernorm", false, cannot_run);
    read_rope(reader, config, {"rope_theta", 10000.0, "partial_rotary_factor", 0.5});
}

} // namespace ponderscope
