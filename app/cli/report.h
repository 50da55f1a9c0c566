// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/json.h"
#include "core/stats/bootstrap.h"

#include <cstddef>
#include <string>

/// What verbs that print figures have in common: figures as JSON, figures as text, columns.
namespace ponderscope::cli {

/// {"value", "low", "high", "detectable"}
nlohmann::json json_of(const Estimate& estimate);
/// "1.947 [1.682, 1.922]"
std::string interval(const Estimate& estimate, int decimals = 4);

/// Filled with spaces to at least \p width bytes, behind the text or before it.
std::string padded(const std::string& text, std::size_t width);
std::string right(const std::string& text, std::size_t width);

} // namespace ponderscope::cli
