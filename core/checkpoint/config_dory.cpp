// SPDX-License-Identifier: GPL-3.0-or-later
// Dory (NVIDIA): the keys of transformers' DoryConfig, and of export format 1, for other programs.
#include "core/checkpoint/config_reader.h"

#include <algorithm>
#include <cmath>

namespace ponderscope {
namespace {

/// Refuses values that select variants without public code.
void refuse_other_dory(const ConfigReader& reader, const ModelConfig& config) {
    const nlohmann::json heads = config.query_heads;
    const std::pair<const char*, nlohmann::json> fixed[] = {{"ngpt", true},
                                                            {"fngpt", true},
                                                            {"ngpt_enable_final_norm", false},
                                                            {"attention_output_gate", true},
                                                            {"swa_num_attention_heads", config.query_heads},
                                                            {"swa_num_query_groups", config.kv_heads},
                                                            {"swa_num_key_value_heads", config.kv_heads},
                                                            {"swa_head_dim", config.head_dim},
                                                            {"initial_state", "input_copy"},
                                                            {"input_transform", "residual"},
                                                            {"output_transform", "replace"},
                                                            {"mixer_type", nullptr}};
    for (const auto& [key, value] : fixed) {
        reader.refuse_unless(key, value, cannot_run);
    }
    const JsonObject& json = reader.json();
    for (const char* const key : {"partial_rotary_factor", "partial_rotary_factor_2"}) {
        if (json.number(key).value_or(1.0) != 1.0) {
            json.fail(key, "1, because Dory rotates whole heads,", cannot_run);
        }
    }
    const double root = std::sqrt(static_cast<double>(config.hidden_size));
    const char* const gate = "attention_output_gate_logit_scale_init";
    if (const auto scale = json.number(gate); scale && std::abs(*scale - root) > 1e-6 * root) {
        json.fail(gate, "null or the square root of hidden_size", cannot_run);
    }
    if (const nlohmann::json* layers = json.array("no_rope_layers")) {
        if (std::any_of(layers->begin(), layers->end(), [](const auto& entry) { return entry != 0; })) {
            json.fail("no_rope_layers", "0 in every entry", cannot_run);
        }
    }
}

/// The layers with a sliding window, and whether the file counts attention and MLP as separate blocks.
struct DoryBlocks {
    std::vector<bool> slides;
    bool doubled = false;
};

/// Reads a pattern such as "S-*-". S: attention with a sliding window, *: full attention, -: MLP.
std::optional<DoryBlocks> blocks_of_pattern(const JsonObject& json) {
    const std::optional<std::string> pattern = json.text("hybrid_layer_pattern");
    if (!pattern) {
        return std::nullopt;
    }
    DoryBlocks blocks{{}, true};
    for (std::size_t i = 0; i < pattern->size(); ++i) {
        const char letter = (*pattern)[i];
        if (i % 2 == 0 ? letter != 'S' && letter != '*' : letter != '-') {
            json.fail("hybrid_layer_pattern", "attention (S or *) and MLP (-) alternately", cannot_run);
        }
        if (i % 2 == 0) {
            blocks.slides.push_back(letter == 'S');
        }
    }
    if (pattern->empty() || pattern->size() % 2 != 0) {
        json.fail("hybrid_layer_pattern", "an MLP after each attention block", cannot_run);
    }
    return blocks;
}

std::optional<DoryBlocks> blocks_of_types(const JsonObject& json) {
    const nlohmann::json* types = json.array("layer_types");
    if (types == nullptr) {
        return std::nullopt;
    }
    DoryBlocks blocks;
    blocks.doubled = std::find(types->begin(), types->end(), "mlp") != types->end();
    for (std::size_t i = 0; i < types->size(); ++i) {
        const nlohmann::json& type = (*types)[i];
        const bool mlp = blocks.doubled && i % 2 == 1;
        if (mlp ? type != "mlp" : type != "full_attention" && type != "sliding_attention") {
            json.fail("layer_types",
                      "full_attention or sliding_attention, each followed by mlp if the list has mlp "
                      "entries, not " +
                          describe(type) + ",",
                      cannot_run);
        }
        if (!mlp) {
            blocks.slides.push_back(type == "sliding_attention");
        }
    }
    if (blocks.doubled && types->size() % 2 != 0) {
        json.fail("layer_types", "an mlp entry after each attention entry", cannot_run);
    }
    return blocks;
}

/// Reads the number of layers in each section of the stack.
void read_sections(const ConfigReader& reader, ModelConfig& config, bool export_format) {
    const JsonObject& json = reader.json();
    const std::optional<DoryBlocks> by_pattern = blocks_of_pattern(json);
    const std::optional<DoryBlocks> by_types = blocks_of_types(json);
    if (by_pattern && by_types && by_pattern->slides != by_types->slides) {
        json.fail("hybrid_layer_pattern", "the same layers as \"layer_types\"", "remove one of the two keys");
    }
    const std::int64_t share = (by_pattern && by_pattern->doubled) || (by_types && by_types->doubled) ? 2 : 1;
    const auto layers_of = [&](std::string_view key, std::int64_t otherwise) {
        const std::int64_t blocks = reader.count(key, otherwise * share, config_limits::layers);
        if (blocks % share != 0) {
            json.fail(key, "an even number, because attention and MLP are separate blocks,");
        }
        return blocks / share;
    };
    config.layers = layers_of("num_hidden_layers", 36);
    if (config.layers < 1) {
        json.fail("num_hidden_layers", "a whole number above 0");
    }
    config.sandwich.prelude = layers_of("n_input_layers", export_format ? 0 : 8);
    config.sandwich.coda = layers_of("n_output_layers", export_format ? 0 : 8);
    const std::int64_t rest = config.layers - config.sandwich.prelude - config.sandwich.coda;
    if (layers_of("n_recurrent_layers", rest) != rest || rest < 1) {
        json.fail("n_recurrent_layers",
                  "num_hidden_layers minus n_input_layers and n_output_layers, which is " +
                      std::to_string(rest * share) + " and must be above 0,");
    }
    std::vector<bool> slides = by_pattern ? by_pattern->slides
                               : by_types ? by_types->slides
                                          : std::vector<bool>();
    if (slides.empty()) {
        for (std::int64_t layer = 0; layer < config.layers; ++layer) {
            slides.push_back((layer + 1) % 4 != 0);
        }
    }
    if (static_cast<std::int64_t>(slides.size()) != config.layers) {
        json.fail(by_pattern ? "hybrid_layer_pattern" : "layer_types",
                  "one entry for each of the " + std::to_string(config.layers * share) + " blocks");
    }
    const std::int64_t window =
        reader.size(reader.either("sliding_window", "swa_window_size"), 1024, config_limits::positions);
    config.sliding_windows.clear();
    for (const bool one : slides) {
        config.sliding_windows.push_back(one ? window : 0);
    }
}

/// Export format 1 has two rotary bases. Each attention block chooses one of them.
void read_rope_profiles(const ConfigReader& reader, ModelConfig& config) {
    const JsonObject& json = reader.json();
    config.rope.kind = RopeConfig::Kind::standard;
    config.rope.rotary_dims = config.head_dim;
    config.rope.original_max_positions = config.max_positions;
    config.rope.theta = reader.positive("rope_theta", 1e7);
    config.local_rope = config.rope;
    config.local_rope.theta = reader.positive("rope_theta_2", 1e4);
    const nlohmann::json* profiles = json.array("rope_profile_layers");
    if (profiles == nullptr || static_cast<std::int64_t>(profiles->size()) != 2 * config.layers) {
        json.fail("rope_profile_layers",
                  "one entry for each of the " + std::to_string(2 * config.layers) + " blocks");
    }
    for (std::int64_t layer = 0; layer < config.layers; ++layer) {
        const nlohmann::json& profile = (*profiles)[static_cast<std::size_t>(2 * layer)];
        if (profile != 1 && profile != 2) {
            json.fail("rope_profile_layers",
                      "1 or 2 for every attention block, not " + describe(profile) + ",", cannot_run);
        }
        config.layer_rope.push_back(profile == 1 ? LayerRope::main : LayerRope::local);
    }
}

double theta_of(const ModelConfig& config, std::size_t layer) {
    const bool local = !config.layer_rope.empty() && config.layer_rope[layer] == LayerRope::local;
    return local ? config.local_rope.theta : config.rope.theta;
}

void read_dory_rope(const ConfigReader& reader, ModelConfig& config, bool export_format) {
    const JsonObject& json = reader.json();
    const bool by_kind = json.has("rope_parameters") || !export_format;
    ModelConfig other = config;
    if (export_format) {
        read_rope_profiles(reader, config);
    }
    if (!by_kind) {
        return;
    }
    read_rope_by_kind(reader, other, {"", 1e7}, {"", 1e4});
    for (std::size_t layer = 0; export_format && layer < config.sliding_windows.size(); ++layer) {
        if (theta_of(config, layer) != theta_of(other, layer) ||
            other.rope.kind != RopeConfig::Kind::standard) {
            json.fail("rope_parameters", "the same bases as rope_theta and rope_theta_2",
                      "remove rope_parameters, or correct its bases");
        }
    }
    config.rope = other.rope;
    config.local_rope = other.local_rope;
    config.layer_rope = other.layer_rope;
}

} // namespace

void read_dory(const ConfigReader& reader, ModelConfig& config) {
    const JsonObject& json = reader.json();
    reader.refuse_unless("dory_format_version", 1, cannot_run);
    const bool export_format = json.has("dory_format_version") || json.has("hybrid_layer_pattern");
    read_sizes(reader, config,
               {.vocab_size = 131072,
                .hidden_size = 2560,
                .intermediate_size = 7168,
                .layers = 36,
                .heads = 16,
                .kv_heads = 4,
                .head_dim = 256,
                .max_positions = 8192,
                .bos = std::nullopt,
                .eos = std::nullopt,
                .norm_eps = 1e-6,
                .norm = NormKind::unit,
                .activation_key = reader.either("hidden_act", "mlp_hidden_act"),
                .head_dim_key = reader.either("head_dim", "attention_head_dim"),
                .norm_key = {}});
    config.norm_weight = NormWeight::none;
    read_biases(reader, config);
    config.released.deviation =
        reader.positive(reader.either("initializer_range", "init_method_std"), export_format ? 0.02 : 0.0177);
    config.released.update_rate = reader.positive("ngpt_alpha_init", 0.05) / config.released.deviation;
    config.released.last_loop_kv = choice<bool>(
        json, "recurrent_kv_cache_mode", {{"per_loop", false}, {"last_loop", true}}, false, cannot_run);
    refuse_other_dory(reader, config);
    read_sections(reader, config, export_format);
    read_dory_rope(reader, config, export_format);
}

} // namespace ponderscope
