// SPDX-License-Identifier: GPL-3.0-or-later
// `score`: reads requests of another program from standard input and writes answers to standard output.
#include "app/cli/numbers.h"
#include "app/cli/options.h"
#include "app/cli/verbs.h"
#include "core/base/error.h"
#include "core/record/line_reader.h"
#include "core/record/record_choice.h"
#include "core/record/scoring.h"
#include "core/trace/reader.h"
#include "core/trace/tools/run_edits.h"
#include "core/trace/writer.h"

#include <nlohmann/json.hpp>

#include <exception>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

namespace ponderscope::cli {
namespace {

/// Waits for a line, and also takes all lines that have arrived by then. They are answered together, without
/// waiting for later lines. Empty: the input has ended.
std::vector<std::string> arrived_lines(LineReader& reader) {
    constexpr std::size_t most = 1024;
    std::vector<std::string> lines;
    for (std::string line;
         lines.size() < most && (lines.empty() || reader.has_arrived()) && reader.next(line);) {
        lines.push_back(reader.too_long() ? "\"a line of more than 64 MiB\"" : std::move(line));
    }
    return lines;
}

struct ScoreVerb {
    ModelOptions model;
    RunOptions how;
    ProgressOption progress;
    RequestScorer::Options options;
    std::string level = "steps";
    std::filesystem::path trace;
    bool compress = false;

    void run();
};

void ScoreVerb::run() {
    if (!options.record.run_name.empty()) {
        check_run_name(options.record.run_name);
    }
    const RecordChoice what = RecordChoice::parse(level);
    options.record.level = what.level;
    options.record.kept.scalars = what.scalars;
    options.record.text_source = "requests";
    options.record.reading = options.reading;
    ProgressPrinter printer(progress.style);
    const std::stop_token stop = stop_on_interrupt();
    const Checkpoint checkpoint = model.open();
    const std::optional<Tokenizer> tokenizer = open_tokenizer(checkpoint);
    if (tokenizer) {
        options.record.notices = tokenizer_notices(*tokenizer, checkpoint.config.vocab_size);
    }
    Engine engine = model.load(checkpoint, printer, stop);
    what.apply(engine);
    how.apply(engine);
    engine.check_attention(options.record.level);
    printer.finish();
    printer.note(options.record.notices);

    std::optional<TraceWriter> writer;
    if (!trace.empty()) {
        writer.emplace(trace, TraceWriter::Options{.compress = compress});
    }
    RequestScorer scorer(engine, checkpoint, tokenizer ? &*tokenizer : nullptr, options,
                         writer ? &*writer : nullptr);
    std::int64_t next_line = 1;
    const auto tell = [](const nlohmann::json& answer) {
        std::cout << answer.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
    };
    try {
        LineReader reader("-", stop);
        for (std::vector<std::string> lines; !(lines = arrived_lines(reader)).empty();) {
            scorer.answer(lines, next_line, tell, stop);
            next_line += static_cast<std::int64_t>(lines.size());
            std::cout << std::flush;
        }
    } catch (const std::exception&) {
        std::cout << std::flush;
        scorer.finish(false); // keeps the answered requests in the trace
        throw;
    }
    const std::int64_t run = scorer.finish(!stop.stop_requested());
    if (run > 0) {
        printer.note({{NoticeId::run_saved, run_reference(trace, run_by_id(TraceReader::open(trace), run))}});
    }
    throw_if_stopped(stop);
}

} // namespace

void add_score(CLI::App& program) {
    auto [app, verb] = add_verb<ScoreVerb>(program, "score");
    RecordOptions& record = verb.options.record;
    verb.model.add_to(app);
    verb.how.add_to(app);
    app.add_option("-o,--output", verb.trace,
                   "Also record every request in this trace, as sequences of one run")
        ->type_name("TRACE.ponder");
    app.add_option("--record", verb.level, "What to record: scalars, basic or steps, as for record")
        ->capture_default_str();
    app.add_option("--name", record.run_name, "Name of the run (default: the folder's name)");
    add_number(app, "--context", record.context, "Tokens a window (default: the model's maximum)", 2);
    record.batch = 64;
    add_number(app, "--batch", record.batch, "Windows computed together", 1, 4096);
    add_reading(app, verb.options.reading, false);
    app.add_flag("--compress", verb.compress, "Compress signals by zstd");
    verb.progress.add_to(app);
    app.footer("Reads one request a line from standard input and prints the answers in the same order "
               "(resources/docs/tasks.md).\n"
               "Example:\n  ponderscope score sample_models/ponderlm-neox-1m < requests.jsonl\n"
               "with lines such as {\"type\": \"loglikelihood\", \"context\": \"The ferry was\", "
               "\"continuation\": \" late\"}");
}

} // namespace ponderscope::cli
