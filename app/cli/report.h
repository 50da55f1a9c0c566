// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/stats/data_table.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

/// Shared parts of the verbs that print numbers.
namespace ponderscope::cli {

using namespace plain_text; // NOLINT(google-build-using-namespace): of numbers in every report

/// Prints \p document to standard output.
void print_json(const nlohmann::json& document);
/// A line for each, after \p indent.
void print_notices(const std::vector<std::string>& notices, const std::string& indent = {});

} // namespace ponderscope::cli
