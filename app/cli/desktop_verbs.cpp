// SPDX-License-Identifier: GPL-3.0-or-later
// `figure` and `open` belong to the desktop program, which this one becomes.
#include "app/cli/become.h"
#include "app/cli/verbs.h"
#include "core/base/error.h"
#include "core/remote/address.h"
#include "core/trace/reader.h"
#include "core/trace/shard.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace ponderscope::cli {
void add_figure(CLI::App& program) {
    struct Verb {
        std::string spec;
        std::string output;
    };
    auto verb = std::make_shared<Verb>();
    CLI::App* app = add_verb(program, "figure");
    app->add_option("spec", verb->spec, "Figure spec; - is standard input")
        ->required()
        ->type_name("SPEC.json");
    app->add_option("-o,--output", verb->output, "Figure to write: PDF, SVG, PNG, TeX, or CSV of its numbers")
        ->required()
        ->type_name("FILE.pdf|svg|png|tex|csv");
    app->footer("The example draws the trace that ./run records.\n"
                "Example:\n  ponderscope figure resources/figures/step_heatmap.json -o heatmap.pdf");
    app->callback([verb] { become_desktop({"--figure", verb->spec, "-o", verb->output}); });
}

void add_open(CLI::App& program) {
    auto paths = std::make_shared<std::vector<std::string>>();
    CLI::App* app = add_verb(program, "open");
    app->add_option("path", *paths, "Traces (TRACE.ponder or TRACE.ponder#RUN) and checkpoint folders");
    app->footer("Example:\n  ponderscope open story.ponder");
    app->callback([paths] {
        for (const std::string& path : *paths) { // a missing file is reported before a missing display
            const std::filesystem::path file = parse_run_reference(path).trace;
            std::error_code error;
            if (!remote::is_remote(file) && !std::filesystem::exists(file, error) &&
                find_shards(file).empty()) {
                throw InputError(ErrorId::file_missing, file, "a trace or a checkpoint folder",
                                 "nothing there", "check the path");
            }
        }
        become_desktop(*paths);
    });
}

} // namespace ponderscope::cli
