// SPDX-License-Identifier: GPL-3.0-or-later
// `figure` and `open`: the desktop program replaces this process and does the work.
#include "app/cli/verbs.h"
#include "core/base/error.h"
#include "core/remote/address.h"
#include "core/trace/reader.h"
#include "core/trace/shard.h"

#include <filesystem>
#include <string>
#include <vector>

namespace ponderscope::cli {
void add_figure(CLI::App& program) {
    struct Verb {
        std::string spec;
        std::string output;

        void run() const { become_desktop({"--figure", spec, "-o", output}); }
    };
    auto [app, verb] = add_verb<Verb>(program, "figure");
    app.add_option("spec", verb.spec, "Figure spec; - is standard input")->required()->type_name("SPEC.json");
    app.add_option("-o,--output", verb.output, "Figure to write: PDF, SVG, PNG, TeX, or CSV of its numbers")
        ->required()
        ->type_name("FILE.pdf|svg|png|tex|csv");
    app.footer("The example draws the trace that ./run records.\n"
               "Example:\n  ponderscope figure resources/figures/step_heatmap.json -o heatmap.pdf");
}

void add_open(CLI::App& program) {
    struct Verb {
        std::vector<std::string> paths;

        void run() const {
            for (const std::string& path : paths) { // a missing file is reported before a missing display
                const std::filesystem::path file = parse_run_reference(path).trace;
                std::error_code error;
                if (!remote::is_remote(file) && !std::filesystem::exists(file, error) &&
                    find_shards(file).empty()) {
                    throw InputError(ErrorId::file_missing, file, "a trace or a checkpoint folder",
                                     "no such file or folder", "check the path");
                }
            }
            become_desktop(paths);
        }
    };
    auto [app, verb] = add_verb<Verb>(program, "open");
    app.add_option("path", verb.paths, "Traces (TRACE.ponder or TRACE.ponder#RUN) and checkpoint folders");
    app.footer("Example:\n  ponderscope open story.ponder");
}

} // namespace ponderscope::cli
