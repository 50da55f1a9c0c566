// SPDX-License-Identifier: GPL-3.0-or-later
// `merge` and `export`: traces into one, a trace as tables.
#include "app/cli/console.h"
#include "app/cli/progress_option.h"
#include "app/cli/verbs.h"
#include "core/trace/export_csv.h"
#include "core/trace/merge.h"
#include "core/trace/reader.h"

#include <iostream>
#include <memory>

namespace ponderscope::cli {

void add_merge(CLI::App& program) {
    struct Verb {
        std::vector<std::filesystem::path> inputs;
        std::filesystem::path output;
        bool join = false;
        ProgressOption progress;
    };
    auto verb = std::make_shared<Verb>();
    CLI::App* app = add_verb(program, "merge");
    app->add_option("trace", verb->inputs, "Traces, in the order of their runs")->required();
    app->add_option("-o,--output", verb->output, "Trace to write; must not exist")
        ->required()
        ->type_name("TRACE.ponder");
    verb->progress.add_to(*app);
    app->add_flag(
        "--join", verb->join,
        "The traces are the shards of one run, in any order, or their folder: join them to what one "
        "process would have recorded. Shards that are missing, double or of another run are named");
    app->footer("Example:\n  ponderscope merge server-a.ponder server-b.ponder -o all.ponder\n"
                "  ponderscope merge --join corpus.r*-of-0016.ponder -o corpus.ponder");
    app->callback([verb] {
        ProgressPrinter printer(verb->progress.style);
        (verb->join ? join_shards : merge_traces)(verb->inputs, verb->output, printer.sink(),
                                                  stop_on_interrupt());
        printer.finish();
        std::cout << verb->output.string() << "  " << TraceReader::open(verb->output).runs().size()
                  << " runs\n";
    });
}

void add_export(CLI::App& program) {
    struct Verb {
        std::string trace;
        std::filesystem::path output;
        ProgressOption progress;
    };
    auto verb = std::make_shared<Verb>();
    CLI::App* app = add_verb(program, "export");
    app->add_option("trace", verb->trace, "TRACE.ponder, or TRACE.ponder#RUN for one run alone")->required();
    app->add_option("-o,--output", verb->output, "Folder to write; must be empty or not exist")
        ->required()
        ->type_name("DIR");
    verb->progress.add_to(*app);
    app->footer("Example:\n  ponderscope export story.ponder -o tables");
    app->callback([verb] {
        ProgressPrinter printer(verb->progress.style);
        const RunReference reference = parse_run_reference(verb->trace);
        const TraceReader reader = TraceReader::open(reference.trace);
        std::vector<std::int64_t> runs;
        if (!reference.run.empty()) {
            runs.push_back(find_run(reader, reference.run).id);
        }
        export_csv(reader, verb->output, runs, printer.sink(), stop_on_interrupt());
        printer.finish();
        std::cout << verb->output.string() << "  runs.csv, sequences.csv, tokens.csv, "
                  << (runs.empty() && !reader.trainings().empty() ? "training.csv, " : "") << "signals/\n";
    });
}

} // namespace ponderscope::cli
