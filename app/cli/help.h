// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <CLI/CLI.hpp>

namespace ponderscope::cli {

/// Formats the help of the program and its verbs, 80 columns wide. `--help` of a verb fits on a screen of 80
/// x 50: purpose, usage, the most important options with a clause each, one example. `--help-all` describes
/// every option in full.
void format_help(CLI::App& program);

} // namespace ponderscope::cli
