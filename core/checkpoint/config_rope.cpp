// SPDX-License-Identifier: GPL-3.0-or-later
// Rotary position embeddings. Reads three generations of keys, as transformers 5 does.
#include "core/checkpoint/config_reader.h"

#include "core/base/error.h"
#include "core/base/words.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace ponderscope {
namespace {

/// Phi-3 has the kinds "default" and "longrope". Two older names mean longrope.
RopeConfig::Kind phi3_kind(const JsonObject& section, std::string_view key) {
    using Kind = RopeConfig::Kind;
    return choice<Kind>(section, key,
                        {{"default", Kind::standard},
                         {"longrope", Kind::longrope},
                         {"su", Kind::longrope},
                         {"yarn", Kind::longrope}},
                        Kind::standard, cannot_run);
}

RopeConfig::Kind kind_of(const JsonObject& section, std::string_view key) {
    using Kind = RopeConfig::Kind;
    return choice<Kind>(section, key,
                        {{"default", Kind::standard},
                         {"linear", Kind::linear},
                         {"dynamic", Kind::dynamic},
                         {"llama3", Kind::llama3},
                         {"yarn", Kind::yarn},
                         {"longrope", Kind::longrope}},
                        Kind::standard, cannot_run);
}

double required_positive(const ConfigReader& reader, std::string_view key) {
    if (const auto value = reader.positive_if_given(key)) {
        return *value;
    }
    reader.json().fail(key, "a number above 0");
}

void read_yarn(const ConfigReader& section, RopeConfig& rope) {
    rope.attention_factor = section.positive_if_given("attention_factor");
    rope.beta_fast = section.positive("beta_fast", 32.0);
    rope.beta_slow = section.positive("beta_slow", 1.0);
    rope.mscale = section.positive_if_given("mscale", true);
    rope.mscale_all_dim = section.positive_if_given("mscale_all_dim", true);
    rope.truncate = section.flag("truncate", true);
    if (rope.theta <= 1.0) {
        section.json().fail("rope_theta", "a base above 1 (required by yarn)");
    }
}

std::vector<double> factors_of(const JsonObject& section, std::string_view key, std::int64_t count) {
    const nlohmann::json& array = section.required_array(key);
    std::vector<double> factors;
    for (const nlohmann::json& value : array) {
        if (!value.is_number() || !(value.get<double>() > 0) ||
            value.get<double>() > std::numeric_limits<float>::max()) {
            section.fail(key, "numbers above 0");
        }
        factors.push_back(value.get<double>());
    }
    if (static_cast<std::int64_t>(factors.size()) != count) {
        section.fail(key,
                     "one number for each of the " + std::to_string(count) + " rotating pairs of a head,");
    }
    return factors;
}

void read_longrope(const ConfigReader& reader, const ConfigReader& section, const ModelConfig& config,
                   RopeConfig& rope) {
    rope.short_factor = factors_of(section.json(), "short_factor", rope.rotary_dims / 2);
    rope.long_factor = factors_of(section.json(), "long_factor", rope.rotary_dims / 2);
    rope.attention_factor = section.positive_if_given("attention_factor");
    rope.factor = section.positive("factor", static_cast<double>(config.max_positions) /
                                                 static_cast<double>(rope.original_max_positions));
    if (rope.factor > 1.0 && rope.original_max_positions == 1) {
        section.json().fail("original_max_position_embeddings", "more than 1");
    }
    reader.notice(NoticeId::config_length, "The rotary embedding is longrope: in a sequence of more than " +
                                               std::to_string(rope.original_max_positions) +
                                               " tokens, all tokens rotate by other angles than in a shorter "
                                               "one. The full forward pass is the reference.");
}

/// Reads one table from the keys of \p inner. Top-level keys replace keys that \p inner lacks.
RopeConfig rope_of(const ConfigReader& reader, const ModelConfig& config, JsonObject inner,
                   const std::string& name_of_section, const RopeKeys& keys) {
    const JsonObject& json = reader.json();
    inner.remember_asked();
    Notices ignored;
    const ConfigReader section(inner, ignored);

    RopeConfig rope;
    const auto tell_two_values = [&](std::string_view inside, std::string_view beside, const char* counts) {
        const nlohmann::json* one = inner.find(inside);
        const nlohmann::json* other = json.find(beside);
        if (one != nullptr && other != nullptr && *one != *other) {
            reader.notice(NoticeId::config_overridden,
                          "\"" + std::string(beside) + "\" is " + describe(*other) + ", and \"" +
                              std::string(inside) + "\" in \"" + name_of_section + "\" is " + describe(*one) +
                              ": " + counts);
        }
    };
    const bool phi3 = config.architecture == Architecture::phi3;
    rope.kind = (phi3 ? phi3_kind : kind_of)(inner, inner.has("rope_type") ? "rope_type" : "type");
    if (const auto older = inner.text("type"); older && older != inner.text("rope_type").value_or(*older)) {
        reader.notice(NoticeId::config_ignored,
                      "\"" + name_of_section +
                          "\" has \"rope_type\" and another value for \"type\", which is ignored.");
    }
    rope.theta = section.positive("rope_theta", reader.positive(keys.theta, keys.default_theta));
    tell_two_values("rope_theta", keys.theta, "the latter is used.");

    double part = section.positive_if_given("partial_rotary_factor", true).value_or(-1.0);
    tell_two_values("partial_rotary_factor", keys.partial.empty() ? "partial_rotary_factor" : keys.partial,
                    "the latter is used.");
    if (part < 0) {
        part = keys.partial.empty() ? json.number("partial_rotary_factor").value_or(1.0)
                                    : reader.positive(keys.partial, keys.default_partial, true);
    }
    if (part > 1.0 || (keys.partial.empty() && part != 1.0)) {
        const std::string expected =
            keys.partial.empty() ? "1, since this architecture rotates whole heads," : "at most 1";
        if (inner.has("partial_rotary_factor")) {
            inner.fail("partial_rotary_factor", expected);
        }
        json.fail(keys.partial.empty() ? "partial_rotary_factor" : keys.partial, expected);
    }
    rope.rotary_dims = static_cast<std::int64_t>(static_cast<double>(config.head_dim) * part);
    if (rope.rotary_dims % 2 != 0) {
        throw InputError(ErrorId::json_value, json.source(), "an even number of rotated elements in a head",
                         std::to_string(rope.rotary_dims) + " of " + std::to_string(config.head_dim),
                         "correct the file");
    }

    // The maximum length before scaling. The top-level key has priority, as in transformers.
    rope.original_max_positions = config.max_positions;
    switch (rope.kind) {
    case RopeConfig::Kind::none:
    case RopeConfig::Kind::standard:
        break;
    case RopeConfig::Kind::linear:
        rope.factor = required_positive(section, "factor");
        break;
    case RopeConfig::Kind::dynamic:
        rope.factor = required_positive(section, "factor");
        if (rope.rotary_dims <= 2) {
            inner.fail(inner.has("rope_type") ? "rope_type" : "type",
                       "a kind other than dynamic, because a head has at most two rotated elements,");
        }
        reader.notice(NoticeId::config_length,
                      "The rotary embedding is of the dynamic kind: its angles depend on the length of the "
                      "whole sequence, so cached decoding differs from the full forward pass. The full "
                      "forward pass is the reference.");
        break;
    case RopeConfig::Kind::llama3:
    case RopeConfig::Kind::yarn:
    case RopeConfig::Kind::longrope:
        rope.original_max_positions =
            reader.size_or_null("original_max_position_embeddings",
                                phi3 ? 4096
                                     : section.size_or_null("original_max_position_embeddings",
                                                            config.max_positions, config_limits::positions),
                                config_limits::positions);
        tell_two_values("original_max_position_embeddings", "original_max_position_embeddings",
                        "the first is used, as in transformers 5; transformers 4 uses the second.");
        if (rope.kind == RopeConfig::Kind::longrope) {
            read_longrope(reader, section, config, rope);
            break;
        }
        rope.factor = required_positive(section, "factor");
        if (rope.kind == RopeConfig::Kind::yarn) {
            read_yarn(section, rope);
        } else {
            rope.low_freq_factor = required_positive(section, "low_freq_factor");
            rope.high_freq_factor = required_positive(section, "high_freq_factor");
            if (rope.high_freq_factor <= rope.low_freq_factor) {
                inner.fail("high_freq_factor", "a number above low_freq_factor");
            }
        }
        break;
    }
    if (rope.rotary_dims == 0) {
        rope.kind = RopeConfig::Kind::none;
    }
    std::vector<std::string> unread = inner.never_asked();
    std::erase(unread, "finetuned"); // a remark in old files, without effect
    if (!unread.empty()) {
        reader.notice(NoticeId::config_unread,
                      "\"" + name_of_section +
                          "\" has keys that its rope_type does not use: " + joined(unread) + ".");
    }
    return rope;
}

} // namespace

void read_rope(const ConfigReader& reader, ModelConfig& config, const RopeKeys& keys) {
    const JsonObject& json = reader.json();
    const std::optional<JsonObject> scaling = json.object("rope_scaling");
    const std::optional<JsonObject> parameters = json.object("rope_parameters");
    const bool scaling_wins = scaling && !scaling->value().empty();
    if (scaling_wins && parameters && !parameters->value().empty() &&
        parameters->value() != scaling->value()) {
        reader.notice(NoticeId::config_overridden,
                      "\"rope_scaling\" replaces \"rope_parameters\", whose keys are ignored.");
    }
    const nlohmann::json nothing = nlohmann::json::object();
    config.rope = rope_of(reader, config,
                          scaling_wins ? *scaling
                          : parameters ? *parameters
                                       : JsonObject(nothing, json.source(), "rope_parameters"),
                          scaling_wins ? "rope_scaling" : "rope_parameters", keys);
}

void read_rope_by_kind(const ConfigReader& reader, ModelConfig& config, const RopeKeys& full_keys,
                       const RopeKeys& sliding_keys, bool flat_is_full) {
    const JsonObject& json = reader.json();
    nlohmann::json full = nlohmann::json::object();
    nlohmann::json sliding = full;
    bool truncate = true;
    if (const auto parameters = json.object("rope_parameters"); parameters && !parameters->value().empty()) {
        const nlohmann::json& value = parameters->value();
        if (value.contains("full_attention") || value.contains("sliding_attention")) {
            for (const auto& [key, kind] :
                 {std::pair{"full_attention", &full}, {"sliding_attention", &sliding}}) {
                if (const auto section = parameters->object(key)) {
                    *kind = section->value();
                }
            }
            truncate = parameters->boolean("truncate").value_or(true);
        } else if (flat_is_full) {
            full = value;
            if (value.contains("rope_theta")) {
                sliding["rope_theta"] = value["rope_theta"];
            }
            reader.notice(NoticeId::config_assumed,
                          "\"rope_parameters\" does not say which layers it is for: full_attention layers "
                          "use all of it, sliding_attention layers its rope_theta alone.");
        } else {
            json.fail("rope_parameters", "an object with the keys full_attention and sliding_attention",
                      cannot_run);
        }
    }
    if (const auto scaling = json.object("rope_scaling")) {
        full.update(scaling->value());
    }
    const auto windowed = [](std::int64_t window) { return window > 0; };
    const auto& windows = config.sliding_windows;
    const auto table = [&](const nlohmann::json& section, const char* kind, const RopeKeys& keys) {
        const std::string name = std::string("rope_parameters.") + kind;
        RopeConfig rope = rope_of(reader, config, JsonObject(section, json.source(), name), name, keys);
        // transformers reads `truncate` from the level of the two kinds.
        rope.truncate = truncate;
        return rope;
    };
    const bool any_full = !std::all_of(windows.begin(), windows.end(), windowed);
    const bool any_sliding = std::any_of(windows.begin(), windows.end(), windowed);
    if (any_sliding) {
        config.local_rope = table(sliding, "sliding_attention", sliding_keys);
    }
    config.rope = any_full ? table(full, "full_attention", full_keys) : config.local_rope;
    if (any_full && any_sliding && config.rope.rotary_dims != config.local_rope.rotary_dims) {
        json.fail("rope_parameters",
                  "the same number of rotated elements for full_attention and sliding_attention,",
                  cannot_run);
    }
    if (any_full && any_sliding && config.rope != config.local_rope) {
        for (const std::int64_t window : windows) {
            config.layer_rope.push_back(window > 0 ? LayerRope::local : LayerRope::main);
        }
    }
}

std::string to_string(RopeConfig::Kind kind) {
    static constexpr const char* names[] = {"none",   "default", "linear",  "dynamic",
                                            "llama3", "yarn",    "longrope"};
    return names[static_cast<std::size_t>(kind)];
}

} // namespace ponderscope
