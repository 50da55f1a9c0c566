// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/interval_options.h"

#include "app/cli/console.h"
#include "app/cli/numbers.h"
#include "app/cli/verbs.h"
#include "core/base/files.h"

#include <map>

namespace ponderscope::cli {
namespace {

const std::map<std::string, ResamplingUnit> unit_names{{"auto", ResamplingUnit::automatic},
                                                       {"clusters", ResamplingUnit::clusters},
                                                       {"blocks", ResamplingUnit::blocks}};

} // namespace

void IntervalOptions::add_to(CLI::App& verb) {
    verb.add_option("--resample", resample,
                    "Unit of the bootstrap, one of auto, clusters, blocks: clusters are sequences or their "
                    "groups, blocks are circular blocks of tokens inside sequences; auto takes clusters if "
                    "there are at least 30")
        ->check(CLI::IsMember({"auto", "blocks", "clusters"}))
        ->capture_default_str();
    add_number(verb, "--block", bootstrap.block,
               "Tokens of a bootstrap block; 0: chosen from the data (Politis-White)", 0);
    add_number(verb, "--replicates", bootstrap.replicates, "Bootstrap replicates", 100, 10'000'000);
    add_number(verb, "--level", bootstrap.level, "Confidence level of the intervals", 0.5, 0.9999);
    add_number(verb, "--seed", bootstrap.seed, "Seed of the bootstrap", 0);
}

void IntervalOptions::begin(ProgressPrinter& printer) {
    bootstrap.unit = unit_names.at(resample);
    bootstrap.progress = printer.sink();
    bootstrap.stop = stop_on_interrupt();
}

void IntervalOptions::write_to(nlohmann::json& report, const Resampling& resampling) const {
    for (const auto& [name, unit] : unit_names) {
        if (unit == resampling.unit) {
            report["resampled"] = name;
        }
    }
    report["block"] = resampling.unit == ResamplingUnit::clusters ? nlohmann::json(nullptr)
                                                                  : nlohmann::json(resampling.block);
    report["block_from_data"] = resampling.chosen;
    report["clusters"] = resampling.clusters;
    report["replicates"] = bootstrap.replicates;
    report["level"] = bootstrap.level;
    report["interval"] = "expanded";
    report["seed"] = bootstrap.seed;
}

std::string IntervalOptions::sentence(const Resampling& resampling) const {
    return fixed(bootstrap.level * 100, 0) +
           " % intervals (expanded), paired bootstrap: " + resampling.words() + ", " +
           with_separators(bootstrap.replicates) + " replicates";
}

std::vector<OpenedRun> open_runs(const std::vector<std::string>& references) {
    std::vector<OpenedRun> opened;
    for (const std::string& text : references) {
        const RunReference reference = parse_run_reference(text);
        auto reader = std::make_shared<TraceReader>(TraceReader::open(reference.trace));
        std::vector<RunInfo> runs;
        if (reference.run.empty()) {
            runs = reader->runs();
        } else {
            runs.push_back(find_run(*reader, reference.run));
        }
        for (RunInfo& run : runs) {
            const std::string name = reference.trace.string() + "#" + run.name;
            opened.push_back({name, reader, std::move(run)});
        }
    }
    return opened;
}

void ReportOptions::add_run(CLI::App& verb, const std::string& what) {
    verb.add_option("run", reference, what + "; the name is optional if the trace has only one run")
        ->required();
}

void ReportOptions::add_to(CLI::App& verb, const char* csv_help) {
    if (csv_help != nullptr) {
        verb.add_option("--csv", csv, csv_help)->type_name("FILE.csv")->check(replaces_no_trace());
    }
    intervals.add_to(verb);
    progress.add_to(verb);
    verb.add_flag("--json", json, "Print the result as JSON");
}

bool ReportOptions::give(const std::function<std::string()>& table,
                         const std::function<nlohmann::json()>& document) const {
    if (!csv.empty()) {
        write_file_atomically(csv, table());
    }
    if (json) {
        print_json(document());
    }
    return json;
}

} // namespace ponderscope::cli
