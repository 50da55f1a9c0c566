// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <utility>

namespace ponderscope::testing {

/// The policy of an entry of "replay" in a case.json, as --policy takes it. \p only_given_rates: leaves out a
/// rate that was taken from the run.
inline std::string golden_policy(const nlohmann::json& entry, bool only_given_rates = false) {
    const std::string policy = entry.value("policy", "");
    std::string text = policy;
    for (const auto& [field, key] : {std::pair{"threshold", policy.starts_with("calm") ? "lambda" : "theta"},
                                     {"steps", "n"},
                                     {"rate", "rate"},
                                     {"seed", "seed"}}) {
        const bool is_own_rate = std::string(field) == "rate" && entry.value("rate_from", "given") != "given";
        if (entry.contains(field) && !(only_given_rates && is_own_rate)) {
            text += (text == policy ? ":" : ",") + std::string(key) + "=" + entry[field].dump();
        }
    }
    return text;
}

/// The same of the replay that a case calls \p name; "full": there is none.
inline std::string golden_policy_named(const nlohmann::json& description, const std::string& name) {
    for (const nlohmann::json& entry : description.value("replay", nlohmann::json::array())) {
        if (entry.value("name", "") == name) {
            return golden_policy(entry);
        }
    }
    return "full";
}

} // namespace ponderscope::testing
