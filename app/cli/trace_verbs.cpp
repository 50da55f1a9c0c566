// SPDX-License-Identifier: GPL-3.0-or-later
// `merge`, `rename`, `remove` and `export`.
#include "app/cli/console.h"
#include "app/cli/verbs.h"
#include "core/base/error.h"
#include "core/base/utf8.h"
#include "core/remote/address.h"
#include "core/trace/reader.h"
#include "core/trace/tools/export_csv.h"
#include "core/trace/tools/merge.h"
#include "core/trace/tools/run_edits.h"

#include <iostream>
#include <string>
#include <utility>
#include <vector>

namespace ponderscope::cli {

void add_merge(CLI::App& program) {
    struct Verb {
        std::vector<std::string> inputs;
        std::filesystem::path output;
        bool join = false;
        ProgressOption progress;

        void run() const {
            ProgressPrinter printer(progress.style);
            if (join) {
                join_shards({inputs.begin(), inputs.end()}, output, printer.sink(), stop_on_interrupt());
            } else {
                std::vector<RunReference> references;
                for (const std::string& input : inputs) {
                    references.push_back(parse_run_reference(input));
                }
                merge_runs(references, output, printer.sink(), stop_on_interrupt());
            }
            printer.finish();
            const std::size_t runs = TraceReader::open(output).runs().size();
            std::cout << visible(output.string()) << "  " << runs << (runs == 1 ? " run\n" : " runs\n");
        }
    };
    auto [app, verb] = add_verb<Verb>(program, "merge");
    app.add_option("trace", verb.inputs,
                   "Traces, in the order that their runs get; TRACE.ponder#RUN for one run alone")
        ->required();
    app.add_option("-o,--output", verb.output, "Trace to write; must not exist")
        ->required()
        ->type_name("TRACE.ponder");
    verb.progress.add_to(app);
    app.add_flag("--join", verb.join,
                 "Join the shards of one run, given in any order or as their folder, to the run that one "
                 "process would have recorded. Missing, duplicate and foreign shards are errors");
    app.footer("Example:\n  ponderscope merge story.ponder#full -o full.ponder\n  ponderscope merge "
               "server-a.ponder server-b.ponder -o all.ponder\n"
               "  ponderscope merge --join corpus.r*-of-0016.ponder -o corpus.ponder");
}

namespace {

/// Finds the run to change. InputError: the text names no run, or the trace is on another machine.
std::pair<std::filesystem::path, RunInfo> run_to_edit(const std::string& text) {
    const RunReference reference = parse_run_reference(text);
    if (remote::is_remote(reference.trace)) {
        throw InputError(ErrorId::trace_remote, text, "a trace on this machine",
                         "a trace on another machine, which is read-only", "run ponderscope on that machine");
    }
    if (reference.run.empty()) {
        throw InputError(ErrorId::trace_run, text, "a run as TRACE.ponder#RUN", "a trace",
                         "add # and the run's name; ponderscope inspect lists the runs");
    }
    return {reference.trace, find_run(TraceReader::open(reference.trace), reference.run)};
}

} // namespace

void add_rename(CLI::App& program) {
    struct Verb {
        std::string reference, name;

        void run() const {
            const auto [trace, run] = run_to_edit(reference);
            rename_run(trace, run, name);
            std::cout << visible(trace.string() + "#" + name) << '\n';
        }
    };
    auto [app, verb] = add_verb<Verb>(program, "rename");
    app.add_option("run", verb.reference, "TRACE.ponder#RUN")->required();
    app.add_option("name", verb.name, "New name, which no other run of the trace has")->required();
    app.footer("The run keeps its annotations.\nExample:\n  ponderscope rename "
               "story.ponder#ponderlm-neox-1m first");
}

void add_remove(CLI::App& program) {
    struct Verb {
        std::string reference;

        void run() const {
            const auto [trace, run] = run_to_edit(reference);
            remove_run(trace, run, stop_on_interrupt());
            const std::size_t left = TraceReader::open(trace).runs().size();
            std::cout << visible(trace.string()) << "  " << left
                      << (left == 1 ? " run left\n" : " runs left\n");
        }
    };
    auto [app, verb] = add_verb<Verb>(program, "remove");
    app.add_option("run", verb.reference, "TRACE.ponder#RUN")->required();
    app.footer(
        "Writes a new trace without the run, which then replaces the old trace. Annotations of the run stay "
        "in the file beside the trace.\nExample:\n  ponderscope remove story.ponder#ponderlm-neox-1m");
}

void add_export(CLI::App& program) {
    struct Verb {
        std::string trace;
        std::filesystem::path output;
        ProgressOption progress;

        void run() const {
            ProgressPrinter printer(progress.style);
            const RunReference reference = parse_run_reference(trace);
            const TraceReader reader = TraceReader::open(reference.trace);
            std::vector<std::int64_t> runs;
            if (!reference.run.empty()) {
                runs.push_back(find_run(reader, reference.run).id);
            }
            export_csv(reader, output, runs, printer.sink(), stop_on_interrupt());
            printer.finish();
            std::cout << output.string() << "  runs.csv, sequences.csv, tokens.csv, "
                      << (std::filesystem::exists(output / "labels.csv") ? "labels.csv, " : "")
                      << (runs.empty() && !reader.trainings().empty() ? "training.csv, " : "")
                      << "signals/\n";
        }
    };
    auto [app, verb] = add_verb<Verb>(program, "export");
    app.add_option("trace", verb.trace, "TRACE.ponder, or TRACE.ponder#RUN for one run alone")->required();
    app.add_option("-o,--output", verb.output, "Folder to write; must be empty or not exist")
        ->required()
        ->type_name("DIR");
    verb.progress.add_to(app);
    app.footer(
        "runs.csv, sequences.csv, tokens.csv (annotations are columns of it), labels.csv where the text was "
        "recorded with labels, and signals/NAME.csv. pandas reads words such as NA and null as missing "
        "values; to keep them, use pandas.read_csv(FILE, keep_default_na=False, na_values={\"nll\": \"\"}).\n"
        "Example:\n  ponderscope export story.ponder -o tables");
}

} // namespace ponderscope::cli
