// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/cli/console.h"

#include <CLI/CLI.hpp>

namespace ponderscope::cli {

/// --progress auto|json|none.
struct ProgressOption {
    ProgressStyle style = ProgressStyle::automatic;
    void add_to(CLI::App& verb);
};

} // namespace ponderscope::cli
