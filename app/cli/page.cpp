// SPDX-License-Identifier: GPL-3.0-or-later
// `page`: writes one or two runs as one HTML file to send.
#include "core/page/page.h"
#include "app/cli/console.h"
#include "app/cli/interval_options.h"
#include "app/cli/numbers.h"
#include "app/cli/verbs.h"
#include "core/base/files.h"
#include "core/base/utf8.h"
#include "core/trace/reader.h"

#include <nlohmann/json.hpp>

#include <iostream>

namespace ponderscope::cli {
namespace {

struct PageVerb {
    std::string trace;
    std::vector<std::string> runs;
    std::filesystem::path output;
    PageOptions page;
    IntervalOptions intervals;
    ProgressOption progress;
    bool json = false;

    void run();
};

void PageVerb::run() {
    ProgressPrinter printer(progress.style);
    intervals.begin(printer);
    page.bootstrap = intervals.bootstrap;
    const RunReference reference = parse_run_reference(trace);
    if (!reference.run.empty()) {
        runs.insert(runs.begin(), reference.run);
    }
    const TraceReader reader = TraceReader::open(reference.trace);
    const std::vector<RunInfo> chosen = choose_page_runs(reader, runs);
    const std::string text = make_page(reader, chosen, page);
    write_file_atomically(output, text);
    printer.finish();
    if (json) {
        nlohmann::json names = nlohmann::json::array();
        for (const RunInfo& one : chosen) {
            names.push_back(one.name);
        }
        print_json({{"page", output.string()}, {"runs", names}, {"bytes", text.size()}});
        return;
    }
    std::cout << output.string() << "  " << visible(chosen.front().name)
              << (chosen.size() > 1 ? " beside " + visible(chosen.back().name) : "") << ", "
              << with_separators(static_cast<std::int64_t>(text.size() / 1000)) << " kB\n";
}

} // namespace

void add_page(CLI::App& program) {
    auto [app, verb] = add_verb<PageVerb>(program, "page");
    app.add_option("trace", verb.trace, "TRACE.ponder, or TRACE.ponder#RUN")->required();
    app.add_option("--run", verb.runs,
                   "Run to show, twice for runs A and B of one text; by default the first run and the "
                   "next run that can be compared with it")
        ->type_name("RUN");
    app.add_option("-o,--output", verb.output, "File to write")
        ->required()
        ->type_name("PAGE.html")
        ->check(replaces_no_trace());
    app.add_option("--title", verb.page.title, "Headline (default: the trace's name)");
    app.add_option("--sequence", verb.page.sequences, "Sequences to show, by number from 0 (default: all)")
        ->check(number_from<std::int64_t>(0));
    add_number(app, "--max-tokens", verb.page.max_tokens, "Largest number of tokens to show", 0);
    verb.intervals.add_to(app);
    verb.progress.add_to(app);
    app.add_flag("--json", verb.json, "Print the result as JSON");
    app.footer("Example:\n  ponderscope page story.ponder --run vanilla-neox-1m --run ponderlm-neox-1m -o "
               "story.html");
}

} // namespace ponderscope::cli
