// SPDX-License-Identifier: GPL-3.0-or-later
// Mixtures of experts: keys and defaults of transformers' Qwen3MoeConfig, OlmoeConfig and GptOssConfig.
#include "core/checkpoint/config_reader.h"

#include <algorithm>
#include <numeric>

namespace ponderscope {
namespace {

/// Gives every layer experts. The function below removes layers with a plain MLP.
void read_experts(const ConfigReader& reader, ModelConfig& config, std::int64_t count, std::int64_t chosen) {
    ExpertsConfig& experts = config.experts;
    // transformers 5 writes num_local_experts for every family.
    experts.count =
        reader.size(reader.either("num_experts", "num_local_experts"), count, config_limits::experts);
    experts.chosen = reader.size("num_experts_per_tok", chosen, config_limits::experts);
    if (experts.chosen > experts.count) {
        reader.json().fail("num_experts_per_tok",
                           "at most the number of experts, " + std::to_string(experts.count) + ",");
    }
    experts.intermediate_size = config.intermediate_size;
    experts.layers.resize(static_cast<std::size_t>(config.layers));
    std::iota(experts.layers.begin(), experts.layers.end(), std::int64_t{0});
}

/// Removes the layers with a plain MLP from the list of layers with experts.
void read_dense_layers(const ConfigReader& reader, ModelConfig& config) {
    const std::int64_t step = reader.size("decoder_sparse_step", 1, config_limits::layers);
    std::vector<std::int64_t> dense;
    if (const nlohmann::json* only = reader.json().array("mlp_only_layers")) {
        for (const nlohmann::json& layer : *only) {
            if (!layer.is_number_unsigned() || layer >= config.layers) {
                reader.json().fail("mlp_only_layers",
                                   "layers from 0 to " + std::to_string(config.layers - 1));
            }
            dense.push_back(layer.get<std::int64_t>());
        }
    }
    std::erase_if(config.experts.layers, [&](std::int64_t layer) {
        return (layer + 1) % step != 0 || std::find(dense.begin(), dense.end(), layer) != dense.end();
    });
}

} // namespace

void read_qwen3_moe(const ConfigReader& reader, ModelConfig& config) {
    read_sizes(reader, config,
               {.vocab_size = 151936,
                .hidden_size = 2048,
                .intermediate_size = 6144,
                .layers = 24,
                .kv_heads = 4,
                .max_positions = 32768,
                .bos = std::nullopt,
                .eos = std::nullopt});
    config.attention_bias = reader.flag("attention_bias", false);
    config.qk_norm = true;
    // transformers ignores layer_types for this model: all layers have a sliding window, or none.
    const std::int64_t window = reader.size_or_null("sliding_window", 4096, config_limits::positions);
    if (reader.flag("use_sliding_window", false) && has_window(reader)) {
        config.sliding_windows.assign(static_cast<std::size_t>(config.layers), window);
    }
    (void)reader.json().has("max_window_layers"); // a key of Qwen3, without effect
    read_rope(reader, config, {});
    read_experts(reader, config, 128, 8);
    config.experts.intermediate_size = reader.size("moe_intermediate_size", 768, config_limits::width);
    config.experts.renormed = reader.flag("norm_topk_prob", false);
    read_dense_layers(reader, config);
}

void read_olmoe(const ConfigReader& reader, ModelConfig& config) {
    read_sizes(reader, config,
               {.vocab_size = 50304,
                .hidden_size = 2048,
                .intermediate_size = 2048,
                .layers = 16,
                .heads = 16,
                .max_positions = 4096,
                .bos = std::nullopt,
                .eos = 50279,
                .norm_eps = 1e-5});
    config.attention_bias = reader.flag("attention_bias", false);
    config.qk_norm = true;
    config.qk_norm_all_heads = true;
    config.scales.qkv_limit = reader.positive_if_given("clip_qkv");
    read_rope(reader, config, {});
    read_experts(reader, config, 64, 8);
    config.experts.renormed = reader.flag("norm_topk_prob", false);
}

void read_gpt_oss(const ConfigReader& reader, ModelConfig& config) {
    read_sizes(reader, config,
               {.vocab_size = 201088,
                .hidden_size = 2880,
                .intermediate_size = 2880,
                .layers = 36,
                .heads = 64,
                .kv_heads = 8,
                .head_dim = 64,
                .max_positions = 131072,
                .bos = std::nullopt,
                .eos = std::nullopt,
                .norm_eps = 1e-5});
    config.attention_bias = reader.flag("attention_bias", true);
    read_windows(reader, config, 128, [](std::int64_t layer) { return layer % 2 == 0; });
    const RopeKeys keys{"rope_theta", 150000.0};
    if (reader.json().has("rope_parameters") || reader.json().has("rope_scaling")) {
        read_rope(reader, config, keys);
    } else {
        nlohmann::json with_default = reader.json().value();
        with_default["rope_parameters"] = {{"rope_type", "yarn"},
                                           {"factor", 32.0},
                                           {"truncate", false},
                                           {"original_max_position_embeddings", 4096}};
        (void)reader.json().has("rope_theta");
        read_rope(ConfigReader(JsonObject(with_default, reader.json().source()), config.notices), config,
                  keys);
    }
    read_experts(reader, config, 128, 4);
    config.experts.renormed = true;
    config.experts.clamped = true;
    config.experts.alpha = reader.positive("swiglu_alpha", 1.702);
    config.experts.limit = reader.positive("swiglu_limit", 7.0);
}

} // namespace ponderscope
