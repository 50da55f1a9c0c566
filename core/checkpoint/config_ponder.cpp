// SPDX-License-Identifier: GPL-3.0-or-later
// Keys that several methods share. The public keys of PonderLM (arXiv 2505.20674) and PonderLM-2 (2509.23184)
// serve several methods without naming one. Our own "pondering" section serves methods without a public
// format. The file of a method reads the keys of that method.
#include "core/checkpoint/config_reader.h"

#include "core/base/error.h"
#include "core/checkpoint/method_info.h"

#include <algorithm>

namespace ponderscope {
namespace {

bool has_key(const std::vector<SectionKey>& keys, std::string_view name) {
    return std::any_of(keys.begin(), keys.end(), [&](const SectionKey& key) { return key.name == name; });
}

/// The section keys of all methods, each once, in the order of methods.def.
const std::vector<SectionKey>& all_section_keys() {
    static const std::vector<SectionKey> all = [] {
        std::vector<SectionKey> found;
        for (const MethodInfo& info : method_infos()) {
            for (const SectionKey& key : info.section) {
                if (!has_key(found, key.name)) {
                    found.push_back(key);
                }
            }
        }
        return found;
    }();
    return all;
}

void read_own_section(const ConfigReader& reader, const JsonObject& section, ModelConfig& config,
                      std::optional<MethodKind> override_) {
    const ConfigReader values(section, config.notices);
    std::vector<std::string_view> known{"method",      "max_steps", "pondering_steps", "num_latent_thoughts",
                                        "embed_scale", "key_norm"};
    for (const SectionKey& key : all_section_keys()) {
        known.push_back(key.name);
    }
    section.allow_only(known);
    const std::string name = section.required_text("method");
    const std::optional<MethodKind> declared = method_from_string(name);
    if (!declared || !method_info(*declared).has_section) {
        section.fail("method", "one of the methods " +
                                   method_names([](const MethodInfo& info) { return info.has_section; }));
    }
    PonderConfig& ponder = config.ponder;
    ponder = {};
    ponder.method = override_.value_or(*declared);
    const std::string_view steps =
        values.either("max_steps", values.either("pondering_steps", "num_latent_thoughts"));
    if (section.has(steps) || ponder.method != MethodKind::vanilla) {
        ponder.max_steps = section.required_integer(steps, 0, config_limits::steps);
    }
    ponder.embed_scale = choice<EmbedScale>(
        section, "embed_scale",
        {{"none", EmbedScale::none}, {"sqrt_d", EmbedScale::sqrt_d}, {"sqrt_2.5d", EmbedScale::sqrt_2_5_d}},
        EmbedScale::none);
    // A key that this method does not read has no effect, so a value other than the default is a mistake.
    for (const SectionKey& key : all_section_keys()) {
        const bool is_default = key.read(values, config);
        if (!is_default && !has_key(method_info(*declared).section, key.name)) {
            section.fail(key.name, "no value, because " + name + " does not use it,", "remove the key");
        }
    }
    const bool before = choice<bool>(section, "key_norm", {{"before_rope", true}, {"after_rope", false}},
                                     !config.depth.key_norm_after_rope);
    if (section.has("key_norm")) {
        if (config.depth.kind == DepthMixing::none) {
            section.fail("key_norm", "no value, because depth mixing is off,", "remove the key");
        }
        config.depth.key_norm_after_rope = !before;
    }
    config.candidate_methods = {ponder.method};
    for (const char* const key : {"ponderinglm", "pondering_steps", "num_latent_thoughts", "scale_embeds"}) {
        if (reader.json().has(key) && reader.json().value().at(key) != false) {
            reader.notice(NoticeId::config_ignored,
                          '"' + std::string(key) + "\" is ignored: the \"pondering\" section replaces it.");
        }
    }
}

/// The methods that the keys may mean, the most likely first. With one entry, the config is unambiguous.
std::vector<MethodKind> candidates(const ConfigReader& reader, const ModelConfig& config,
                                   const PublicKeys& keys) {
    using Meant = PublicForm::Meant;
    std::vector<std::pair<Meant, MethodKind>> found;
    for (const MethodInfo& info : method_infos()) {
        const auto asked = info.public_form.meant;
        if (const Meant meant = asked != nullptr ? asked(config, keys) : Meant::no; meant != Meant::no) {
            found.emplace_back(meant, info.kind);
        }
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const auto& one, const auto& other) { return one.first > other.first; });
    if (!found.empty() && found.front().first == Meant::surely) {
        return {found.front().second};
    }
    if (found.empty()) {
        if (keys.thoughts) {
            reader.notice(
                NoticeId::config_switched_off,
                "\"recurrent_model\" is not true, so the latent thoughts are switched off and the model runs "
                "as vanilla. If the model was trained with pause tokens, choose --method pause.");
        } else if (keys.pondering_steps && !keys.pondering) {
            reader.notice(NoticeId::config_ignored,
                          "\"pondering_steps\" is ignored without \"ponderinglm\": true.");
        }
        if (!keys.thoughts && keys.recurrent && config.depth.kind == DepthMixing::none) {
            reader.notice(
                NoticeId::config_switched_off,
                "\"recurrent_model\" is true, but no key names a method: the model runs as vanilla.");
        }
        return {MethodKind::vanilla};
    }
    std::vector<MethodKind> kinds;
    kinds.reserve(found.size());
    for (const auto& [meant, kind] : found) {
        kinds.push_back(kind);
    }
    return kinds;
}

void read_public_keys(const ConfigReader& reader, ModelConfig& config, std::optional<MethodKind> override_) {
    const PublicKeys keys(reader);
    config.candidate_methods = override_ ? std::vector{*override_} : candidates(reader, config, keys);
    const MethodInfo* method = &method_info(config.candidate_methods.front());
    if (method->public_form.read == nullptr) {
        if (method->has_section) {
            reader.json().fail("pondering", "a section for the method " + to_string(method->kind),
                               "choose another --method or a checkpoint of that method");
        }
        throw InputError(ErrorId::usage_unsuited, reader.json().source(),
                         "a checkpoint of the method " + to_string(method->kind),
                         "a checkpoint of the architecture " + to_string(config.architecture) +
                             " without a section or key for this method",
                         "choose another --method");
    }
    const auto asked = method->public_form.switched_off;
    if (const char* flag = asked != nullptr ? asked(config, keys) : nullptr) {
        reader.notice(NoticeId::config_switched_off,
                      '"' + std::string(flag) + "\" is not true, so " + to_string(method->kind) +
                          " is switched off and the model runs as vanilla, as in the authors' code.");
        method = &method_info(MethodKind::vanilla);
        config.candidate_methods = {method->kind};
    }
    config.ponder.method = method->kind;
    const PublicForm& form = method->public_form;
    if (form.steps_key != nullptr) {
        if (!(keys.*form.steps)) {
            reader.json().fail(form.steps_key, "the number of further steps, a whole number,",
                               "add the key or choose --method vanilla");
        }
        config.ponder.max_steps = *(keys.*form.steps);
    }
    form.read(reader, config, keys);
}

} // namespace

PublicKeys::PublicKeys(const ConfigReader& reader)
    : pondering(reader.json().boolean("ponderinglm")),
      pondering_steps(reader.json().integer("pondering_steps", 0, config_limits::steps)),
      thoughts(reader.json().integer("num_latent_thoughts", 0, config_limits::steps)),
      recurrent(reader.flag("recurrent_model", false)),
      scale_embeds(reader.flag("scale_embeds", false)) {}

const char* PublicForm::without_recurrence(const ModelConfig&, const PublicKeys& keys) {
    return keys.recurrent ? nullptr : "recurrent_model";
}

namespace section_keys {

const SectionKey threshold{
    "threshold", [](const ConfigReader& section, ModelConfig& config) {
        config.ponder.threshold = section.positive("threshold", 1e-4, true);
        if (config.ponder.threshold >= 1.0) { // sigmoids are below 1: every token would stop
            section.json().fail("threshold", "a number of at least 0 (never halt) and below 1");
        }
        return config.ponder.threshold == 1e-4;
    }};

const SectionKey multiply_start{"multiply_start", [](const ConfigReader& section, ModelConfig& config) {
                                    config.ponder.multiply_start = section.flag("multiply_start", false);
                                    return !config.ponder.multiply_start;
                                }};

const SectionKey top_k{"top_k", [](const ConfigReader& section, ModelConfig& config) {
                           config.ponder.top_k =
                               section.json().integer("top_k", 0, config.vocab_size).value_or(0);
                           return config.ponder.top_k == 0;
                       }};

const SectionKey remainder{"remainder", [](const ConfigReader& section, ModelConfig& config) {
                               config.ponder.remainder = choice<Remainder>(
                                   section.json(), "remainder",
                                   {{"last", Remainder::last}, {"drop", Remainder::drop}}, Remainder::last);
                               return config.ponder.remainder == Remainder::last;
                           }};

} // namespace section_keys

void read_own_method(const ConfigReader& reader, ModelConfig& config, const MethodInfo& own,
                     std::optional<MethodKind> method) {
    reader.refuse_unless("pondering", nullptr,
                         "remove the key: " + to_string(own.kind) + " checkpoints have their own keys");
    const MethodKind chosen = method.value_or(own.kind);
    if (chosen != own.kind &&
        std::find(own.instead.begin(), own.instead.end(), chosen) == own.instead.end()) {
        std::string names = to_string(own.kind);
        for (const MethodKind other : own.instead) {
            names += " or " + to_string(other);
        }
        throw InputError(ErrorId::usage_unsuited, reader.json().source(),
                         "--method " + names + " for this checkpoint", to_string(chosen),
                         "leave --method out");
    }
    config.ponder.method = chosen;
    config.candidate_methods = {chosen};
    if (chosen != MethodKind::vanilla) {
        own.read(reader, config);
    }
}

void read_pondering(const ConfigReader& reader, ModelConfig& config, std::optional<MethodKind> method) {
    if (const std::optional<JsonObject> section = reader.json().object("pondering")) {
        read_own_section(reader, *section, config, method);
    } else {
        read_public_keys(reader, config, method);
    }
    if (const auto read = method_info(config.ponder.method).read_beside) {
        read(reader, config);
    }
}

} // namespace ponderscope
