// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/checkpoint/model_config.h"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <vector>

namespace ponderscope::testing {

/// A model that every property of the engine is tried on.
struct Subject {
    std::string name;
    nlohmann::json config;
    std::optional<MethodKind> method = std::nullopt; ///< where the config fits several
    bool carries_rounding = false;                   ///< beyond what half precision can show
};

/// The config with our own section for a method.
nlohmann::json own_section(nlohmann::json config, nlohmann::json section);
nlohmann::json own_section(nlohmann::json config, const char* method, double threshold);

/// Every method on the three families of backbones, with the keys that change its arithmetic; the other
/// backbones; depth mixing, alone and below each way to ponder.
std::vector<Subject> subjects();
Subject subject_named(const std::string& name);

} // namespace ponderscope::testing
