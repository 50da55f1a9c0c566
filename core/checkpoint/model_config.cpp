// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/model_config.h"

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/checkpoint/config_reader.h"
#include "core/checkpoint/method_info.h"

#include <array>
#include <string_view>
#include <utility>

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

constexpr std::pair<MethodKind, std::string_view> methods[] = {
#define PONDERSCOPE_METHOD(name) {MethodKind::name, #name},
#include "core/ponder/methods/methods.def"
#undef PONDERSCOPE_METHOD
};

constexpr std::array<std::pair<DepthMixing, std::string_view>, 5> mixings{
    {{DepthMixing::none, "none"},
     {DepthMixing::depth_attention, "depth_attention"},
     {DepthMixing::denseformer, "denseformer"},
     {DepthMixing::attnres, "attnres"},
     {DepthMixing::mhc, "mhc"}}};

template <typename Table, typename Value>
std::string name_in(const Table& table, Value value) {
    for (const auto& [entry, name] : table) {
        if (entry == value) {
            return std::string(name);
        }
    }
    return "?";
}

const ArchitectureReader& find_architecture(const JsonObject& json) {
    std::optional<std::string> name = json.text("model_type");
    if (!name && json.text("_class_name") == "ParcaeConfig") {
        name = "parcae"; // its files have a class and no type
    }
    std::string known;
    for (const ArchitectureReader& reader : architectures) {
        if (name == reader.name) {
            return reader;
        }
        known += (known.empty() ? "" : ", ") + std::string(reader.name);
    }
    if (!name && json.has("_class_name")) {
        json.fail("_class_name", "ParcaeConfig, the one class without a model_type that runs here,",
                  "this build cannot run the checkpoint");
    }
    json.fail("model_type", "an architecture out of " + known,
              name ? "this build cannot run the checkpoint"
                   : "check that it is a Hugging Face model's config.json");
}

/// Packed weights need unpacking that is not done here; without it they would be read as something else.
void refuse_quantisation(const JsonObject& json) {
    for (const char* const key : {"quantization_config", "quantization"}) {
        if (json.has(key)) {
            json.fail(key, "nothing, since quantised weights are not read,",
                      "get the checkpoint before quantisation");
        }
    }
}

/// The method of a folder that names it by a file of its own, in the way that its authors save it.
const MethodInfo* companion_method(const std::filesystem::path& config_json) {
    for (const MethodInfo& info : method_infos()) {
        std::error_code error;
        if (info.companion != nullptr &&
            std::filesystem::exists(config_json.parent_path() / info.companion, error)) {
            return &info;
        }
    }
    return nullptr;
}

void read_method(const ConfigReader& reader, ModelConfig& config, std::optional<MethodKind> method) {
    const JsonObject& json = reader.json();
    switch (config.architecture) {
    case Architecture::ouro:
        // Without its gate it is a stack that runs several times.
        read_own_method(reader, config, MethodKind::ouro, {MethodKind::looped, MethodKind::vanilla}, method);
        return;
    case Architecture::huginn_raven:
        read_own_method(reader, config, MethodKind::huginn, {}, method);
        return;
    case Architecture::parcae:
        read_own_method(reader, config, MethodKind::parcae, {}, method);
        return;
    case Architecture::nanbeige:
        read_nanbeige_depth(reader, config);
        if (!json.has("pondering")) {
            read_nanbeige_loops(reader, config, method);
            return;
        }
        break;
    default:
        read_depth_mixing(reader, config);
        break;
    }
    if (const MethodInfo* info = companion_method(json.source())) {
        read_own_method(reader, config, info->kind, {MethodKind::vanilla}, method);
        return;
    }
    read_pondering(reader, config, method);
}

/// --steps: another number of recurrences than the config's.
void replace_steps(const JsonObject& json, ModelConfig& config, std::int64_t steps) {
    const MethodKind method = config.ponder.method;
    if (!method_info(method).any_steps) {
        std::string able;
        for (const MethodInfo& info : method_infos()) {
            able += !info.any_steps ? "" : (able.empty() ? "" : ", ") + to_string(info.kind);
        }
        throw InputError(json.source(), "a method whose steps share all weights (" + able + ") with --steps",
                         to_string(method), "leave --steps out");
    }
    if (steps < 1 || steps > config_limits::steps) {
        throw InputError("--steps: expected a number of recurrences from 1 to " +
                         std::to_string(config_limits::steps) + ", found " + std::to_string(steps) + ".");
    }
    if (config.ponder.max_steps != steps - 1) {
        config.notices.push_back("Runs " + std::to_string(steps) + " recurrences, where config.json has " +
                                 std::to_string(config.ponder.max_steps + 1) + ".");
    }
    config.ponder.max_steps = steps - 1;
}

} // namespace

ModelConfig read_model_config(const std::filesystem::path& config_json, std::optional<MethodKind> method,
                              std::optional<std::int64_t> steps, const TensorNames& tensors) {
    const nlohmann::json document = read_json_file(config_json, {std::uint64_t{16} << 20, 64});
    const JsonObject json(document, config_json);
    ModelConfig config;
    const ArchitectureReader& architecture = find_architecture(json);
    config.architecture = architecture.architecture;
    refuse_quantisation(json);
    const ConfigReader reader(json, config.notices, tensors);
    architecture.read(reader, config);
    if (config.embed_dim == 0) {
        config.embed_dim = config.hidden_size;
    }
    if (config.sliding_windows.empty()) {
        config.sliding_windows.assign(static_cast<std::size_t>(config.layers), 0);
    }
    // Saved by newer versions as "dtype", by older ones as "torch_dtype". Only told, never acted upon.
    for (const char* const key : {"dtype", "torch_dtype"}) {
        const nlohmann::json* value = json.find(key);
        if (!config.declared_dtype && value != nullptr && value->is_string()) {
            config.declared_dtype = value->get<std::string>();
        }
    }
    read_method(reader, config, method);
    if (steps) {
        replace_steps(json, config, *steps);
    }
    return config;
}

std::string to_string(Architecture architecture) {
    for (const ArchitectureReader& reader : architectures) {
        if (reader.architecture == architecture) {
            return std::string(reader.name);
        }
    }
    return "?";
}

std::string to_string(MethodKind method) {
    return name_in(methods, method);
}

std::string to_string(DepthMixing mixing) {
    return name_in(mixings, mixing);
}

std::optional<MethodKind> method_from_string(const std::string& name) {
    for (const auto& [method, known] : methods) {
        if (known == name) {
            return method;
        }
    }
    return std::nullopt;
}

} // namespace ponderscope
