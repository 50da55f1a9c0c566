// SPDX-License-Identifier: GPL-3.0-or-later
// SmolLM3, Phi-3, nanochat and Granite: keys and defaults of transformers' configuration classes.
#include "core/checkpoint/config_reader.h"

namespace ponderscope {

void read_smollm3(const ConfigReader& reader, ModelConfig& config) {
    const JsonObject& json = reader.json();
    read_sizes(reader, config,
               {.vocab_size = 128256,
                .hidden_size = 2048,
                .layers = 36,
                .heads = 16,
                .kv_heads = 4,
                .max_positions = 32768,
                .bos = 128000,
                .eos = 128001,
                .tied = true});
    read_biases(reader, config);
    (void)json.has("max_window_layers");
    // Despite the name of the key, 1 means that the layer rotates, and 0 that it does not.
    const std::int64_t interval = reader.size("no_rope_layer_interval", 4, config_limits::layers);
    const nlohmann::json* turned = json.array("no_rope_layers");
    if (turned != nullptr && static_cast<std::int64_t>(turned->size()) != config.layers) {
        json.fail("no_rope_layers", "one entry for each of the " + std::to_string(config.layers) + " layers");
    }
    for (std::int64_t layer = 0; layer < config.layers; ++layer) {
        bool turns = (layer + 1) % interval != 0;
        if (turned != nullptr) {
            const nlohmann::json& entry = (*turned)[static_cast<std::size_t>(layer)];
            if (entry != 0 && entry != 1) {
                json.fail("no_rope_layers", "0 or 1 in every entry, not " + describe(entry) + ",");
            }
            turns = entry == 1;
        }
        config.layer_rope.push_back(turns ? LayerRope::main : LayerRope::none);
    }
    read_windows(
        reader, config, std::nullopt,
        [&](std::int64_t layer) {
            return json.has("sliding_window") &&
                   config.layer_rope[static_cast<std::size_t>(layer)] == LayerRope::none;
        },
        "use_sliding_window");
    read_rope(reader, config, {"rope_theta", 2e6});
}

void read_phi3(const ConfigReader& reader, ModelConfig& config) {
    read_sizes(reader, config,
               {.vocab_size = 32064,
                .hidden_size = 3072,
                .intermediate_size = 8192,
                .max_positions = 4096,
                .eos = 32000,
                .norm_eps = 1e-5});
    for (const char* const key : {"attention_bias", "mlp_bias"}) {
        reader.refuse_unless(key, false, "this architecture has no bias tensors");
    }
    (void)reader.json().has("original_max_position_embeddings"); // used for longrope only
    const bool window = has_window(reader, false);
    read_windows(reader, config, std::nullopt, [&](std::int64_t) { return window; });
    read_rope(reader, config, {"rope_theta", 10000.0, "partial_rotary_factor", 1.0});
}

void read_nanochat(const ConfigReader& reader, ModelConfig& config) {
    read_sizes(reader, config,
               {.vocab_size = 50304,
                .hidden_size = 768,
                .intermediate_size = 8192,
                .layers = 12,
                .heads = 6,
                .bos = 0,
                .eos = 1,
                .activation = Activation::relu_squared});
    config.attention_bias = reader.flag("attention_bias", false);
    config.norm_weight = NormWeight::none;
    config.qk_norm = true;
    if (!reader.is_null("final_logit_softcapping")) {
        config.scales.logit_softcap = reader.positive("final_logit_softcapping", 15.0);
    }
    read_rope(reader, config, {});
    config.rope.reversed = true;
}

void read_granite(const ConfigReader& reader, ModelConfig& config) {
    read_sizes(reader, config, {});
    read_biases(reader, config);
    config.scales.embedding = reader.positive("embedding_multiplier", 1.0);
    config.scales.attention = reader.positive("attention_multiplier", 1.0);
    config.scales.residual = reader.positive("residual_multiplier", 1.0);
    config.scales.logits = 1.0 / reader.positive("logits_scaling", 1.0);
    read_rope(reader, config, {});
}

} // namespace ponderscope
