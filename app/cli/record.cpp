// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/console.h"
#include "app/cli/options.h"
#include "app/cli/shares.h"
#include "app/cli/verbs.h"
#include "core/base/error.h"
#include "core/base/utf8.h"
#include "core/model/depth_sources.h"
#include "core/record/batches.h"
#include "core/record/jsonl.h"
#include "core/record/kept_signals.h"
#include "core/record/patch_file.h"
#include "core/record/read_ahead.h"
#include "core/record/record_choice.h"
#include "core/record/session.h"
#include "core/trace/reader.h"
#include "core/trace/shard.h"
#include "core/trace/writer.h"

#include <nlohmann/json.hpp>

#include <algorithm>
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
    std::filesystem::path patch_file;
    bool patched_only = false;
    bool resume = false;
    bool compress = false;
    bool no_candidates = false;
    bool json = false;
    World world;

    void run();
    void enter_world();
    [[nodiscard]] RecordReport record_share(const Share& share, Engine& engine, const Checkpoint& checkpoint,
                                            const Tokenizer* tokenizer, std::vector<SequenceInput>& sequences,
                                            ProgressPrinter& printer, const std::stop_token& stop);
    void check_input() const;
    /// What is given as a whole, or line by line.
    [[nodiscard]] RecordReport record_texts(Engine& engine, const Checkpoint& checkpoint,
                                            const Tokenizer* tokenizer, std::vector<SequenceInput>& sequences,
                                            ProgressPrinter& printer, const std::stop_token& stop);
    [[nodiscard]] RecordReport record_lines(const Engine& engine, const Checkpoint& checkpoint,
                                            const Tokenizer* tokenizer, JsonlSource& source,
                                            ProgressPrinter& printer, const std::stop_token& stop);
    void print(const RecordReport& report, const Engine& engine) const;
    void print_run(const RunInfo& run, const RecordReport& report, const Engine& engine) const;
    /// What the patches changed.
    void print_difference(const TraceReader& reader, const RunInfo& run, const RunInfo& before) const;
    /// A sentence about patches of steps that their tokens no longer ran; empty: there are none.
    [[nodiscard]] std::string say_unreached(const TraceReader& reader, const RunInfo& run,
                                            const Engine& engine) const;
    std::optional<JsonlSource> lines;
    std::vector<PlannedPatch> patches;
    std::optional<RecordReport> plain; ///< of the run without patches that stands beside the one with them
    std::string left_out;              ///< of the lines: a sentence, or nothing
    std::int64_t lines_left_out = 0;
    /// The checkpoint, changed as the user wants it; the run says what was changed.
    [[nodiscard]] Checkpoint open();
    void say_price(const std::string& what, const RecordingPrice& price) const;
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
void RecordVerb::say_price(const std::string& what, const RecordingPrice& price) const {
    if (price.bytes == 0 || progress.style == ProgressStyle::none || progress.style == ProgressStyle::json) {
        return;
    }
    std::cerr << what << "  at most " << human_bytes(static_cast<double>(price.of_longest))
              << " for the longest sequence (" << with_separators(price.tokens) << " tokens)  "
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
    if (patched_only && patch_file.empty()) {
        throw InputError("--patched-only is of --patch FILE, which is not given.");
    }
    if (jsonl.file.empty()) {
        for (const auto& [given, name] :
             {std::pair{!jsonl.group_field.empty(), "--group-field"},
              std::pair{!jsonl.label_field.empty(), "--label-field"}, std::pair{jsonl.skip_bad, "--skip-bad"},
              std::pair{jsonl.limit_tokens > 0, "--limit-tokens"}, std::pair{jsonl.sample < 1, "--sample"}}) {
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
    for (const auto& [given, name] :
         {std::pair{!how.force_steps.empty(), "--force-steps"}, std::pair{!patch_file.empty(), "--patch"}}) {
        if (given) {
            throw InputError(std::string(name) +
                             " names tokens of a text that is known; it does not go with --jsonl.");
        }
    }
}

RecordReport RecordVerb::record_texts(Engine& engine, const Checkpoint& checkpoint,
                                      const Tokenizer* tokenizer, std::vector<SequenceInput>& sequences,
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
    const WindowShape shape = resolve_windows(checkpoint.config, options.context, options.stride);
    say_price("sequence attention of " + how.attention, attention_price(engine, sequences, shape));
    say_price("--record " + level, states_price(engine, sequences, shape));
    if (patches.empty()) {
        TraceWriter writer(trace, {.compress = compress});
        return record(engine, checkpoint, sequences, tokenizer, writer, options, printer.sink(), stop);
    }
    const std::string digest = std::any_of(patches.begin(), patches.end(),
                                           [](const PlannedPatch& patch) { return !patch.trace.empty(); })
                                   ? checkpoint_digest(checkpoint, printer.sink(), stop)
                                   : "";
    std::vector<StatePatch> states =
        take_states(engine, patches, sequences, shape, options.batch, digest, printer.sink(), stop);
    // What is wrong in them must leave no file behind either.
    engine.use_patches(states);
    engine.use_patches({});
    TraceWriter writer(trace, {.compress = compress});
    if (!patched_only) {
        options.finish = false;
        plain = record(engine, checkpoint, sequences, tokenizer, writer, options, printer.sink(), stop);
        if (plain->cancelled) {
            writer.finish();
            return *plain;
        }
        options.finish = true;
        (options.run_name.empty() ? options.changes : options.run_name) += " patched";
    }
    options.patches = to_json(patches).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    engine.use_patches(std::move(states));
    return record(engine, checkpoint, sequences, tokenizer, writer, options, printer.sink(), stop);
}

RecordReport RecordVerb::record_lines(const Engine& engine, const Checkpoint& checkpoint,
                                      const Tokenizer* tokenizer, JsonlSource& source,
                                      ProgressPrinter& printer, const std::stop_token& stop) {
    if (engine.token_bytes() > 0 && progress.style == ProgressStyle::automatic) {
        std::cerr << "--record " << level << "  " << human_bytes(static_cast<double>(engine.token_bytes()))
                  << " a token\n";
    }
    TraceWriter writer(trace, {.compress = compress});
    ReadAhead ahead(source);
    const RecordReport report =
        record(engine, checkpoint, ahead, tokenizer, writer, options, printer.sink(), stop);
    left_out = source.left_out();
    lines_left_out = source.skipped();
    return report;
}

std::string RecordVerb::say_unreached(const TraceReader& reader, const RunInfo& run,
                                      const Engine& engine) const {
    std::int64_t unreached = 0;
    std::string first;
    for (const PlannedPatch& patch : patches) {
        const StatePlace& to = patch.to;
        const TokenColumns token = reader.tokens(run.id, to.sequence, to.token, to.token + 1);
        if (engine.kv() != "full" && token.size() == 1 && token.steps.front() < to.step) {
            first = ++unreached == 1
                        ? to_string(to) + ": the token stopped at step " + std::to_string(token.steps.front())
                        : first;
        }
    }
    return unreached == 0 ? ""
                          : with_separators(unreached) + " of " +
                                with_separators(static_cast<std::int64_t>(patches.size())) +
                                " patches changed nothing, their steps did not run (" + first + ").";
}

void RecordVerb::print_difference(const TraceReader& reader, const RunInfo& run,
                                  const RunInfo& before) const {
    struct Moved {
        std::int64_t sequence, token;
        double from, to;
    };
    std::vector<Moved> moved;
    for (const SequenceInfo& sequence : reader.sequences(run.id)) {
        const TokenColumns now = reader.tokens(run.id, sequence.index);
        const TokenColumns was = reader.tokens(before.id, sequence.index);
        for (std::size_t t = 0; t < std::min(now.size(), was.size()); ++t) {
            if (now.nll[t] != was.nll[t] && !std::isnan(now.nll[t])) {
                moved.push_back({sequence.index, static_cast<std::int64_t>(t), was.nll[t], now.nll[t]});
            }
        }
    }
    std::cout << with_separators(static_cast<std::int64_t>(moved.size())) << " predictions moved";
    constexpr std::size_t most = 3;
    const auto shown = moved.begin() + static_cast<std::ptrdiff_t>(std::min(moved.size(), most));
    std::partial_sort(moved.begin(), shown, moved.end(), [](const Moved& a, const Moved& b) {
        return std::abs(a.to - a.from) > std::abs(b.to - b.from);
    });
    for (auto one = moved.begin(); one != shown; ++one) {
        std::cout << (one == moved.begin() ? ", most at " : ", ") << "token " << one->token
                  << (run.sequences > 1 ? " of sequence " + std::to_string(one->sequence) : "") << " (NLL "
                  << fixed(one->from, 3) << " to " << fixed(one->to, 3) << ")";
    }
    std::cout << '\n'
              << visible("ponderscope compare " + shell_quoted(run_reference(trace, before)) + " " +
                         shell_quoted(run_reference(trace, run)) + " shows all of it")
              << '\n';
}

void RecordVerb::print(const RecordReport& report, const Engine& engine) const {
    const TraceReader reader = TraceReader::open(trace);
    const RunInfo run = run_of_number(reader, report.run);
    if (plain && plain->run != report.run && !json && progress.style != ProgressStyle::json) {
        const RunInfo before = run_of_number(reader, plain->run);
        print_run(before, *plain, engine);
        print_run(run, report, engine);
        print_difference(reader, run, before);
    } else {
        print_run(run, report, engine);
    }
    if (report.cancelled) {
        return; // the tokens of the patches may not be there
    }
    if (const std::string unreached = say_unreached(reader, run, engine); !unreached.empty()) {
        std::cerr << unreached << '\n';
    }
}

void RecordVerb::print_run(const RunInfo& run, const RecordReport& report, const Engine& engine) const {
    const std::string& run_name = run.name;
    const double mean_nll = run.nll_sum / static_cast<double>(run.scored_tokens);
    if (json || progress.style == ProgressStyle::json) {
        nlohmann::json result{{"trace", trace.string()},
                              {"run", run_name},
                              {"sequences", run.sequences},
                              {"tokens", run.tokens},
                              {"scored_tokens", run.scored_tokens},
                              {"mean_nll", nullptr},
                              {"seconds", run.seconds},
                              {"scoring", engine.scoring()},
                              {"policy", engine.policy()},
                              {"complete", !report.cancelled}};
        if (run.scored_tokens > 0) {
            result["mean_nll"] = mean_nll;
        }
        if (!patches.empty()) {
            const bool is_plain = plain && plain->run == report.run; // cancelled before the one with them
            result["patches"] = is_plain ? 0 : patches.size();
            result["without_patches"] =
                plain && !is_plain ? nlohmann::json(run_of_number(TraceReader::open(trace), plain->run).name)
                                   : nlohmann::json();
        }
        if (!jsonl.file.empty()) {
            result["lines_left_out"] = lines_left_out;
        }
        std::cout << result.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
        return;
    }
    std::cout << visible(trace.string()) << "#" << visible(run_name) << "  " << with_separators(run.tokens)
              << " tokens";
    if (run.scored_tokens > 0) {
        std::cout << "  NLL " << fixed(mean_nll, 4) << "  perplexity " << fixed(std::exp(mean_nll), 2);
    }
    if (engine.scoring() != "exact") {
        std::cout << "  " << engine.scoring();
    }
    std::cout << "  "
              << with_separators(std::llround(static_cast<double>(run.tokens) / std::max(run.seconds, 1e-9)))
              << " tokens/s" << (report.found_complete ? "  (complete; there was nothing to resume)" : "")
              << (report.cancelled ? "  (cancelled: the run is partial)" : "") << '\n';
    if (!left_out.empty()) {
        std::cout << left_out << '\n';
    }
}

void RecordVerb::enter_world() {
    world = world_from_environment();
    if (world.size == 1) {
        return;
    }
    for (const auto& [given, name] :
         {std::pair{!patch_file.empty(), "--patch"}, std::pair{generate.max_new_tokens > 0, "--generate"}}) {
        if (given) {
            throw InputError(std::string(name) + " is of one process, and " + world.launcher + " started " +
                             std::to_string(world.size) + "; run it alone.");
        }
    }
    if (model.device == "cuda") {
        model.device += ":" + std::to_string(world.local_rank);
    }
    if (world.rank > 0 && progress.style == ProgressStyle::automatic) {
        progress.style = ProgressStyle::none; // one line that moves is enough
    } else if (progress.style == ProgressStyle::automatic) {
        std::cerr << world.launcher << "  " << world.size << " processes  "
                  << visible(shard_path(trace, 0, world.size).string()) << " and so on\n";
    }
}

RecordReport RecordVerb::record_share(const Share& share, Engine& engine, const Checkpoint& checkpoint,
                                      const Tokenizer* tokenizer, std::vector<SequenceInput>& sequences,
                                      ProgressPrinter& printer, const std::stop_token& stop) {
    trace = share.trace;
    options.rank = share.rank;
    options.world = share.world;
    std::error_code error;
    options.resume =
        resume && std::filesystem::exists(trace, error) && std::filesystem::file_size(trace, error) > 0
            ? std::optional(trace)
            : std::nullopt;
    if (jsonl.file.empty()) {
        return record_texts(engine, checkpoint, tokenizer, sequences, printer, stop);
    }
    if (!lines) { // the first one was read through before the model was loaded
        lines.emplace(jsonl, *tokenizer, checkpoint.config.vocab_size, printer.sink(), stop);
    }
    if (lines->text_digest().empty() && (options.world > 1 || options.resume)) {
        throw InputError(jsonl.file == "-" ? "standard input" : jsonl.file.string(),
                         options.world > 1 ? "a file that every process can read" : "a file to resume with",
                         "a stream, which passes once", "save it, and give its name");
    }
    const RecordReport report = record_lines(engine, checkpoint, tokenizer, *lines, printer, stop);
    lines.reset();
    return report;
}

void RecordVerb::run() {
    check_input();
    enter_world();
    const RecordChoice what = RecordChoice::parse(level);
    options.level = what.level;
    options.scalars = what.scalars;
    options.candidates = !no_candidates;
    jsonl.seed = generate.seed;
    if (!patch_file.empty()) {
        patches = read_patch_file(patch_file);
    }
    options.text_source = jsonl.file.empty()  ? input.source()
                          : jsonl.file == "-" ? "standard input"
                                              : jsonl.file.string();
    options.seed = generate.seed;
    options.dtype = model.dtype;
    ProgressPrinter printer(progress.style);
    const std::stop_token stop = stop_on_interrupt();
    const std::vector<Share> mine = shares_of(world, trace, resume);

    const Checkpoint checkpoint = open();
    const std::optional<Tokenizer> tokenizer = open_tokenizer(checkpoint);
    const Tokenizer* const reading = tokenizer ? &*tokenizer : nullptr;
    // What is wrong in the texts is said before a model is loaded for them.
    std::vector<SequenceInput> sequences;
    if (jsonl.file.empty()) {
        sequences = input.read(reading, checkpoint);
    } else {
        jsonl.special_tokens = !input.no_special_tokens;
        lines.emplace(jsonl, require_text_tokenizer(checkpoint, reading), checkpoint.config.vocab_size,
                      printer.sink(), stop);
    }
    resolve_windows(checkpoint.config, options.context, options.stride);
    Engine engine = Engine::load(checkpoint, model.load_options(printer, stop));
    what.apply(engine);
    how.apply(engine);
    if (printer.on_terminal()) {
        const double each = bytes_a_token(kept_signals(engine.signals(options.level), options), options,
                                          engine.config(), engine.max_steps());
        std::cerr << "--record " << level << "  about " << with_separators(std::llround(each))
                  << " bytes a token" << (options.scalars || compress ? " before they are compressed" : "")
                  << '\n';
    }
    for (const Share& share : mine) {
        const RecordReport report =
            record_share(share, engine, checkpoint, reading, sequences, printer, stop);
        printer.finish();
        print(report, engine);
        if (report.cancelled) {
            throw Cancelled();
        }
    }
}

} // namespace

void add_record(CLI::App& program) {
    auto verb = std::make_shared<RecordVerb>();
    CLI::App* app = add_verb(program, "record");
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
    app->add_option("--limit-tokens", verb->jsonl.limit_tokens,
                    "End with the text of --jsonl that reaches N tokens")
        ->type_name("N")
        ->check(CLI::PositiveNumber);
    app->add_option(
           "--sample", verb->jsonl.sample,
           "Take this part of the lines of --jsonl, each by a draw from --seed and its number: whoever "
           "reads, the same texts")
        ->type_name("0.01")
        ->check(CLI::Range(1e-9, 1.0));
    app->add_option("-o,--output", verb->trace, "Trace file; a run is added when it exists")
        ->required()
        ->type_name("TRACE.ponder");
    app->add_option(
           "--record", verb->level,
           "scalars: of each token NLL, entropy, rank, steps, FLOPs and the gate at exit, packed: about a "
           "tenth "
           "of basic; basic: what the method computes anyway, a few percent of time; steps: also KL, cosine, "
           "latent difference and margin "
           "at every step, which costs one more head product a step and is what policy replays need; "
           "layers: of a vanilla model the same after every block, for exits over layers. With commas beside "
           "one of these: layers, every layer's read-out at every step; states[:LAYERS], the states "
           "themselves in fp16, at the end of each step or after these layers (all, or as in 0,3-5). What "
           "that takes is said before the run")
        ->type_name("LEVEL[,layers][,states[:LAYERS]]")
        ->capture_default_str();
    app->add_option("--patch", verb->patch_file,
                    "Put states of another token, step, layer or run in the place of computed ones, as the "
                    "JSON file says (resources/docs/states.md), and record that beside the run without")
        ->type_name("FILE");
    app->add_flag("--patched-only", verb->patched_only, "With --patch: leave the run without it away");
    app->add_flag("--no-candidates", verb->no_candidates,
                  "Leave out the ten likeliest tokens of each step, which take most of what basic takes");
    app->add_option("--depth-every", verb->options.depth_every,
                    "Keep the weights of depth mixing of every Nth token; they are NaN at the others, which "
                    "--compress makes small")
        ->type_name("N")
        ->check(CLI::PositiveNumber);
    app->add_flag(
        "--compress", verb->compress,
        "Compress the values of signals by zstd where that takes less (scalars always are); the trace is "
        "then of version 3 of its schema");
    app->add_flag(
        "--resume", verb->resume,
        "Go on with a run that was cut off, behind the sequences that it finished: the same line with "
        "--resume. Of shards, each process takes what is missing, whatever their number");
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
                "--group-field author -o corpus.ponder\n"
                "Started by torchrun, srun or mpirun, each process records its share:\n"
                "  mpirun -n 4 ponderscope record sample_models/ponderlm-neox-1m --jsonl corpus.jsonl -o "
                "corpus.ponder\n"
                "  ponderscope compare corpus.ponder other.ponder   (or merge --join first)");
    app->callback([verb] { verb->run(); });
}

} // namespace ponderscope::cli
