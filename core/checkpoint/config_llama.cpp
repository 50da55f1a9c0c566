// SPDX-License-Identifier: GPL-3.0-or-later
// The Llama family: RMSNorm, gated MLP, RoPE on whole heads, grouped keys. Keys and defaults of transformers'
// LlamaConfig, MistralConfig, Qwen2Config and Qwen3Config, and of Nanbeige's and Ouro's own classes.
#include "core/checkpoint/config_reader.h"

namespace ponderscope {
namespace {

LlamaDefaults defaults_of(Architecture architecture) {
    switch (architecture) {
    case Architecture::mistral:
    case Architecture::ministral:
        return {.intermediate_size = 14336, .kv_heads = 8, .max_positions = 131072};
    case Architecture::qwen2:
    case Architecture::ouro:
        return {.vocab_size = 151936,
                .intermediate_size = 22016,
                .kv_heads = 32,
                .max_positions = 32768,
                .bos = std::nullopt,
                .eos = std::nullopt};
    case Architecture::qwen3:
        return {.vocab_size = 151936,
                .intermediate_size = 22016,
                .kv_heads = 32,
                .head_dim = 128,
                .max_positions = 32768,
                .bos = std::nullopt,
                .eos = std::nullopt,
                .null_head_dim_divides = true};
    default:
        return {};
    }
}

/// Qwen: the layers from max_window_layers on, if use_sliding_window is true.
void read_upper_windows(const ConfigReader& reader, ModelConfig& config) {
    const std::int64_t first = reader.count("max_window_layers", 28, config_limits::layers);
    const bool window = has_window(reader);
    read_windows(
        reader, config, 4096, [&](std::int64_t layer) { return window && layer >= first; },
        "use_sliding_window");
}

} // namespace

void read_llama_sizes(const ConfigReader& reader, ModelConfig& config, const LlamaDefaults& defaults) {
    config.vocab_size = reader.size("vocab_size", defaults.vocab_size, config_limits::vocabulary);
    config.hidden_size = reader.size("hidden_size", defaults.hidden_size, config_limits::width);
    config.layers = reader.size("num_hidden_layers", defaults.layers, config_limits::layers);
    read_head_counts(reader, config, "num_attention_heads", defaults.heads);
    const bool kv_null = reader.is_null("num_key_value_heads");
    config.kv_heads = reader.size_or_null(
        "num_key_value_heads", kv_null ? config.query_heads : defaults.kv_heads.value_or(config.query_heads),
        config_limits::heads);
    if (config.query_heads % config.kv_heads != 0) {
        const std::string absent = reader.json().has("num_key_value_heads")
                                       ? ""
                                       : " (" + std::to_string(config.kv_heads) + " where the key is absent)";
        reader.json().fail("num_key_value_heads", "a divisor of the number of query heads, " +
                                                      std::to_string(config.query_heads) + "," + absent);
    }
    const bool default_head_dim =
        defaults.head_dim && !(defaults.null_head_dim_divides && reader.is_null("head_dim"));
    config.head_dim =
        reader.json().has("head_dim") || default_head_dim
            ? reader.size_or_null("head_dim", defaults.head_dim.value_or(0), config_limits::heads)
            : even_head_dim(reader, config, "hidden_size");
    config.intermediate_size =
        reader.size("intermediate_size", defaults.intermediate_size, config_limits::width);
    config.max_positions =
        reader.size("max_position_embeddings", defaults.max_positions, config_limits::positions);
    config.norm = NormKind::rms_norm;
    config.norm_eps = reader.positive("rms_norm_eps", defaults.norm_eps, true);
    config.activation = reader.activation(defaults.activation_key, defaults.activation);
    config.tied_embeddings = reader.flag("tie_word_embeddings", defaults.tied);
    read_token_ids(reader, config, defaults.bos, defaults.eos);
    config.sliding_windows.assign(static_cast<std::size_t>(config.layers), 0);
}

void read_llama_family(const ConfigReader& reader, ModelConfig& config) {
    const Architecture architecture = config.architecture;
    read_llama_sizes(reader, config, defaults_of(architecture));
    switch (architecture) {
    case Architecture::mistral:
    case Architecture::ministral: {
        const bool window = has_window(reader);
        read_windows(reader, config, 4096, [&](std::int64_t) { return window; });
        break;
    }
    case Architecture::qwen2:
        config.attention_bias = true; // on q, k and v; the class has no key for it
        read_upper_windows(reader, config);
        break;
    case Architecture::qwen3:
        config.attention_bias = reader.flag("attention_bias", false);
        config.qk_norm = true;
        read_upper_windows(reader, config);
        break;
    case Architecture::nanbeige:
        config.attention_bias = reader.flag("attention_bias", false);
        config.mlp_bias = reader.flag("mlp_bias", false);
        config.qk_norm = reader.flag("qk_layernorm", false);
        break;
    case Architecture::ouro:
        for (const char* const key : {"attention_bias", "mlp_bias"}) {
            reader.refuse_unless(key, false, "the architecture has no such tensors");
        }
        read_upper_windows(reader, config);
        break;
    default:
        config.attention_bias = reader.flag("attention_bias", false);
        config.mlp_bias = reader.flag("mlp_bias", false);
        break;
    }
    read_rope(reader, config, {});
}

void read_llama(const ConfigReader& reader, ModelConfig& config) {
    read_llama_family(reader, config);
}

void read_mistral(const ConfigReader& reader, ModelConfig& config) {
    read_llama_family(reader, config);
}

void read_ministral(const ConfigReader& reader, ModelConfig& config) {
    read_llama_family(reader, config);
}

void read_qwen2(const ConfigReader& reader, ModelConfig& config) {
    read_llama_family(reader, config);
}

void read_qwen3(const ConfigReader& reader, ModelConfig& config) {
    read_llama_family(reader, config);
}

void read_nanbeige(const ConfigReader& reader, ModelConfig& config) {
    read_llama_family(reader, config);
}

void read_ouro(const ConfigReader& reader, ModelConfig& config) {
    read_llama_family(reader, config);
    // The released files name the end of texts only; a turn of a chat ends with <|im_end|>.
    if (constexpr std::int64_t released_vocabulary = 49152, turn_end = 2;
        config.vocab_size == released_vocabulary && config.eos_token_ids == std::vector<std::int64_t>{0}) {
        config.eos_token_ids.push_back(turn_end);
    }
}

} // namespace ponderscope
