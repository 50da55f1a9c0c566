// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/recorded_choices.h"

#include <nlohmann/json.hpp>

namespace ponderscope {

RecordedChoices recorded_choices(const RunInfo& run) {
    const nlohmann::json choices = nlohmann::json::parse(run.choices, nullptr, false);
    const auto text = [&choices](const char* key) {
        const auto found = choices.is_object() ? choices.find(key) : choices.end();
        return found != choices.end() && found->is_string() ? found->get<std::string>() : std::string();
    };
    return {text("kv"), text("initial_state")};
}

std::string kv_of_rerun(const RunInfo& run) {
    const std::string kv = recorded_choices(run).kv;
    return kv == "full" ? "per_step" : kv;
}

} // namespace ponderscope
