// SPDX-License-Identifier: GPL-3.0-or-later
// The recurrence: keys of PonderLM (arXiv 2505.20674), of the PonderLM-2 code base (2509.23184), which serve
// five methods without naming one, and our own "pondering" section for the methods that have no public
// format.
#include "core/checkpoint/config_reader.h"

#include "core/base/error.h"
#include "core/checkpoint/method_info.h"

#include <algorithm>

namespace ponderscope {
namespace {

bool is_one_of(MethodKind method, std::initializer_list<MethodKind> methods) {
    return std::find(methods.begin(), methods.end(), method) != methods.end();
}

template <typename Value>
struct Named {
    std::string_view name;
    Value value;
};

/// One of a fixed set of texts.
template <typename Value>
Value choice(const JsonObject& section, std::string_view key, std::initializer_list<Named<Value>> known,
             Value otherwise) {
    const std::optional<std::string> text = section.text(key);
    if (!text) {
        return otherwise;
    }
    std::string list;
    for (const Named<Value>& entry : known) {
        if (entry.name == *text) {
            return entry.value;
        }
        list += (list.empty() ? "" : ", ") + std::string(entry.name);
    }
    section.fail(key, "one of " + list);
}

void check_pause_token(const ConfigReader& reader, const ModelConfig& config) {
    if (config.ponder.pause_token_id >= config.vocab_size) {
        reader.json().fail("pause_token_id", "an id below vocab_size, " + std::to_string(config.vocab_size) +
                                                 ", (50288 where the key is absent)");
    }
}

// ---- our own section
// ------------------------------------------------------------------------------------------------------------

/// A key that this method does not read changes nothing, so whoever wrote it expects something else; a
/// default does no harm.
void check_applies(const JsonObject& section, std::string_view key, bool is_default, MethodKind method) {
    const std::vector<std::string_view>& known = method_info(method).section_keys;
    const bool applies = std::find(known.begin(), known.end(), key) != known.end();
    if (section.has(key) && !applies && !is_default) {
        section.fail(key, "nothing, since " + to_string(method) + " does not use it,", "remove the key");
    }
}

void read_own_section(const ConfigReader& reader, const JsonObject& section, ModelConfig& config,
                      std::optional<MethodKind> override_) {
    section.allow_only({"method", "max_steps", "threshold", "embed_scale", "multiply_start", "top_k",
                        "remainder", "key_norm"});
    const std::string name = section.required_text("method");
    const std::optional<MethodKind> declared = method_from_string(name);
    if (!declared || !method_info(*declared).has_section) {
        section.fail("method", "a method out of " + method_names(/*with_section_only=*/true));
    }
    PonderConfig ponder;
    ponder.from_own_section = true;
    ponder.method = override_.value_or(*declared);
    if (section.has("max_steps") || ponder.method != MethodKind::vanilla) {
        ponder.max_steps = section.required_integer("max_steps", 0, config_limits::steps);
    }
    const ConfigReader numbers(section, config.notices);
    ponder.threshold = numbers.positive("threshold", 1e-4, true);
    if (ponder.threshold >= 1.0) { // no sigmoid reaches 1, so that nothing would ever go on
        section.fail("threshold", "a number from 0 (never halt) to below 1");
    }
    ponder.embed_scale = choice<EmbedScale>(
        section, "embed_scale",
        {{"none", EmbedScale::none}, {"sqrt_d", EmbedScale::sqrt_d}, {"sqrt_2.5d", EmbedScale::sqrt_2_5_d}},
        EmbedScale::none);
    ponder.multiply_start = numbers.flag("multiply_start", false);
    ponder.top_k = section.integer("top_k", 0, config.vocab_size).value_or(0);
    ponder.remainder = choice<Remainder>(
        section, "remainder", {{"last", Remainder::last}, {"drop", Remainder::drop}}, Remainder::last);
    ponder.pause_token_id =
        reader.json().integer("pause_token_id", 0, config_limits::vocabulary).value_or(ponder.pause_token_id);

    check_applies(section, "threshold", ponder.threshold == 1e-4, *declared);
    check_applies(section, "multiply_start", !ponder.multiply_start, *declared);
    check_applies(section, "top_k", ponder.top_k == 0, *declared);
    check_applies(section, "remainder", ponder.remainder == Remainder::last, *declared);

    const bool before = choice<bool>(section, "key_norm", {{"before_rope", true}, {"after_rope", false}},
                                     !config.depth.key_norm_after_rope);
    if (section.has("key_norm")) {
        if (config.depth.kind == DepthMixing::none) {
            section.fail("key_norm", "nothing without depth mixing", "remove the key");
        }
        config.depth.key_norm_after_rope = !before;
    }
    config.ponder = ponder;
    if (ponder.method == MethodKind::pause) {
        check_pause_token(reader, config);
    }
    config.candidate_methods = {ponder.method};
    for (const char* const key : {"ponderinglm", "pondering_steps", "num_latent_thoughts", "scale_embeds"}) {
        if (reader.json().has(key) && reader.json().value().at(key) != false) {
            reader.notice('"' + std::string(key) + "\" is ignored: the \"pondering\" section decides.");
        }
    }
}

// ---- public keys
// ----------------------------------------------------------------------------------------------------------------

/// The public keys of one config, read once.
struct PublicKeys {
    explicit PublicKeys(const ConfigReader& reader)
        : pondering(reader.json().boolean("ponderinglm")),
          pondering_steps(reader.json().integer("pondering_steps", 0, config_limits::steps)),
          recurrent(reader.flag("recurrent_model", false)),
          thoughts(reader.json().integer("num_latent_thoughts", 0, config_limits::steps)),
          scale_embeds(reader.flag("scale_embeds", false)) {}

    std::optional<bool> pondering;
    std::optional<std::int64_t> pondering_steps;
    bool recurrent;
    std::optional<std::int64_t> thoughts;
    bool scale_embeds;
};

/// Methods that the keys may mean, most likely first. One entry: the config tells.
std::vector<MethodKind> candidates(const ConfigReader& reader, const ModelConfig& config,
                                   const PublicKeys& keys) {
    const bool is_gpt2 = config.architecture == Architecture::gpt2;
    if (keys.pondering == true || (is_gpt2 && keys.recurrent && config.depth.kind == DepthMixing::none)) {
        if (is_gpt2 && !keys.recurrent) {
            reader.notice("\"recurrent_model\" is absent, with which the authors' GPT-2 code would run this "
                          "as a plain GPT-2; here "
                          "\"ponderinglm\" decides and it ponders.");
        }
        return {MethodKind::ponderlm};
    }
    if (!keys.thoughts) {
        if (keys.pondering_steps && !keys.pondering) {
            reader.notice("\"pondering_steps\" is ignored without \"ponderinglm\": true.");
        }
        if (keys.recurrent && config.depth.kind == DepthMixing::none) {
            reader.notice("\"recurrent_model\" is true, but no key says what recurs; read as vanilla.");
        }
        return {MethodKind::vanilla};
    }
    if (config.architecture == Architecture::gpt_neox) {
        if (keys.recurrent) {
            return {MethodKind::ponderlm2, MethodKind::pause, MethodKind::looped,
                    MethodKind::ponderlm_hidden};
        }
        return {MethodKind::ponderlm2, MethodKind::pause};
    }
    if (keys.recurrent) {
        return {MethodKind::ponderlm2, MethodKind::pause, MethodKind::looped, MethodKind::ponderlm_reset};
    }
    reader.notice("\"recurrent_model\" is not true, so the latent thoughts are switched off and the model is "
                  "read as vanilla; if it was "
                  "trained with pause tokens, choose --method pause.");
    return {MethodKind::vanilla};
}

/// What of the five methods does not run without its flag, in the authors' code.
bool is_switched_off(MethodKind method, const ModelConfig& config, const PublicKeys& keys) {
    switch (method) {
    case MethodKind::ponderlm:
        return keys.pondering == false && !(config.architecture == Architecture::gpt2 && keys.recurrent);
    case MethodKind::looped:
    case MethodKind::ponderlm_reset:
    case MethodKind::ponderlm_hidden:
        return !keys.recurrent;
    case MethodKind::ponderlm2:
        return !keys.recurrent && config.architecture != Architecture::gpt_neox;
    default:
        return false;
    }
}

void read_ponderlm(const ConfigReader& reader, ModelConfig& config, const PublicKeys& keys) {
    PonderConfig& ponder = config.ponder;
    ponder.multiply_start = reader.flag("mutiply_pondering_steps", false);
    ponder.embed_scale = keys.scale_embeds ? EmbedScale::sqrt_d : EmbedScale::none;
    const double temperature = reader.positive("softmax_temperature", 1.0);
    if (config.architecture != Architecture::gpt_neox) {
        ponder.temperature = temperature;
    } else if (temperature != 1.0) {
        reader.notice("\"softmax_temperature\" is ignored: the GPT-NeoX code has none.");
    }
}

void read_ponderlm2(const ConfigReader& reader, ModelConfig& config, const PublicKeys& keys) {
    PonderConfig& ponder = config.ponder;
    ponder.interpolation = reader.flag("interpolation", false);
    ponder.interpolation_use_topk = reader.flag("interpolation_use_topk", false);
    ponder.interpolation_topk = reader.size("interpolation_topk", 100, config_limits::vocabulary);
    if (keys.scale_embeds) {
        ponder.embed_scale = ponder.interpolation ? EmbedScale::sqrt_d : EmbedScale::sqrt_2_5_d;
    }
    ponder.jacobi_iterations = reader.json().integer("num_jacobi_iterations", 0, 1'000'000);
}

void read_public_keys(const ConfigReader& reader, ModelConfig& config, std::optional<MethodKind> override_) {
    const PublicKeys keys(reader);
    config.candidate_methods = override_ ? std::vector{*override_} : candidates(reader, config, keys);
    MethodKind method = config.candidate_methods.front();
    if (is_one_of(method,
                  {MethodKind::adaponderlm, MethodKind::ponderlm3, MethodKind::adaptive_latent_cot})) {
        reader.json().fail("pondering", "a section that describes " + to_string(method),
                           "choose another --method or a checkpoint of that method");
    }
    if (method_info(method).read != nullptr) {
        throw InputError(reader.json().source(), "a checkpoint of the method " + to_string(method),
                         "one of the architecture " + to_string(config.architecture) +
                             " that says nothing of it",
                         "choose another --method");
    }
    if (is_switched_off(method, config, keys)) {
        reader.notice('"' + std::string(method == MethodKind::ponderlm ? "ponderinglm" : "recurrent_model") +
                      "\" is not true, so " + to_string(method) +
                      " is switched off and the model runs as vanilla, as in the authors' code.");
        method = MethodKind::vanilla;
        config.candidate_methods = {method};
    }

    PonderConfig& ponder = config.ponder;
    ponder.method = method;
    if (method != MethodKind::vanilla) {
        const bool is_ponderlm = method == MethodKind::ponderlm;
        const std::optional<std::int64_t> steps = is_ponderlm ? keys.pondering_steps : keys.thoughts;
        if (!steps) {
            reader.json().fail(is_ponderlm ? "pondering_steps" : "num_latent_thoughts",
                               "the number of further steps, a whole number,",
                               "add the key or choose --method vanilla");
        }
        ponder.max_steps = *steps;
    }
    switch (method) {
    case MethodKind::vanilla:
        if (config.depth.kind != DepthMixing::none) {
            ponder.embed_scale = keys.scale_embeds ? EmbedScale::sqrt_d : EmbedScale::none;
        } else if (keys.scale_embeds) {
            reader.notice("\"scale_embeds\" is ignored: no method that runs says by what.");
        }
        break;
    case MethodKind::looped:
        ponder.embed_scale = EmbedScale::sqrt_2_5_d;
        break;
    case MethodKind::pause:
        ponder.pause_token_id = reader.json()
                                    .integer("pause_token_id", 0, config_limits::vocabulary)
                                    .value_or(ponder.pause_token_id);
        ponder.embed_scale = keys.scale_embeds || config.architecture != Architecture::gpt_neox
                                 ? EmbedScale::sqrt_d
                                 : EmbedScale::none;
        if (config.candidate_methods.size() == 1) {
            check_pause_token(reader, config);
        }
        break;
    case MethodKind::ponderlm:
        read_ponderlm(reader, config, keys);
        break;
    case MethodKind::ponderlm_reset:
        ponder.embed_scale = keys.scale_embeds ? EmbedScale::sqrt_d : EmbedScale::none;
        ponder.residual_interpolated_embeds = reader.flag("residual_interpolated_embeds", false);
        break;
    case MethodKind::ponderlm_hidden:
        break; // no scale, whatever the config says
    case MethodKind::ponderlm2:
        read_ponderlm2(reader, config, keys);
        break;
    default:
        break; // what has a section of its own
    }
}

} // namespace

void read_own_method(const ConfigReader& reader, ModelConfig& config, MethodKind own,
                     std::initializer_list<MethodKind> others, std::optional<MethodKind> method) {
    reader.refuse_unless("pondering", nullptr,
                         "a checkpoint of the method " + to_string(own) +
                             " says by its own keys what is computed");
    const MethodKind chosen = method.value_or(own);
    if (chosen != own && !is_one_of(chosen, others)) {
        std::string names = to_string(own);
        for (const MethodKind other : others) {
            names += " or " + to_string(other);
        }
        throw InputError(reader.json().source(), "--method " + names + " for this checkpoint",
                         to_string(chosen), "leave --method out");
    }
    config.ponder.method = chosen;
    config.candidate_methods = {chosen};
    if (chosen == MethodKind::vanilla) {
        return;
    }
    method_info(own).read(reader, config);
}

void read_pondering(const ConfigReader& reader, ModelConfig& config, std::optional<MethodKind> method) {
    if (const std::optional<JsonObject> section = reader.json().object("pondering")) {
        read_own_section(reader, *section, config, method);
    } else {
        read_public_keys(reader, config, method);
    }
}

void read_nanbeige_loops(const ConfigReader& reader, ModelConfig& config, std::optional<MethodKind> method) {
    const std::string why = "this build cannot run the checkpoint";
    for (const char* const key : {"enable_double_loop_split", "loop_share_kv", "enable_hyper_connection",
                                  "enable_mhc", "ngram_insert_all_layers"}) {
        reader.refuse_unless(key, false, why);
    }
    for (const char* const key :
         {"loop_middle_layers", "ngram_vocab_size_ratio", "emb_neighbor_num", "emb_split_num"}) {
        reader.refuse_unless(key, nullptr, why);
    }
    const JsonObject& json = reader.json();
    if (const nlohmann::json* inserted = json.array("insert_ngram_layer_idx");
        inserted != nullptr && !inserted->empty()) {
        json.fail("insert_ngram_layer_idx", "an empty array", why);
    }
    std::int64_t passes = reader.size("num_loops", 1, config_limits::steps);
    if (const nlohmann::json* weights = json.array("loop_loss_weights");
        weights != nullptr && !weights->empty()) {
        const auto by_weights = static_cast<std::int64_t>(weights->size()) + 1;
        if (by_weights > config_limits::steps) {
            json.fail("loop_loss_weights",
                      "at most " + std::to_string(config_limits::steps - 1) + " entries");
        }
        if (by_weights != passes) {
            reader.notice("\"loop_loss_weights\" overrides \"num_loops\": the stack runs " +
                          std::to_string(by_weights) + " times.");
        }
        passes = by_weights;
    }
    const MethodKind own = passes > 1 ? MethodKind::looped : MethodKind::vanilla;
    const MethodKind chosen = method.value_or(own);
    if (!is_one_of(chosen, {MethodKind::looped, MethodKind::vanilla})) {
        throw InputError(json.source(), "--method looped or vanilla for a Nanbeige checkpoint",
                         to_string(chosen), "leave --method out");
    }
    config.ponder.method = chosen;
    config.ponder.max_steps = chosen == MethodKind::looped ? passes - 1 : 0;
    config.ponder.loop_final_norm_each_pass =
        chosen == MethodKind::looped && !reader.flag("skip_loop_final_norm", false);
    config.candidate_methods = {chosen};
}

} // namespace ponderscope
