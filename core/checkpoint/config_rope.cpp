// SPDX-License-Identifier: GPL-3.0-or-later
// Rotary position embeddings: three generations of keys for the same thing. As transformers 5 reads them.
#include "core/checkpoint/config_reader.h"

#include "core/base/error.h"

#include <utility>

namespace ponderscope {
namespace {

RopeConfig::Kind kind_of(const JsonObject& section, std::string_view key) {
    const std::string name = section.text(key).value_or("default");
    if (name == "default") {
        return RopeConfig::Kind::standard;
    }
    if (name == "linear") {
        return RopeConfig::Kind::linear;
    }
    if (name == "dynamic") {
        return RopeConfig::Kind::dynamic;
    }
    if (name == "llama3") {
        return RopeConfig::Kind::llama3;
    }
    if (name == "yarn") {
        return RopeConfig::Kind::yarn;
    }
    section.fail(key, "default, linear, dynamic, llama3 or yarn", "this build cannot run the checkpoint");
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
        section.json().fail("rope_theta", "a base above 1 with yarn");
    }
}

} // namespace

void read_rope(const ConfigReader& reader, ModelConfig& config, const RopeKeys& keys) {
    const JsonObject& json = reader.json();
    std::optional<JsonObject> scaling = json.object("rope_scaling");
    std::optional<JsonObject> parameters = json.object("rope_parameters");
    const bool scaling_wins = scaling && !scaling->value().empty();
    if (scaling_wins && parameters && !parameters->value().empty() &&
        parameters->value() != scaling->value()) {
        reader.notice("\"rope_scaling\" replaces \"rope_parameters\", whose keys are ignored.");
    }
    const nlohmann::json nothing = nlohmann::json::object();
    const JsonObject inner = scaling_wins ? *scaling
                             : parameters ? *parameters
                                          : JsonObject(nothing, json.source(), "rope_parameters");
    // "finetuned" is a note of old files to themselves.
    inner.allow_only({"rope_type", "type", "rope_theta", "partial_rotary_factor", "factor",
                      "original_max_position_embeddings", "low_freq_factor", "high_freq_factor",
                      "attention_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "truncate",
                      "finetuned", "long_factor", "short_factor"});
    std::vector<std::string> ignored;
    const ConfigReader section(inner, ignored);

    RopeConfig rope;
    rope.kind = kind_of(inner, inner.has("rope_type") ? "rope_type" : "type");
    rope.theta = section.positive("rope_theta", reader.positive(keys.theta, keys.default_theta));

    double part = section.positive_if_given("partial_rotary_factor", true).value_or(-1.0);
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
        throw InputError(json.source(), "an even number of rotated elements in a head",
                         std::to_string(rope.rotary_dims) + " of " + std::to_string(config.head_dim),
                         "correct the file");
    }

    // A maximum length from before the scaling: the top level has priority there, as in transformers.
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
                       "a kind that works with two rotated elements");
        }
        reader.notice("The rotary embedding is of the dynamic kind: its angles depend on the length of the "
                      "whole sequence, so cached "
                      "decoding differs from the full forward. The full forward is the reference.");
        break;
    case RopeConfig::Kind::llama3:
    case RopeConfig::Kind::yarn:
        rope.factor = required_positive(section, "factor");
        rope.original_max_positions = reader.size(
            "original_max_position_embeddings",
            section.size("original_max_position_embeddings", config.max_positions, config_limits::positions),
            config_limits::positions);
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
    config.rope = rope;
}

} // namespace ponderscope
