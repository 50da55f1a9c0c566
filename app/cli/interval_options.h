// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/cli/console.h"
#include "core/stats/bootstrap.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <string>

namespace ponderscope::cli {

/// How intervals are made; shared by every verb that prints some.
struct IntervalOptions {
    BootstrapOptions bootstrap;
    std::string interval = "percentile";

    void add_to(CLI::App& verb);
    /// Takes in what the flags say; call before the first use of `bootstrap`.
    void begin(ProgressPrinter& printer);
    /// What the intervals of a report were made with, as keys of the report.
    void write_to(nlohmann::json& report) const;
    /// "95 % intervals, paired moving-block bootstrap: ..."
    [[nodiscard]] std::string sentence() const;
};

} // namespace ponderscope::cli
