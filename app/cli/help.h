// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <CLI/CLI.hpp>

namespace ponderscope::cli {

/// Gives the program and its verbs their help, 80 columns wide. `--help` of a verb fits on a screen of 80 x
/// 50: purpose, usage, the options that most people need in a clause each, one example. `--help-all` has
/// every option in full.
void format_help(CLI::App& program);

} // namespace ponderscope::cli
