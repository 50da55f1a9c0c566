// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/recorded_choices.h"

#include "core/base/error.h"
#include "core/base/json.h"

#include <nlohmann/json.hpp>

#include <limits>
#include <utility>

namespace ponderscope {

nlohmann::json choices_json(std::string_view choices) {
    if (choices.empty()) {
        return {};
    }
    try {
        nlohmann::json json = parse_json(choices, "choices");
        return json.is_object() ? json : nlohmann::json();
    } catch (const InputError&) {
        return {};
    }
}

nlohmann::json to_json(const Branch& branch) {
    nlohmann::json json{{"of", branch.of},
                        {"text_digest", branch.text_digest},
                        {"sequence", branch.sequence},
                        {"at", branch.at}};
    if (branch.forced) {
        json["forced"] = *branch.forced;
    }
    return json;
}

RecordedChoices recorded_choices(std::string_view choices) {
    const nlohmann::json json = choices_json(choices);
    RecordedChoices chosen;
    if (json.is_null()) {
        return chosen;
    }
    for (const auto& [key, text] : {std::pair{"kv", &chosen.kv},
                                    {"initial_state", &chosen.initial_state},
                                    {"initial_state_digest", &chosen.initial_state_digest}}) {
        const auto found = json.find(key);
        if (found != json.end() && found->is_string()) {
            *text = found->get<std::string>();
        }
    }
    if (const auto threshold = json.find("threshold"); threshold != json.end()) {
        chosen.threshold =
            threshold->is_number() ? threshold->get<double>() : std::numeric_limits<double>::quiet_NaN();
    }
    if (const auto rule = json.find("rule"); rule != json.end() && rule->is_object()) {
        const auto signal = rule->find("signal"), stops = rule->find("stops"), theta = rule->find("theta");
        if (signal != rule->end() && signal->is_string() && stops != rule->end() &&
            (*stops == "below" || *stops == "above") && theta != rule->end() && theta->is_number()) {
            chosen.rule = {signal->get<std::string>(), *stops == "below", theta->get<double>()};
        }
    }
    // Policies take lengths as 32-bit numbers. Steps are smaller.
    const auto whole = [](const nlohmann::json& value) -> std::optional<std::int64_t> {
        return value.is_number_unsigned() &&
                       value.get<std::uint64_t>() <= std::numeric_limits<std::uint32_t>::max()
                   ? std::optional(value.get<std::int64_t>())
                   : std::nullopt;
    };
    if (const auto step = json.find("exit_step"); step != json.end()) {
        chosen.exit_step = whole(*step);
    }
    if (const auto lengths = json.find("planned_lengths"); lengths != json.end() && lengths->is_array()) {
        for (const nlohmann::json& length : *lengths) {
            chosen.planned_lengths.push_back(whole(length).value_or(0));
        }
    }
    if (const auto found = json.find("branch"); found != json.end() && found->is_object()) {
        const auto text = [&](const char* key) {
            const auto value = found->find(key);
            return value != found->end() && value->is_string() ? value->get<std::string>() : std::string();
        };
        const auto number = [&](const char* key) {
            const auto value = found->find(key);
            return value == found->end() ? std::nullopt : whole(*value);
        };
        chosen.branch = {text("of"), text("text_digest"), number("sequence").value_or(0),
                         number("at").value_or(0), std::nullopt};
        if (const auto forced = number("forced");
            forced && *forced <= std::numeric_limits<std::int32_t>::max()) {
            chosen.branch->forced = static_cast<std::int32_t>(*forced);
        }
    }
    if (const auto patches = json.find("patches"); patches != json.end()) {
        chosen.patches = patches->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    }
    return chosen;
}

RecordedChoices recorded_choices(const RunInfo& run) {
    return recorded_choices(run.choices);
}

std::vector<std::string> notices_of(const RunInfo& run) {
    std::vector<std::string> sentences;
    const nlohmann::json notices = nlohmann::json::parse(run.notices, nullptr, /*allow_exceptions=*/false);
    for (const nlohmann::json& notice : notices.is_array() ? notices : nlohmann::json::array()) {
        if (notice.is_string()) {
            sentences.push_back(notice.get<std::string>());
        }
    }
    return sentences;
}

std::string changes_of(const RunInfo& run) {
    std::string changes = recorded_choices(run).patches;
    for (const std::string& notice : notices_of(run)) {
        changes += notice.starts_with("Changed for this run") ? "\n" + notice : "";
    }
    return changes;
}

std::string why_no_rerun(const RunInfo& run) {
    return recorded_choices(run).patches.empty()
               ? ""
               : "Run \"" + run.name +
                     "\" was recorded with states put in the place of computed ones, which a rerun does not "
                     "do "
                     "again; record the policy with ponderscope record ... --patch FILE --policy SPEC.";
}

std::string kv_of_rerun(const RunInfo& run) {
    const std::string kv = recorded_choices(run).kv;
    return kv == "full" ? "per_step" : kv;
}

} // namespace ponderscope
