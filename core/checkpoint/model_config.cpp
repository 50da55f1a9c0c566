// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/model_config.h"

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/checkpoint/config_reader.h"

#include <array>
#include <string_view>
#include <utility>

namespace ponderscope {
namespace {

constexpr std::array<std::pair<Architecture, std::string_view>, 9> architectures{
    {{Architecture::gpt2, "gpt2"},
     {Architecture::gpt_neox, "gpt_neox"},
     {Architecture::llama, "llama"},
     {Architecture::mistral, "mistral"},
     {Architecture::qwen2, "qwen2"},
     {Architecture::qwen3, "qwen3"},
     {Architecture::phi, "phi"},
     {Architecture::opt, "opt"},
     {Architecture::nanbeige, "nanbeige"}}};

constexpr std::array<std::pair<MethodKind, std::string_view>, 10> methods{
    {{MethodKind::vanilla, "vanilla"},
     {MethodKind::looped, "looped"},
     {MethodKind::pause, "pause"},
     {MethodKind::ponderlm, "ponderlm"},
     {MethodKind::ponderlm_reset, "ponderlm_reset"},
     {MethodKind::ponderlm_hidden, "ponderlm_hidden"},
     {MethodKind::ponderlm2, "ponderlm2"},
     {MethodKind::adaponderlm, "adaponderlm"},
     {MethodKind::ponderlm3, "ponderlm3"},
     {MethodKind::adaptive_latent_cot, "adaptive_latent_cot"}}};

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

Architecture read_architecture(const JsonObject& json) {
    const std::optional<std::string> name = json.text("model_type");
    std::string known;
    for (const auto& [architecture, known_name] : architectures) {
        if (name == known_name) {
            return architecture;
        }
        known += (known.empty() ? "" : ", ") + std::string(known_name);
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

} // namespace

ModelConfig read_model_config(const std::filesystem::path& config_json, std::optional<MethodKind> method) {
    const nlohmann::json document = read_json_file(config_json, {std::uint64_t{16} << 20, 64});
    const JsonObject json(document, config_json);
    ModelConfig config;
    config.architecture = read_architecture(json);
    refuse_quantisation(json);
    const ConfigReader reader(json, config.notices);

    switch (config.architecture) {
    case Architecture::gpt2:
        read_gpt2(reader, config);
        break;
    case Architecture::gpt_neox:
        read_gpt_neox(reader, config);
        break;
    case Architecture::phi:
        read_phi(reader, config);
        break;
    case Architecture::opt:
        read_opt(reader, config);
        break;
    case Architecture::llama:
    case Architecture::mistral:
    case Architecture::qwen2:
    case Architecture::qwen3:
    case Architecture::nanbeige:
        read_llama_family(reader, config);
        break;
    }
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
    if (config.architecture == Architecture::nanbeige) {
        read_nanbeige_depth(reader, config);
        if (!json.has("pondering")) {
            read_nanbeige_loops(reader, config, method);
            return config;
        }
    } else {
        read_depth_mixing(reader, config);
    }
    read_pondering(reader, config, method);
    return config;
}

std::string to_string(Architecture architecture) {
    return name_in(architectures, architecture);
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
