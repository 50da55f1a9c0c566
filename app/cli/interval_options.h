// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/cli/console.h"
#include "core/stats/bootstrap.h"
#include "core/trace/reader.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ponderscope::cli {

/// Options of confidence intervals, for all verbs that print them.
struct IntervalOptions {
    BootstrapOptions bootstrap;
    std::string resample = "auto";

    void add_to(CLI::App& verb);
    /// Applies the flags. Call it before the first use of `bootstrap`.
    void begin(ProgressPrinter& printer);
    /// Adds the settings of the intervals to a JSON report.
    void write_to(nlohmann::json& report, const Resampling& resampling) const;
    /// "95 % intervals, paired bootstrap: 1,200 clusters drawn whole, 10,000 replicates"
    [[nodiscard]] std::string sentence(const Resampling& resampling) const;
};

/// A run of an open trace.
struct OpenedRun {
    std::string reference; ///< TRACE#RUN
    std::shared_ptr<TraceReader> reader;
    RunInfo run;
};
/// Opens runs by reference. A trace without a run name means all its runs.
std::vector<OpenedRun> open_runs(const std::vector<std::string>& references);

/// Options of all verbs that report numbers of runs: intervals, progress, and output format.
struct ReportOptions {
    std::string reference; ///< TRACE.ponder#RUN, for verbs that read a single run
    IntervalOptions intervals;
    ProgressOption progress;
    std::filesystem::path csv;
    bool json = false;

    /// Adds the run as a positional argument. Its help says \p what, and when the run's name is optional.
    void add_run(CLI::App& verb, const std::string& what = "TRACE.ponder#RUN");
    /// \p csv_help: help of --csv; nullptr: does not add --csv.
    void add_to(CLI::App& verb, const char* csv_help = nullptr);
    /// With --csv, writes \p table; with --json, prints \p document. False: the caller prints text.
    [[nodiscard]] bool give(const std::function<std::string()>& table,
                            const std::function<nlohmann::json()>& document) const;
};

} // namespace ponderscope::cli
