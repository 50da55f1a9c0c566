// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/cli/console.h"
#include "core/stats/bootstrap.h"
#include "core/stats/sensitivity.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace ponderscope::cli {

/// How intervals are made; shared by every verb that prints some.
struct IntervalOptions {
    BootstrapOptions bootstrap;
    std::string interval = "expanded";
    std::string resample = "auto";

    void add_to(CLI::App& verb);
    /// Takes in what the flags say; call before the first use of `bootstrap`.
    void begin(ProgressPrinter& printer);
    /// What the intervals of a report were made with, as keys of the report.
    void write_to(nlohmann::json& report, const Resampling& resampling) const;
    /// "95 % intervals, paired bootstrap: 1,200 clusters drawn whole, 10,000 replicates"
    [[nodiscard]] std::string sentence(const Resampling& resampling) const;
};

/// Rows of the interval of a mean by the length of the blocks, for text and JSON.
std::string lines_of(const std::vector<BlockRow>& rows, const std::string& what);
nlohmann::json json_of(const std::vector<BlockRow>& rows);

} // namespace ponderscope::cli
