// SPDX-License-Identifier: GPL-3.0-or-later
// The Llama family: RMSNorm, gated MLP, RoPE on whole heads, grouped keys. Keys and defaults of transformers'
// LlamaConfig, MistralConfig, Qwen2Config and Qwen3Config, and of Nanbeige's and Ouro's own classes.
#include "core/checkpoint/config_reader.h"

namespace ponderscope {
namespace {

/// Where the classes differ in their defaults.
struct Defaults {
    std::int64_t vocab_size = 32000;
    std::int64_t intermediate_size = 11008;
    std::int64_t max_positions = 2048;
    std::optional<std::int64_t> kv_heads; ///< absent: as many as query heads
    std::optional<std::int64_t> head_dim; ///< absent: hidden_size / query heads
    std::optional<std::int64_t> bos = 1;
    std::optional<std::int64_t> eos = 2;
};

Defaults defaults_of(Architecture architecture) {
    switch (architecture) {
    case Architecture::mistral:
        return {32000, 14336, 131072, 8, std::nullopt, 1, 2};
    case Architecture::qwen2:
        return {151936, 22016, 32768, 32, std::nullopt, std::nullopt, std::nullopt};
    case Architecture::qwen3:
        return {151936, 22016, 32768, 32, 128, std::nullopt, std::nullopt};
    case Architecture::ouro:
        return {151936, 22016, 32768, 32, std::nullopt, std::nullopt, std::nullopt};
    default:
        return {};
    }
}

} // namespace

void read_llama_family(const ConfigReader& reader, ModelConfig& config) {
    const Architecture architecture = config.architecture;
    const Defaults defaults = defaults_of(architecture);
    config.vocab_size = reader.size("vocab_size", defaults.vocab_size, config_limits::vocabulary);
    config.hidden_size = reader.size("hidden_size", 4096, config_limits::width);
    config.layers = reader.size("num_hidden_layers", 32, config_limits::layers);
    read_head_counts(reader, config, "num_attention_heads", 32);
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
    const bool own_head_dim =
        reader.json().has("head_dim") || (defaults.head_dim && !reader.is_null("head_dim"));
    config.head_dim = own_head_dim
                          ? reader.size("head_dim", defaults.head_dim.value_or(0), config_limits::heads)
                          : even_head_dim(reader, config, "hidden_size");
    config.intermediate_size =
        reader.size("intermediate_size", defaults.intermediate_size, config_limits::width);
    config.max_positions =
        reader.size("max_position_embeddings", defaults.max_positions, config_limits::positions);
    config.norm = NormKind::rms_norm;
    config.norm_eps = reader.positive("rms_norm_eps", 1e-6, true);
    config.activation = reader.activation("hidden_act", "silu");
    config.tied_embeddings = reader.flag("tie_word_embeddings", false);
    read_token_ids(reader, config, defaults.bos, defaults.eos);
    config.sliding_windows.assign(static_cast<std::size_t>(config.layers), 0);

    switch (architecture) {
    case Architecture::mistral:
        read_windows(reader, config, WindowRule::all_layers);
        break;
    case Architecture::qwen2:
        config.attention_bias = true; // on q, k and v; the class has no key for it
        read_windows(reader, config, WindowRule::later_layers);
        break;
    case Architecture::qwen3:
        config.attention_bias = reader.flag("attention_bias", false);
        config.qk_norm = true;
        read_windows(reader, config, WindowRule::later_layers);
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
        read_windows(reader, config, WindowRule::later_layers);
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
