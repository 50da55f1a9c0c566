// SPDX-License-Identifier: GPL-3.0-or-later
// `check`: tests a trace against the rules of resources/docs/trace-schema.md.
#include "core/trace/tools/check.h"

#include "app/cli/console.h"
#include "app/cli/numbers.h"
#include "app/cli/verbs.h"
#include "core/base/error.h"
#include "core/trace/shard.h"

#include <nlohmann/json.hpp>

#include <iostream>

namespace ponderscope::cli {
namespace {

std::string faults_of(const TraceCheck& result) {
    return with_separators(static_cast<std::int64_t>(result.faults.size())) +
           (result.faults.size() == 1 ? " fault" : " faults") +
           (result.stopped_early ? ", and there may be more" : "");
}

nlohmann::json report_of(const std::filesystem::path& trace, const TraceCheck& result) {
    nlohmann::json list = nlohmann::json::array();
    for (const TraceFault& fault : result.faults) {
        list.push_back({{"place", fault.place}, {"message", fault.message}});
    }
    return {{"trace", trace.string()},
            {"sound", result.faults.empty()},
            {"faults", list},
            {"stopped_early", result.stopped_early},
            {"runs", result.runs},
            {"sequences", result.sequences},
            {"tokens", result.tokens},
            {"chunks", result.chunks},
            {"without_digest", result.without_digest}};
}

void print(const std::filesystem::path& trace, const TraceCheck& result, const std::string& faults) {
    for (const TraceFault& fault : result.faults) {
        std::cout << (fault.place.empty() ? "" : fault.place + ": ") << fault.message << ".\n";
    }
    std::cout << trace.string() << ": " << result.runs << (result.runs == 1 ? " run, " : " runs, ")
              << with_separators(result.sequences) << (result.sequences == 1 ? " sequence, " : " sequences, ")
              << with_separators(result.tokens) << " tokens, " << with_separators(result.chunks)
              << " packed arrays: " << (result.faults.empty() ? "no faults" : faults) << ".\n";
    if (result.without_digest > 0) {
        std::cout << with_separators(result.without_digest)
                  << " texts, sequences of tokens and packed arrays have no CRC-32, so some changed bytes in "
                     "them cannot be detected. Record the run again to add checksums.\n";
    }
}

} // namespace

void add_check(CLI::App& program) {
    struct Verb {
        std::filesystem::path named;
        std::size_t most = 1000;
        ProgressOption progress;
        bool json = false;

        void run() const {
            ProgressPrinter printer(progress.style);
            std::vector<std::filesystem::path> traces = find_shards(named);
            if (traces.empty()) {
                traces.push_back(named);
            }
            nlohmann::json reports = nlohmann::json::array();
            std::string broken;
            for (const std::filesystem::path& trace : traces) {
                const TraceCheck result = check_trace(trace, most, printer.sink(), stop_on_interrupt());
                printer.finish();
                const std::string faults = faults_of(result);
                if (json) {
                    reports.push_back(report_of(trace, result));
                } else {
                    print(trace, result, faults);
                }
                if (!result.faults.empty()) {
                    broken += (broken.empty() ? "" : "; ") + trace.string() + ": " + faults;
                }
            }
            if (json) {
                print_json(traces.size() == 1 ? reports.front() : reports);
            }
            if (!broken.empty()) {
                throw CheckFailed(broken + ".");
            }
        }
    };
    auto [app, verb] = add_verb<Verb>(program, "check");
    app.add_option("trace", verb.named, "Trace or set of shards; every shard is checked")
        ->required()
        ->type_name("TRACE.ponder");
    add_number(app, "--most", verb.most, "Stop after this many faults", 1, 1'000'000'000);
    verb.progress.add_to(app);
    app.add_flag("--json", verb.json, "Print the result as JSON");
    app.footer("Prints one line a fault. The exit code is 1 if there is a fault. The rules: "
               "resources/docs/trace-schema.md.\n"
               "Example:\n  ponderscope check mine.ponder");
}

} // namespace ponderscope::cli
