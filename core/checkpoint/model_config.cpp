// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/model_config.h"

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/utf8.h"
#include "core/base/words.h"
#include "core/checkpoint/config_reader.h"
#include "core/checkpoint/method_info.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace ponderscope {
namespace {

struct ArchitectureReader {
    Architecture architecture;
    std::string_view name;
    void (*read)(const ConfigReader& reader, ModelConfig& config);
};
constexpr ArchitectureReader architectures[] = {
#define PONDERSCOPE_ARCHITECTURE(name) {Architecture::name, #name, &read_##name},
#include "core/checkpoint/architectures.def"
#undef PONDERSCOPE_ARCHITECTURE
};

// Names in the order of the enumerations.
constexpr const char* method_names_in_order[] = {
#define PONDERSCOPE_METHOD(name) #name,
#include "core/checkpoint/methods/methods.def"
#undef PONDERSCOPE_METHOD
};
constexpr const char* mixing_names[] = {"none", "depth_attention", "denseformer", "attnres", "mhc"};
constexpr const char* activation_names[] = {
    "gelu", "gelu_tanh", "quick_gelu", "relu", "relu_squared", "half_relu_squared",
    "silu", "sigmoid",   "tanh",       "mish", "linear"};

const ArchitectureReader& find_architecture(const JsonObject& json) {
    std::optional<std::string> name = json.text("model_type");
    if (!name && json.text("_class_name") == "ParcaeConfig") {
        name = "parcae"; // its config.json names a class, but no model_type
    }
    std::string known;
    for (const ArchitectureReader& reader : architectures) {
        if (name == reader.name) {
            return reader;
        }
        known += (known.empty() ? "" : ", ") + std::string(reader.name);
    }
    if (!name && json.has("_class_name")) {
        json.fail("_class_name", "ParcaeConfig, the only supported class without a model_type,", cannot_run);
    }
    if (name) { // a valid config.json of an unsupported model
        throw InputError(ErrorId::checkpoint_architecture, json.source().parent_path(),
                         "one of the architectures " + known + " for \"model_type\"",
                         '"' + printable(*name) + '"', cannot_run);
    }
    json.fail("model_type", "one of the architectures " + known,
              "check that it is a Hugging Face model's config.json");
}

/// Refuses quantised checkpoints: this build would misread packed weights.
void refuse_quantisation(const JsonObject& json) {
    for (const char* const key : {"quantization_config", "quantization"}) {
        if (json.has(key)) {
            const nlohmann::json& how = *json.find(key);
            const bool mxfp4 =
                how.is_object() && how.contains("quant_method") && how["quant_method"] == "mxfp4";
            throw InputError(ErrorId::checkpoint_quantised, json.source(),
                             "no \"" + std::string(key) + "\", because quantised weights are not supported",
                             describe(how),
                             mxfp4 ? "load it in transformers with Mxfp4Config(dequantize=True) and save it"
                                   : "get the unquantised checkpoint");
        }
    }
}

/// Keys without effect on a forward pass: origin, training, sampling, labels. Spaces around each key.
constexpr std::string_view inert_keys =
    " architectures auto_map bad_words_ids chunk_size_feed_forward do_sample dtype early_stopping"
    " experts_per_token finetuning_task gradient_checkpointing init_device init_std max_length"
    " initial_context_length min_length keys_to_ignore_at_inference n_ctx n_special name_or_path"
    " num_return_sequences output_attentions output_hidden_states output_scores output_router_logits"
    " prefix predict_special_tokens pretraining_tp problem_type tf_legacy_loss remove_invalid_values"
    " temperature reorder_and_upcast_attn tokenizer_class router_aux_loss_coef top_k"
    " task_specific_params top_p torch_dtype torchscript transformers_version typical_p use_bfloat16"
    " use_cache ";
/// Parts of the names of further keys without effect.
constexpr auto inert_parts = std::to_array<std::string_view>(
    {"drop", "summary_", "_token_id", "num_beam", "_penalty", "2label", "label2", "initializer_",
     "return_dict", "suppress_tokens", "no_repeat_ngram_size"});

/// Adds a notice about keys that no reader has read.
void report_unread(const JsonObject& json, Notices& notices) {
    std::vector<std::string> unread = json.never_asked();
    std::erase_if(unread, [&](const std::string& key) {
        const nlohmann::json& value = *json.find(key);
        const bool is_empty = value == false || (value.is_structured() && value.empty());
        return is_empty || key.starts_with('_') ||
               inert_keys.find(' ' + key + ' ') != std::string_view::npos ||
               std::ranges::any_of(
                   inert_parts, [&](std::string_view part) { return key.find(part) != std::string::npos; });
    });
    if (!unread.empty()) {
        notices.push_back(
            {NoticeId::config_unread, "config.json has keys that are not read and change nothing here: " +
                                          joined(unread, {}, 8) + "."});
    }
}

void read_method(const ConfigReader& reader, ModelConfig& config, std::optional<MethodKind> method) {
    const MethodInfo* owner = owner_of(config, reader.json().source());
    if (owner != nullptr && owner->architecture) {
        read_own_method(reader, config, *owner, method);
        return;
    }
    const bool nanbeige = config.architecture == Architecture::nanbeige;
    (nanbeige ? read_nanbeige_depth : read_depth_mixing)(reader, config);
    if (nanbeige && !reader.json().has("pondering")) {
        read_nanbeige_loops(reader, config, method);
    } else if (owner != nullptr) {
        read_own_method(reader, config, *owner, method);
    } else {
        read_pondering(reader, config, method);
    }
}

/// Applies --steps, which replaces the config's number of recurrences.
void replace_steps(const JsonObject& json, ModelConfig& config, std::int64_t steps) {
    const MethodKind method = config.ponder.method;
    if (!method_info(method).any_steps) {
        const std::string able = method_names([](const MethodInfo& info) { return info.any_steps; });
        throw InputError(ErrorId::usage_unsuited, json.source(),
                         "a method whose steps share all weights (" + able + ") with --steps",
                         to_string(method), "leave --steps out");
    }
    if (steps < 1 || steps > config_limits::steps) {
        throw InputError(ErrorId::usage_value, "--steps: expected a number of recurrences from 1 to " +
                                                   std::to_string(config_limits::steps) + ", found " +
                                                   std::to_string(steps) + ".");
    }
    if (config.ponder.max_steps != steps - 1) {
        config.notices.push_back(
            {NoticeId::config_steps, "Runs " + std::to_string(steps) +
                                         " recurrences, not the number of config.json, " +
                                         std::to_string(config.ponder.max_steps + 1) + "."});
    }
    config.ponder.max_steps = steps - 1;
}

} // namespace

ModelConfig read_model_config(const std::filesystem::path& config_json, std::optional<MethodKind> method,
                              std::optional<std::int64_t> steps, const TensorNames& tensors) {
    return parse_model_config(
        read_json_file(config_json, {.max_bytes = std::uint64_t{16} << 20, .python = true}), config_json,
        method, steps, tensors);
}

ModelConfig parse_model_config(const nlohmann::json& document, const std::filesystem::path& source,
                               std::optional<MethodKind> method, std::optional<std::int64_t> steps,
                               const TensorNames& tensors) {
    JsonObject json(document, source);
    json.remember_asked();
    ModelConfig config;
    const ArchitectureReader& architecture = find_architecture(json);
    config.architecture = architecture.architecture;
    refuse_quantisation(json);
    const ConfigReader reader(json, config.notices, tensors);
    architecture.read(reader, config);
    reader.refuse_unless("is_causal", true, "this build runs causal models only");
    if (config.embed_dim == 0) {
        config.embed_dim = config.hidden_size;
    }
    if (config.sliding_windows.empty()) {
        config.sliding_windows.assign(static_cast<std::size_t>(config.layers), 0);
    }
    read_method(reader, config, method);
    if (steps) {
        replace_steps(json, config, *steps);
    }
    report_unread(json, config.notices);
    return config;
}

void keep_first_layers(ModelConfig& config, std::int64_t layers) {
    const std::string flag = "--layers " + std::to_string(layers) + ": ";
    if (config.recurs() || config.architecture == Architecture::hrm_text) {
        throw InputError(
            ErrorId::usage_unsuited,
            flag + "the stack of " + to_string(config.architecture) +
                " models has several parts, and its first layers do not form a model; leave --layers out.");
    }
    if (!config.tah.gate_layers.empty() ||
        (config.depth.kind != DepthMixing::none && config.depth.kind != DepthMixing::depth_attention)) {
        throw InputError(ErrorId::usage_unsuited,
                         flag + "some tensors of the checkpoint depend on its number of layers (" +
                             (!config.tah.gate_layers.empty() ? to_string(config.ponder.method)
                                                              : to_string(config.depth.kind)) +
                             "); leave --layers out.");
    }
    if (layers < 1 || layers > config.layers) {
        throw InputError(ErrorId::usage_value, flag + "the checkpoint has " + std::to_string(config.layers) +
                                                   " layers. Give a number from 1 to " +
                                                   std::to_string(config.layers) + ".");
    }
    if (layers == config.layers) {
        return;
    }
    config.notices.push_back({NoticeId::config_layers, "Runs the first " + std::to_string(layers) +
                                                           " of the " + std::to_string(config.layers) +
                                                           " layers (--layers)."});
    config.layers_left_out = config.layers - layers;
    config.layers = layers;
    config.sliding_windows.resize(static_cast<std::size_t>(layers));
    if (!config.layer_rope.empty()) {
        config.layer_rope.resize(static_cast<std::size_t>(layers));
    }
    std::erase_if(config.experts.layers, [&](std::int64_t layer) { return layer >= layers; });
}

std::string to_string(Architecture architecture) {
    return std::string(architectures[static_cast<std::size_t>(architecture)].name);
}

std::string to_string(MethodKind method) {
    return method_names_in_order[static_cast<std::size_t>(method)];
}

std::string to_string(Activation activation) {
    return activation_names[static_cast<std::size_t>(activation)];
}

std::string to_string(DepthMixing mixing) {
    return mixing_names[static_cast<std::size_t>(mixing)];
}

std::optional<MethodKind> method_from_string(const std::string& name) {
    const MethodInfo* const info = method_info(name);
    return info != nullptr ? std::optional(info->kind) : std::nullopt;
}

} // namespace ponderscope
