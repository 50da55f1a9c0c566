// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/checkpoint/config_reader.h"
#include "core/checkpoint/file_kind.h"
#include "core/checkpoint/method_info.h"
#include "core/checkpoint/safetensors.h"

#include <algorithm>

namespace ponderscope {

namespace {

namespace fs = std::filesystem;

const char* const adapter_config = "lora/adapter_config.json";
const char* const adapter_weights = "lora/adapter_model.safetensors";
const char* const gate_weights = "iter_decider.safetensors";

/// Checks the file of the gate. Released checkpoints have it as a pickle, which this program never opens.
void require_gate(const fs::path& folder) {
    std::error_code error;
    if (fs::exists(folder / gate_weights, error)) {
        return;
    }
    if (fs::exists(folder / "iter_decider.bin", error)) {
        throw InputError(
            ErrorId::checkpoint_files, folder / "iter_decider.bin",
            std::string("the gate as ") + gate_weights,
            "a PyTorch pickle, which Ponderscope never opens, because a pickle can run any code",
            "if you trust its source, convert its tensors: python3 resources/convert_pickle.py " +
                (folder / "iter_decider.bin").string());
    }
    throw InputError(ErrorId::checkpoint_files, folder, std::string("a gate, ") + gate_weights, "none",
                     "convert the checkpoint's iter_decider.bin with resources/convert_pickle.py, or run the "
                     "model without its gate (--method vanilla)");
}

std::vector<std::int64_t> whole_numbers(const JsonObject& json, std::string_view key, std::int64_t min,
                                        std::int64_t max) {
    std::vector<std::int64_t> values;
    for (const nlohmann::json& value : json.required_array(key)) {
        if (!value.is_number_integer() ||
            (value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(max)) ||
            value.get<std::int64_t>() < min || value.get<std::int64_t>() > max) {
            json.fail(key, "whole numbers from " + std::to_string(min) + " to " + std::to_string(max));
        }
        values.push_back(value.get<std::int64_t>());
    }
    if (values.empty()) {
        json.fail(key, "at least one number");
    }
    return values;
}

bool is_nothing(const nlohmann::json& value) {
    return value.is_null() || value == false || (value.is_structured() && value.empty());
}

void read_adapters(const fs::path& folder, ModelConfig& config) {
    const fs::path path = folder / adapter_config;
    const nlohmann::json document = read_json_file(path, {.python = true});
    const JsonObject json(document, path);
    for (const char* const key :
         {"use_dora", "use_rslora", "rank_pattern", "alpha_pattern", "modules_to_save", "fan_in_fan_out"}) {
        const nlohmann::json* value = json.find(key);
        if (value != nullptr && !is_nothing(*value)) {
            json.fail(key, "no value, because only plain LoRA is supported,", cannot_run);
        }
    }
    if (json.text("bias").value_or("none") != "none") {
        json.fail("bias", "none", cannot_run);
    }
    config.tah.lora_rank = json.required_integer("r", 1, config_limits::width);
    config.tah.lora_alpha = json.required_number("lora_alpha");
    const SafetensorsFile file = SafetensorsFile::open(folder / adapter_weights);
    const std::string prefix = "base_model.model.";
    const std::string ending = ".lora_A.weight";
    for (const TensorView& view : file.tensors()) {
        const std::string& name = view.name;
        const bool block = name.starts_with(prefix + "model.layers.");
        if (!block || (!name.ends_with(ending) && !name.ends_with(".lora_B.weight"))) {
            throw InputError(ErrorId::checkpoint_tensor, folder / adapter_weights,
                             "adapters of the layers' matrices only", "tensor " + name, cannot_run);
        }
        if (name.ends_with(ending)) {
            config.tah.adapted.push_back(
                name.substr(prefix.size(), name.size() - prefix.size() - ending.size()));
        }
    }
    std::sort(config.tah.adapted.begin(), config.tah.adapted.end());
}

void read_tah_keys(const ConfigReader& reader, ModelConfig& config) {
    const fs::path folder = reader.json().source().parent_path();
    if (config.architecture != Architecture::llama && config.architecture != Architecture::mistral &&
        config.architecture != Architecture::qwen2 && config.architecture != Architecture::qwen3) {
        throw InputError(ErrorId::json_value, reader.json().source(),
                         "a Llama, Mistral, Qwen 2 or Qwen 3 model beside tah_config.json",
                         to_string(config.architecture), cannot_run);
    }
    const nlohmann::json document = read_json_file(folder / "tah_config.json", {.python = true});
    const JsonObject json(document, folder / "tah_config.json");
    if (json.text("embedding_key").value_or("model.embed_tokens") != "model.embed_tokens") {
        json.fail("embedding_key", "model.embed_tokens", cannot_run);
    }
    if (const std::optional<std::string> decider = json.text("iter_decider"); decider != "MLPIterDecider") {
        json.fail("iter_decider", "MLPIterDecider",
                  "a checkpoint of the first training step has no gate: open it with --method vanilla");
    }
    if (json.text("eval_iter_decider").value_or("iter_decider") != "iter_decider") {
        json.fail("eval_iter_decider", "iter_decider", cannot_run);
    }
    PonderConfig& ponder = config.ponder;
    ponder.max_steps = json.required_integer("max_iter", 1, config_limits::steps) - 1;
    const nlohmann::json nothing = nlohmann::json::object();
    const JsonObject updater = json.object("input_updater_kwargs")
                                   .value_or(JsonObject(nothing, json.source(), "input_updater_kwargs"));
    ponder.top_k =
        std::min(updater.integer("topk", 1, config_limits::vocabulary).value_or(100), config.vocab_size);
    const JsonObject gate = json.required_object("iter_decider_kwargs");
    Notices unused;
    const ConfigReader numbers(gate, unused);
    ThinkAtHardConfig& tah = config.tah;
    tah.gate_logits = std::min(numbers.size("topk", 100, config_limits::vocabulary), config.vocab_size);
    tah.gate_layers = whole_numbers(gate, "hidden_states_layer_nums", 0, config.layers);
    tah.gate_widths = whole_numbers(gate, "hidden_dims", 1, config_limits::width);
    tah.gate_expansion = numbers.size("expansion_factor", 4, 1024);
    tah.normalise_input = numbers.flag("normalize_input", false);
    if (gate.integer("hidden_states_size").value_or(config.hidden_size) != config.hidden_size) {
        gate.fail("hidden_states_size",
                  "the hidden size of config.json, " + std::to_string(config.hidden_size) + ",");
    }
    // If the key is absent, the threshold is the tensor with this name in the gate's file.
    require_gate(folder);
    if (const std::optional<double> threshold = gate.number("threshold")) {
        ponder.threshold = *threshold;
    } else {
        ponder.threshold = 0.5;
        tah.threshold_in_file = true;
    }
    read_adapters(folder, config);
    config.companions = {{"tah_config.json", ""},
                         {adapter_config, ""},
                         {adapter_weights, "lora."},
                         {gate_weights, "iter_decider."}};
}

} // namespace

MethodInfo tah_info() {
    return {
        .kind = MethodKind::tah,
        .summary =
            "Hard tokens run again, with adapters, on a mixture of the likeliest next tokens; logits add up "
            "(Think-at-Hard, arXiv 2511.08577)",
        .own_rule = {"gate", OwnRule::Form::value_at_k, OwnRule::Stops::at_most},
        .has_section = false,
        .any_steps = true,
        .sees_by_own_rule = true,
        .companion = "tah_config.json",
        .instead = {MethodKind::vanilla},
        .read = &read_tah_keys,
        .untrained = "whose gate learns from labels and whose weights lie in several files"};
}

} // namespace ponderscope
