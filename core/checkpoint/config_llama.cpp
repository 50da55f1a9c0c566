// SPDX-License-Identifier: GPL-3.0-or-later
// The Llama family: RMSNorm, gated MLP, RoPE on whole heads, grouped keys. Keys and defaults of transformers'
// LlamaConfig, MistralConfig, Qwen2Config and Qwen3Config, and of Nanbeige's and Ouro's own classes.
#include "core/checkpoint/config_reader.h"

namespace ponderscope {
namespace {

const SizeDefaults qwen_defaults{.vocab_size = 151936,
                                 .intermediate_size = 22016,
                                 .kv_heads = 32,
                                 .max_positions = 32768,
                                 .bos = std::nullopt,
                                 .eos = std::nullopt};

/// Qwen: layers from max_window_layers on have a sliding window, if use_sliding_window is true.
void read_upper_windows(const ConfigReader& reader, ModelConfig& config) {
    const std::int64_t first = reader.count("max_window_layers", 28, config_limits::layers);
    const bool window = has_window(reader);
    read_windows(
        reader, config, 4096, [&](std::int64_t layer) { return window && layer >= first; },
        "use_sliding_window");
}

} // namespace

void read_llama(const ConfigReader& reader, ModelConfig& config) {
    read_sizes(reader, config, {});
    read_biases(reader, config);
    read_rope(reader, config, {});
}

void read_mistral(const ConfigReader& reader, ModelConfig& config) {
    read_sizes(reader, config, {.intermediate_size = 14336, .kv_heads = 8, .max_positions = 131072});
    const bool window = has_window(reader);
    read_windows(reader, config, 4096, [&](std::int64_t) { return window; });
    read_rope(reader, config, {});
}

void read_ministral(const ConfigReader& reader, ModelConfig& config) {
    read_mistral(reader, config);
}

void read_qwen2(const ConfigReader& reader, ModelConfig& config) {
    read_sizes(reader, config, qwen_defaults);
    config.attention_bias = true; // on q, k and v; the config has no key for it
    read_upper_windows(reader, config);
    read_rope(reader, config, {});
}

void read_qwen3(const ConfigReader& reader, ModelConfig& config) {
    SizeDefaults defaults = qwen_defaults;
    defaults.head_dim = 128;
    defaults.null_head_dim_divides = true;
    read_sizes(reader, config, defaults);
    config.attention_bias = reader.flag("attention_bias", false);
    config.qk_norm = true;
    read_upper_windows(reader, config);
    read_rope(reader, config, {});
}

void read_nanbeige(const ConfigReader& reader, ModelConfig& config) {
    read_llama(reader, config);
    config.qk_norm = reader.flag("qk_layernorm", false);
}

void read_ouro(const ConfigReader& reader, ModelConfig& config) {
    read_sizes(reader, config, qwen_defaults);
    for (const char* const key : {"attention_bias", "mlp_bias"}) {
        reader.refuse_unless(key, false, "this architecture has no bias tensors");
    }
    read_upper_windows(reader, config);
    read_rope(reader, config, {});
    // The released configs name only the end of a text. A turn of a chat ends with <|im_end|>.
    if (constexpr std::int64_t released_vocabulary = 49152, turn_end = 2;
        config.vocab_size == released_vocabulary && config.eos_token_ids == std::vector<std::int64_t>{0}) {
        config.eos_token_ids.push_back(turn_end);
    }
}

} // namespace ponderscope
