// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/config_reader.h"

#include <algorithm>

namespace ponderscope {

std::int64_t ConfigReader::size(std::string_view key, std::int64_t otherwise, std::int64_t max) const {
    if (is_null(key)) {
        object_.fail(key, "a whole number");
    }
    return size_or_null(key, otherwise, max);
}

std::int64_t ConfigReader::size_or_null(std::string_view key, std::int64_t otherwise,
                                        std::int64_t max) const {
    return object_.integer(key, 1, max).value_or(otherwise);
}

std::int64_t ConfigReader::count(std::string_view key, std::int64_t otherwise, std::int64_t max) const {
    return object_.integer(key, 0, max).value_or(otherwise);
}

bool ConfigReader::flag(std::string_view key, bool otherwise) const {
    if (is_null(key) && otherwise) {
        notice(NoticeId::config_assumed,
               "\"" + std::string(key) + "\" is null, so its default (true) is used.");
    }
    return object_.boolean(key).value_or(otherwise);
}

std::optional<double> ConfigReader::positive_if_given(std::string_view key, bool or_zero) const {
    const std::optional<double> value = object_.number(key);
    if (value && (*value < 0 || (*value == 0 && !or_zero) || *value > std::numeric_limits<float>::max())) {
        object_.fail(key, or_zero ? "a number from 0 to 3.4e38" : "a number above 0, up to 3.4e38");
    }
    return value;
}

double ConfigReader::positive(std::string_view key, double otherwise, bool or_zero) const {
    return positive_if_given(key, or_zero).value_or(otherwise);
}

Activation ConfigReader::activation(std::string_view key, Activation otherwise) const {
    // The names in transformers' ACT2FN. Names of the same function map to the same value.
    return choice<Activation>(object_, key,
                              {{"gelu", Activation::gelu},
                               {"gelu_python", Activation::gelu},
                               {"gelu_new", Activation::gelu_tanh},
                               {"gelu_fast", Activation::gelu_tanh},
                               {"gelu_accurate", Activation::gelu_tanh},
                               {"gelu_pytorch_tanh", Activation::gelu_tanh},
                               {"gelu_python_tanh", Activation::gelu_tanh},
                               {"quick_gelu", Activation::quick_gelu},
                               {"relu", Activation::relu},
                               {"relu2", Activation::relu_squared},
                               {"silu", Activation::silu},
                               {"swish", Activation::silu},
                               {"sigmoid", Activation::sigmoid},
                               {"tanh", Activation::tanh},
                               {"mish", Activation::mish},
                               {"linear", Activation::linear}},
                              otherwise, cannot_run);
}

bool ConfigReader::is_null(std::string_view key) const {
    const auto position = object_.value().find(key);
    return position != object_.value().end() && position->is_null();
}

std::string_view ConfigReader::either(std::string_view name, std::string_view alias) const {
    const nlohmann::json* first = object_.find(name);
    const nlohmann::json* second = object_.find(alias);
    if (first != nullptr && second != nullptr && *first != *second) {
        object_.fail(alias, "the value of \"" + std::string(name) + "\" (" + describe(*first) + ")",
                     "remove one of the two keys");
    }
    return first == nullptr && second != nullptr ? alias : name;
}

void ConfigReader::refuse_unless(std::string_view key, const nlohmann::json& inert,
                                 const std::string& why) const {
    const nlohmann::json* value = object_.find(key);
    if (value != nullptr && *value != inert) {
        object_.fail(key, inert.is_null() ? "nothing" : describe(inert), why);
    }
}

std::int64_t even_head_dim(const ConfigReader& reader, const ModelConfig& config,
                           std::string_view hidden_key) {
    if (config.hidden_size % config.query_heads != 0) {
        reader.json().fail(hidden_key,
                           "a multiple of the number of heads, " + std::to_string(config.query_heads) + ",");
    }
    return config.hidden_size / config.query_heads;
}

void check_key_heads(const ConfigReader& reader, const ModelConfig& config) {
    if (config.query_heads % config.kv_heads != 0) {
        const std::string absent = reader.json().has("num_key_value_heads")
                                       ? ""
                                       : " (" + std::to_string(config.kv_heads) + " where the key is absent)";
        reader.json().fail("num_key_value_heads", "a divisor of the number of query heads, " +
                                                      std::to_string(config.query_heads) + "," + absent);
    }
}

void read_sizes(const ConfigReader& reader, ModelConfig& config, const SizeDefaults& defaults) {
    config.vocab_size = reader.size("vocab_size", defaults.vocab_size, config_limits::vocabulary);
    config.hidden_size = reader.size(defaults.hidden_key, defaults.hidden_size, config_limits::width);
    config.layers = reader.size(defaults.layers_key, defaults.layers, config_limits::layers);
    config.query_heads = reader.size(defaults.heads_key, defaults.heads, config_limits::heads);
    config.kv_heads = config.query_heads;
    if (!defaults.kv_heads_key.empty()) {
        const bool is_null = reader.is_null(defaults.kv_heads_key);
        config.kv_heads =
            reader.size_or_null(defaults.kv_heads_key,
                                is_null ? config.query_heads : defaults.kv_heads.value_or(config.query_heads),
                                config_limits::heads);
        check_key_heads(reader, config);
    }
    const std::string_view head_dim = defaults.head_dim_key;
    const bool default_head_dim =
        defaults.head_dim && !(defaults.null_head_dim_divides && reader.is_null(head_dim));
    config.head_dim = !head_dim.empty() && (reader.json().has(head_dim) || default_head_dim)
                          ? reader.size_or_null(head_dim, defaults.head_dim.value_or(0), config_limits::heads)
                          : even_head_dim(reader, config, defaults.hidden_key);
    if (!defaults.intermediate_key.empty()) {
        config.intermediate_size =
            reader.size(defaults.intermediate_key, defaults.intermediate_size, config_limits::width);
    }
    config.max_positions =
        reader.size(defaults.positions_key, defaults.max_positions, config_limits::positions);
    config.norm = defaults.norm;
    config.norm_eps = defaults.norm_key.empty() ? defaults.norm_eps
                                                : reader.positive(defaults.norm_key, defaults.norm_eps, true);
    config.activation = reader.activation(defaults.activation_key, defaults.activation);
    config.tied_embeddings = reader.flag("tie_word_embeddings", defaults.tied);
    read_token_ids(reader, config, defaults.bos, defaults.eos);
    config.sliding_windows.assign(static_cast<std::size_t>(config.layers), 0);
}

void read_biases(const ConfigReader& reader, ModelConfig& config) {
    config.attention_bias = reader.flag("attention_bias", false);
    config.mlp_bias = reader.flag("mlp_bias", false);
}

void read_token_ids(const ConfigReader& reader, ModelConfig& config, std::optional<std::int64_t> default_bos,
                    std::optional<std::int64_t> default_eos) {
    const JsonObject& json = reader.json();
    const auto checked = [&](std::string_view key, const nlohmann::json& value, const char* expected) {
        if (!value.is_number_integer() ||
            (value.is_number_unsigned() && value.get<std::uint64_t>() > config_limits::vocabulary) ||
            value.get<std::int64_t>() < -config_limits::vocabulary) {
            json.fail(key, expected);
        }
        return value.get<std::int64_t>();
    };
    // null means no start token; an absent key means the default. Some files write -1 for no token.
    config.bos_token_id = reader.is_null("bos_token_id") ? std::nullopt : default_bos;
    if (const nlohmann::json* bos = json.find("bos_token_id")) {
        const std::int64_t id = checked("bos_token_id", *bos, "a token id");
        config.bos_token_id = id >= 0 ? std::optional(id) : std::nullopt;
    }
    const auto add_eos = [&](std::int64_t id) {
        auto& ids = config.eos_token_ids;
        if (id >= 0 && std::find(ids.begin(), ids.end(), id) == ids.end()) {
            ids.push_back(id);
        }
    };
    if (const nlohmann::json* eos = json.find("eos_token_id")) {
        for (const nlohmann::json& id : eos->is_array() ? *eos : nlohmann::json::array({*eos})) {
            add_eos(checked("eos_token_id", id, "a token id or an array of them"));
        }
    } else if (default_eos && !reader.is_null("eos_token_id")) {
        add_eos(*default_eos);
    }
}

bool has_window(const ConfigReader& reader, bool otherwise) {
    return !reader.is_null("sliding_window") && (otherwise || reader.json().has("sliding_window"));
}

void read_windows(const ConfigReader& reader, ModelConfig& config, std::optional<std::int64_t> default_window,
                  const std::function<bool(std::int64_t layer)>& slides, const char* switched) {
    const JsonObject& json = reader.json();
    const auto layers = static_cast<std::size_t>(config.layers);
    const bool on = switched == nullptr || reader.flag(switched, false);
    const std::int64_t window =
        reader.size_or_null("sliding_window", default_window.value_or(1), config_limits::positions);
    const nlohmann::json* types = json.array("layer_types");
    if (types != nullptr && types->size() != layers) {
        json.fail("layer_types", "one entry for each of the " + std::to_string(config.layers) + " layers");
    }
    config.sliding_windows.assign(layers, 0);
    for (std::size_t layer = 0; layer < layers; ++layer) {
        bool here = false;
        if (types != nullptr) {
            const nlohmann::json& type = (*types)[layer];
            if (type != "full_attention" && type != "sliding_attention") {
                json.fail("layer_types",
                          "full_attention or sliding_attention in every entry, not " + describe(type) + ",",
                          cannot_run);
            }
            here = type == "sliding_attention";
            if (here && !on) {
                json.fail(switched, "true, because \"layer_types\" has a sliding layer,");
            }
        } else {
            here = on && slides(static_cast<std::int64_t>(layer));
        }
        if (here && !has_window(reader, default_window.has_value())) {
            json.fail("sliding_window", types != nullptr
                                            ? "a length, because \"layer_types\" has a sliding layer,"
                                            : "a length, because the model has sliding layers,");
        }
        config.sliding_windows[layer] = here ? window : 0;
    }
}

} // namespace ponderscope
