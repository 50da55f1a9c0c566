// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/console.h"
#include "app/cli/options.h"
#include "app/cli/verbs.h"
#include "core/base/error.h"
#include "core/model/depth_sources.h"
#include "core/record/batches.h"
#include "core/record/jsonl.h"
#include "core/record/session.h"
#include "core/trace/reader.h"
#include "core/trace/writer.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <iostream>
#include <memory>
#include <utility>

namespace ponderscope::cli {
namespace {

struct RecordVerb {
    ModelOptions model;
    RunOptions how;
    InputOptions input;
    JsonlOptions jsonl;
    ProgressOption progress;
    std::filesystem::path trace;
    std::string level = "steps";
    RecordOptions options;
    GenerateOptions generate;
    std::vector<std::string> ablated_sources;
    bool json = false;

    void run();
    void check_input() const;
    /// What is given as a whole, or line by line.
    [[nodiscard]] RecordReport record_texts(const Engine& engine, const Checkpoint& checkpoint,
                                            const Tokenizer* tokenizer, std::vector<SequenceInput> sequences,
                                            ProgressPrinter& printer, const std::stop_token& stop);
    [[nodiscard]] RecordReport record_lines(const Engine& engine, const Checkpoint& checkpoint,
                                            const Tokenizer* tokenizer, JsonlSource& lines,
                                            ProgressPrinter& printer, const std::stop_token& stop);
    void print(const RecordReport& report, const Engine& engine) const;
    std::string left_out; ///< of the lines: a sentence, or nothing
    std::int64_t lines_left_out = 0;
    /// The checkpoint, changed as the user wants it; the run says what was changed.
    [[nodiscard]] Checkpoint open();
    void say_price(const AttentionPrice& price) const;
    void continue_prompts(const Engine& engine, const Checkpoint& checkpoint, const Tokenizer* tokenizer,
                          std::vector<SequenceInput>& sequences, const std::stop_token& stop) const;
};

/// Generated tokens are recorded like any others: the prompt and its continuation are scored together
/// afterwards.
void RecordVerb::continue_prompts(const Engine& engine, const Checkpoint& checkpoint,
                                  const Tokenizer* tokenizer, std::vector<SequenceInput>& sequences,
                                  const std::stop_token& stop) const {
    std::vector<std::vector<std::int32_t>> prompts;
    prompts.reserve(sequences.size());
    for (const SequenceInput& sequence : sequences) {
        prompts.push_back(sequence.ids);
    }
    GenerateOptions wanted = generate;
    wanted.stop_ids = checkpoint.config.eos_token_ids;
    using Ids = std::vector<std::vector<std::int32_t>>;
    const auto submit = [&](std::size_t begin, std::size_t end) {
        wanted.first_sequence = static_cast<std::int64_t>(begin);
        return engine.generate(Ids(prompts.begin() + static_cast<std::ptrdiff_t>(begin),
                                   prompts.begin() + static_cast<std::ptrdiff_t>(end)),
                               wanted);
    };
    const auto collect = [&](const Ids& generated, std::size_t begin, std::size_t end) {
        for (std::size_t at = begin; at < end; ++at) {
            const std::vector<std::int32_t>& fresh = generated[at - begin];
            sequences[at].ids.insert(sequences[at].ids.end(), fresh.begin(), fresh.end());
            if (tokenizer != nullptr) {
                attach_decoded_text(sequences[at], *tokenizer);
            }
        }
    };
    run_in_batches(prompts.size(), static_cast<std::size_t>(std::max<std::int64_t>(options.batch, 1)), stop,
                   submit, collect);
    if (stop.stop_requested()) {
        throw Cancelled(); // nothing was recorded yet
    }
}

const Tokenizer& require_text_tokenizer(const Checkpoint& checkpoint, const Tokenizer* tokenizer) {
    if (tokenizer == nullptr) {
        throw InputError(checkpoint.folder, "a tokenizer.json to read text with", "none",
                         "put the model's tokenizer.json there, or give token ids with --ids");
    }
    return *tokenizer;
}

/// What is recorded on request only, and how much that is, before it begins.
void RecordVerb::say_price(const AttentionPrice& price) const {
    if (price.bytes == 0 || progress.style == ProgressStyle::none || progress.style == ProgressStyle::json) {
        return;
    }
    std::cerr << "sequence attention of " << how.attention << "  at most "
              << human_bytes(static_cast<double>(price.of_longest)) << " for the longest sequence ("
              << with_separators(price.tokens) << " tokens)  "
              << human_bytes(static_cast<double>(price.bytes)) << " in all\n";
}

Checkpoint RecordVerb::open() {
    Checkpoint checkpoint = model.open();
    for (const std::string& spec : ablated_sources) {
        options.changes += "-" + ablate_source(checkpoint.config, spec);
    }
    return checkpoint;
}

void RecordVerb::check_input() const {
    if (jsonl.file.empty()) {
        for (const auto& [given, name] : {std::pair{!jsonl.group_field.empty(), "--group-field"},
                                          std::pair{!jsonl.label_field.empty(), "--label-field"},
                                          std::pair{jsonl.skip_bad, "--skip-bad"}}) {
            if (given) {
                throw InputError(std::string(name) + " is of --jsonl FILE, which is not given.");
            }
        }
        input.check();
        return;
    }
    if (!input.texts.empty() || !input.prompt.empty() || !input.ids.empty() || !input.from.empty()) {
        throw InputError("--jsonl excludes --text, --prompt, --ids and --from; give one of them.");
    }
    if (generate.max_new_tokens > 0) {
        throw InputError("--generate continues a prompt, and --jsonl gives whole texts; give one of them.");
    }
    if (!how.force_steps.empty()) {
        throw InputError("--force-steps names tokens of a text that is known; it does not go with --jsonl.");
    }
}

RecordReport RecordVerb::record_texts(const Engine& engine, const Checkpoint& checkpoint,
                                      const Tokenizer* tokenizer, std::vector<SequenceInput> sequences,
                                      ProgressPrinter& printer, const std::stop_token& stop) {
    if (generate.max_new_tokens > 0) {
        continue_prompts(engine, checkpoint, tokenizer, sequences, stop);
    }
    how.check_places(sequences);
    if (!how.force_steps.empty() && options.run_name.empty()) {
        options.run_name = checkpoint.folder.filename().string() + " forced " + how.force_steps;
    }
    // Only then the trace: a wrong input must leave no file behind.
    check_sequences(sequences, checkpoint.config.vocab_size);
    say_price(attention_price(engine, sequences,
                              resolve_windows(checkpoint.config, options.context, options.stride)));
    TraceWriter writer(trace);
    return record(engine, checkpoint, sequences, tokenizer, writer, options, printer.sink(), stop);
}

RecordReport RecordVerb::record_lines(const Engine& engine, const Checkpoint& checkpoint,
                                      const Tokenizer* tokenizer, JsonlSource& lines,
                                      ProgressPrinter& printer, const std::stop_token& stop) {
    TraceWriter writer(trace);
    const RecordReport report =
        record(engine, checkpoint, lines, tokenizer, writer, options, printer.sink(), stop);
    left_out = lines.left_out();
    lines_left_out = lines.skipped();
    return report;
}

void RecordVerb::print(const RecordReport& report, const Engine& engine) const {
    const std::string run_name = find_run(TraceReader::open(trace), std::to_string(report.run)).name;
    if (json || progress.style == ProgressStyle::json) {
        nlohmann::json result{{"trace", trace.string()},
                              {"run", run_name},
                              {"sequences", report.sequences},
                              {"tokens", report.tokens},
                              {"scored_tokens", report.scored_tokens},
                              {"mean_nll", nullptr},
                              {"seconds", report.seconds},
                              {"scoring", engine.scoring()},
                              {"policy", engine.policy()},
                              {"complete", !report.cancelled},
                              {"restless_windows", report.restless}};
        if (!std::isnan(report.mean_nll)) {
            result["mean_nll"] = report.mean_nll;
        }
        if (!jsonl.file.empty()) {
            result["lines_left_out"] = lines_left_out;
        }
        std::cout << result.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
        return;
    }
    std::cout << trace.string() << "#" << run_name << "  " << with_separators(report.tokens) << " tokens";
    if (!std::isnan(report.mean_nll)) {
        std::cout << "  NLL " << fixed(report.mean_nll, 4) << "  perplexity "
                  << fixed(std::exp(report.mean_nll), 2);
    }
    if (engine.scoring() != "exact") {
        std::cout << "  " << engine.scoring();
    }
    std::cout << "  "
              << with_separators(
                     std::llround(static_cast<double>(report.tokens) / std::max(report.seconds, 1e-9)))
              << " tokens/s" << (report.cancelled ? "  (cancelled: the run is partial)" : "") << '\n';
    if (!left_out.empty()) {
        std::cout << left_out << '\n';
    }
    if (report.restless > 0) {
        std::cerr << with_separators(report.restless)
                  << " windows did not come to rest and were computed token by token; the result is exact, "
                     "and --jacobi N is faster.\n";
    }
}

void RecordVerb::run() {
    check_input();
    options.level = level == "basic" ? RecordLevel::basic : RecordLevel::steps;
    options.text_source = jsonl.file.empty()  ? input.source()
                          : jsonl.file == "-" ? "standard input"
                                              : jsonl.file.string();
    options.seed = generate.seed;
    options.dtype = model.dtype;
    ProgressPrinter printer(progress.style);
    const std::stop_token stop = stop_on_interrupt();

    const Checkpoint checkpoint = open();
    const std::optional<Tokenizer> tokenizer = open_tokenizer(checkpoint);
    const Tokenizer* const reading = tokenizer ? &*tokenizer : nullptr;
    // What is wrong in the texts is said before a model is loaded for them.
    std::vector<SequenceInput> sequences;
    std::optional<JsonlSource> lines;
    if (jsonl.file.empty()) {
        sequences = input.read(reading, checkpoint);
    } else {
        jsonl.special_tokens = !input.no_special_tokens;
        lines.emplace(jsonl, require_text_tokenizer(checkpoint, reading), checkpoint.config.vocab_size,
                      printer.sink(), stop);
    }
    resolve_windows(checkpoint.config, options.context, options.stride);
    Engine engine = Engine::load(checkpoint, model.load_options(printer, stop));
    if (level == "layers") {
        engine.use_layers_as_steps();
    }
    how.apply(engine);
    const RecordReport report =
        lines ? record_lines(engine, checkpoint, reading, *lines, printer, stop)
              : record_texts(engine, checkpoint, reading, std::move(sequences), printer, stop);
    printer.finish();
    print(report, engine);
    if (report.cancelled) {
        throw Cancelled();
    }
}

} // namespace

void add_record(CLI::App& program) {
    auto verb = std::make_shared<RecordVerb>();
    CLI::App* app = program.add_subcommand(
        "record", "Run a checkpoint over a text and record what it computes for every token");
    verb->model.add_to(*app);
    verb->how.add_to(*app);
    verb->input.add_to(*app, true);
    app->add_option("--jsonl", verb->jsonl.file,
                    "JSON Lines: one object with a text a line, each a sequence; .gz and .zst too, - for "
                    "standard input. Memory does not grow with the file")
        ->type_name("FILE");
    app->add_option("--text-field", verb->jsonl.text_field,
                    "The field that holds the text; meta.text for one within an object")
        ->type_name("NAME")
        ->capture_default_str();
    app->add_option("--group-field", verb->jsonl.group_field,
                    "The field that says what a text belongs to with others (author, source): sequence.group")
        ->type_name("NAME");
    app->add_option("--label-field", verb->jsonl.label_field,
                    "The field with the text's class, or a list of {begin, end, class} by bytes: what stats "
                    "compares")
        ->type_name("NAME");
    app->add_flag("--skip-bad", verb->jsonl.skip_bad, "Leave wrong lines of --jsonl out and count them");
    app->add_option("-o,--output", verb->trace, "Trace file; a run is added when it exists")
        ->required()
        ->type_name("TRACE.ponder");
    app->add_option(
           "--record", verb->level,
           "basic: what the method computes anyway, a few percent of time; steps: also KL, cosine, "
           "latent difference and margin "
           "at every step, which costs one more head product a step and is what policy replays need; "
           "layers: of a vanilla model the same after every block, for exits over layers")
        ->check(CLI::IsMember({"basic", "steps", "layers"}))
        ->capture_default_str();
    app->add_option("--name", verb->options.run_name, "Name of the run (default: the folder's name)");
    app->add_option("--context", verb->options.context,
                    "Tokens a window (default: what the model was made for, at most 2048)")
        ->check(CLI::PositiveNumber);
    app->add_option("--stride", verb->options.stride,
                    "Tokens from one window to the next (default: half the context)")
        ->check(CLI::PositiveNumber);
    app->add_option("--batch", verb->options.batch, "Windows computed together")
        ->check(CLI::Range(1, 4096))
        ->capture_default_str();
    app->add_option("--ablate-source", verb->ablated_sources,
                    "Leave the value of layer S out of the depth attention of all layers, or of one; the "
                    "other weights are renormalised. Record it beside a run without, and compare the two")
        ->type_name("S[:LAYER]");
    app->add_option("--generate", verb->generate.max_new_tokens,
                    "Let the model continue the prompt by N tokens and record all of it")
        ->type_name("N")
        ->check(CLI::NonNegativeNumber);
    add_sampling(*app, verb->generate);
    verb->progress.add_to(*app);
    app->add_flag("--json", verb->json, "Print the result as JSON");
    app->footer("Example:\n  ponderscope record sample_models/ponderlm-neox-1m --text "
                "sample_models/texts/passage.txt -o story.ponder\n"
                "  zcat corpus.jsonl.gz | ponderscope record sample_models/ponderlm-neox-1m --jsonl - "
                "--group-field author -o corpus.ponder");
    app->callback([verb] { verb->run(); });
}

} // namespace ponderscope::cli
