// SPDX-License-Identifier: GPL-3.0-or-later
// Stacks of prelude, core and coda (methods-released.md sections 3 to 5): Huginn and the models retrofitted
// in its format, and Parcae. Keys and defaults of these models' own configuration classes.
#include "core/checkpoint/config_reader.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace ponderscope {
namespace {

bool any_contains(const std::vector<std::string>& names, std::string_view part) {
    return std::any_of(names.begin(), names.end(),
                       [part](const std::string& name) { return name.find(part) != std::string::npos; });
}

/// Sets the heads, the blocks and the vocabulary. The padding of the vocabulary is part of the model.
void read_sandwich_sizes(const ConfigReader& reader, ModelConfig& config, std::int64_t vocabulary,
                         std::int64_t width, std::int64_t heads, std::int64_t prelude, std::int64_t core,
                         std::int64_t coda) {
    const JsonObject& json = reader.json();
    config.vocab_size = reader.size("vocab_size", vocabulary, config_limits::vocabulary);
    const std::int64_t padded =
        reader.size("padded_vocab_size", config.vocab_size, config_limits::vocabulary);
    if (padded < config.vocab_size) {
        json.fail("padded_vocab_size", "at least vocab_size, " + std::to_string(config.vocab_size) + ",");
    }
    config.vocab_size = padded;
    config.hidden_size = reader.size("n_embd", width, config_limits::width);
    config.query_heads =
        reader.size(reader.either("n_heads", "num_attention_heads"), heads, config_limits::heads);
    config.kv_heads = config.query_heads;
    config.sandwich.prelude = reader.count("n_layers_in_prelude", prelude, config_limits::layers);
    const std::int64_t blocks = reader.size("n_layers_in_recurrent_block", core, config_limits::layers);
    config.sandwich.coda = reader.count("n_layers_in_coda", coda, config_limits::layers);
    config.layers = config.sandwich.prelude + blocks + config.sandwich.coda;
    config.sliding_windows.assign(static_cast<std::size_t>(config.layers), 0);
    config.norm = NormKind::rms_norm;
}

/// Reads whether the start state is zero or normal (SandwichConfig::state_deviation).
void read_start_state(const ConfigReader& reader, ModelConfig& config, double deviation, double scale) {
    const bool zero =
        choice<bool>(reader.json(), "state_init", {{"like-init", false}, {"zero", true}}, false, cannot_run);
    config.sandwich.state_deviation = zero ? 0.0 : deviation;
    config.sandwich.state_scale = scale;
}

double usual_deviation(const ModelConfig& config) {
    return std::sqrt(2.0 / (5.0 * static_cast<double>(config.hidden_size)));
}

/// The rotation of Huginn and Parcae: pairs (2i, 2i + 1).
void set_pair_rope(const ConfigReader& reader, ModelConfig& config, double theta) {
    if (config.head_dim % 2 != 0) {
        reader.json().fail("n_embd", "heads with an even number of elements, not " +
                                         std::to_string(config.head_dim) + ", because pairs rotate,");
    }
    config.rope.kind = RopeConfig::Kind::standard;
    config.rope.theta = theta;
    config.rope.rotary_dims = config.head_dim;
    config.rope.pairs = true;
    config.released.positions_end = true;
}

RavenBlock block_kind(const ConfigReader& reader) {
    const std::vector<std::string> names = reader.tensors();
    if (names.empty() || any_contains(names, ".norm_3.")) {
        return RavenBlock::sandwich;
    }
    return any_contains(names, ".attn.q_norm.") ? RavenBlock::olmo2 : RavenBlock::llama;
}

/// Whether each block has value embeddings: a gate and a table of its own.
std::vector<bool> value_embeddings(const ConfigReader& reader, const ModelConfig& config) {
    const std::vector<std::string> names = reader.tensors();
    const auto has = [&](const std::string& name) {
        return std::ranges::find(names, name) != names.end() ||
               std::ranges::find(names, "model." + name) != names.end();
    };
    std::vector<bool> used;
    for (std::int64_t j = 0; j < config.layers; ++j) {
        used.push_back(has("value_embeds." + std::to_string(j) + ".weight") &&
                       has(sandwich_block_name(config, j) + "attn.ve_gate.weight"));
    }
    return used;
}

} // namespace

std::string sandwich_block_name(const ModelConfig& config, std::int64_t block) {
    if (config.architecture == Architecture::dory) {
        return "model.layers." + std::to_string(block) + ".";
    }
    if (block < config.core_begin()) {
        return "transformer.prelude." + std::to_string(block) + ".";
    }
    if (block < config.core_end()) {
        return "transformer.core_block." + std::to_string(block - config.core_begin()) + ".";
    }
    return "transformer.coda." + std::to_string(block - config.core_end()) + ".";
}

void read_huginn_raven(const ConfigReader& reader, ModelConfig& config) {
    const JsonObject& json = reader.json();
    read_sandwich_sizes(reader, config, 65536, 5280, 55, 2, 4, 2);
    const RavenBlock block = block_kind(reader);
    const bool retrofit = block != RavenBlock::sandwich;
    config.released.block = block;
    for (const auto& [key, only] : {std::pair{"injection_type", "linear"},
                                    {"nonlin_name", "SiLU"},
                                    {"norm_class_name", "RMSNorm_llama"},
                                    {"mlp_class_name", "GatedMLP"},
                                    {"block_class_name", "SandwichBlock"},
                                    {"initial_state_mode", "random"}}) {
        reader.refuse_unless(key, only, cannot_run);
    }
    if (json.number("test_time_noise").value_or(0.0) > 0.0) {
        json.fail("test_time_noise", "0", cannot_run);
    }
    if (retrofit) {
        config.kv_heads =
            reader.size_or_null("num_key_value_heads", config.query_heads, config_limits::heads);
        check_key_heads(reader, config);
    } else {
        reader.refuse_unless("num_key_value_heads", config.query_heads,
                             "blocks of this kind have a key head for every query head");
    }
    config.head_dim = block == RavenBlock::olmo2 && json.has("head_dim")
                          ? reader.size("head_dim", 0, config_limits::heads)
                          : even_head_dim(reader, config, "n_embd");
    config.intermediate_size = reader.size("intermediate_size", 17920, config_limits::width);
    config.norm_eps = reader.positive("norm_eps", 1e-6, true);
    config.activation = Activation::silu;
    config.max_positions = reader.size("block_size", 4096, config_limits::positions);
    config.sandwich.injection_bias = reader.flag("bias", false);
    config.sandwich.norm_before_coda = !retrofit;
    config.released.qk_bias = !retrofit && reader.flag("qk_bias", true);
    const std::string_view tie = reader.either("tie_embeddings", "tie_word_embeddings");
    config.tied_embeddings = reader.flag(tie, !retrofit || !any_contains(reader.tensors(), "lm_head.weight"));

    const double root = std::sqrt(static_cast<double>(config.hidden_size));
    double deviation = usual_deviation(config);
    config.scales.embedding = root;
    if (const std::optional<JsonObject> values = json.object("init_values")) {
        Notices unused;
        const ConfigReader numbers(*values, unused);
        deviation = numbers.positive("std", deviation, true);
        if (retrofit) {
            config.scales.embedding = numbers.positive("embed_scale", root);
        }
    }
    deviation *= reader.positive("init_scale", 1.0, true);
    read_start_state(reader, config, deviation, config.scales.embedding);

    if (retrofit) {
        config.max_positions =
            reader.size("max_position_embeddings", config.max_positions, config_limits::positions);
        read_rope(reader, config, {});
    } else {
        set_pair_rope(reader, config, reader.positive("rope_base", 50000.0));
    }
    if (constexpr std::int64_t begin = 65504, end = 65505, turn_end = 65508;
        !retrofit && config.vocab_size == 65536) {
        read_token_ids(reader, config, begin, end);
        for (const std::int64_t stop : {begin, end, turn_end}) {
            auto& ids = config.eos_token_ids;
            if (std::find(ids.begin(), ids.end(), stop) == ids.end()) {
                ids.push_back(stop);
            }
        }
    } else {
        read_token_ids(reader, config, std::nullopt, std::nullopt);
    }
}

void read_parcae(const ConfigReader& reader, ModelConfig& config) {
    const JsonObject& json = reader.json();
    read_sandwich_sizes(reader, config, 32768, 768, 6, 2, 2, 2);
    const std::int64_t d = config.hidden_size;
    reader.refuse_unless("recurrent_embedding_dimension", d, cannot_run);
    reader.refuse_unless("recurrent_num_attention_heads", config.query_heads, cannot_run);
    reader.refuse_unless("num_key_value_heads", config.query_heads, cannot_run);
    reader.refuse_unless("clip_qkv", nullptr, cannot_run);
    if (json.number("mup_model_scaling_factor").value_or(1.0) != 1.0) {
        json.fail("mup_model_scaling_factor", "1", cannot_run);
    }
    reader.refuse_unless("bias", false, cannot_run);
    reader.refuse_unless("block_class_name", "TransformerPreNormBlock", cannot_run);
    reader.refuse_unless("norm_class_name", "RMSNorm", cannot_run);
    const std::string strategy = json.text("init_strategy").value_or("scaled-zero");
    for (const std::string_view scaling : {"takase", "logit-scale", "llama-by-dim-ls", "deep", "shaped"}) {
        const bool meant = scaling == "takase" || scaling == "deep" ? strategy.starts_with(scaling)
                           : scaling == "logit-scale" ? strategy.find(scaling) != std::string::npos
                                                      : strategy == scaling;
        if (meant) {
            json.fail("init_strategy", "a strategy that scales no embeddings or logits, such as scaled-zero,",
                      cannot_run);
        }
    }
    if (const std::optional<JsonObject> rope = json.object("rope_settings")) {
        Notices unused;
        const ConfigReader settings(*rope, unused);
        settings.refuse_unless("use_rope", true, cannot_run);
        for (const auto& [key, value] : {std::pair{"rope_condense_ratio", 1.0}, {"rope_base", 50000.0}}) {
            if (rope->number(key).value_or(value) != value) {
                rope->fail(key, describe(nlohmann::json(value)), cannot_run);
            }
        }
    }
    config.head_dim = even_head_dim(reader, config, "n_embd");
    config.intermediate_size = reader.size("intermediate_size", 4 * d, config_limits::width);
    config.released.core_intermediate_size = reader.size("recurrent_intermediation_embedding_dimension",
                                                         config.intermediate_size, config_limits::width);
    config.norm_eps = reader.positive("norm_eps", 1e-5, true);
    config.max_positions = reader.size("block_size", 2048, config_limits::positions);
    config.qk_norm = reader.flag("qk_norm", false);
    config.released.qk_bias = reader.flag("qk_bias", false);
    config.scales.logit_softcap = reader.positive_if_given("logit_softcap");
    config.tied_embeddings = reader.flag(reader.either("tie_embeddings", "tie_word_embeddings"), false);
    config.sandwich.prelude_norm = reader.flag("prelude_norm", false);

    using Injection = SandwichConfig::Injection;
    config.sandwich.injection = choice<Injection>(
        json, "injection_type",
        {{"diagonal", Injection::diagonal}, {"linear", Injection::linear}, {"add", Injection::add}},
        Injection::diagonal, cannot_run);
    config.activation = choice<Activation>(
        json, "nonlin_name",
        {{"ReLU2", Activation::half_relu_squared}, {"SiLU", Activation::silu}, {"GELU", Activation::gelu}},
        Activation::half_relu_squared, cannot_run);
    config.released.gated_mlp =
        choice<bool>(json, "mlp_class_name", {{"BaseMLP", false}, {"GatedMLP", true}}, false, cannot_run);
    const bool scaled = strategy != "scaled-zero";
    read_start_state(reader, config, usual_deviation(config),
                     scaled ? std::sqrt(static_cast<double>(d)) : 1.0);

    set_pair_rope(reader, config, 50000.0);
    config.released.value_embeddings = value_embeddings(reader, config);
    constexpr std::int64_t gate_reads = 32;
    if (d < gate_reads &&
        std::find(config.released.value_embeddings.begin(), config.released.value_embeddings.end(), true) !=
            config.released.value_embeddings.end()) {
        json.fail("n_embd",
                  "at least " + std::to_string(gate_reads) + ", the elements that value gates read,");
    }
    read_token_ids(reader, config, std::nullopt, std::nullopt);
}

} // namespace ponderscope
