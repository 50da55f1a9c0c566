// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/numbers.h"
#include "app/cli/record_verb.h"
#include "app/cli/verbs.h"
#include "core/base/error.h"
#include "core/base/scoped_stop.h"
#include "core/base/utf8.h"
#include "core/model/depth_sources.h"
#include "core/model/local_gpu.h"
#include "core/record/batches.h"
#include "core/record/jsonl.h"
#include "core/record/kept_signals.h"
#include "core/record/patch_file.h"
#include "core/record/record_choice.h"
#include "core/record/session.h"
#include "core/record/text_files.h"
#include "core/trace/reader.h"
#include "core/trace/shard.h"
#include "core/trace/tools/run_edits.h"
#include "core/trace/writer.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>
#include <memory>
#include <utility>

namespace ponderscope::cli {

/// Generates first; then the prompt and its continuation are scored and recorded together, like any text.
/// After an interruption, the tokens so far are recorded in a run that is marked partial.
void RecordVerb::continue_prompts(const Engine& engine, const Checkpoint& checkpoint,
                                  const Tokenizer* tokenizer, std::vector<SequenceInput>& sequences,
                                  ProgressPrinter& printer, const std::stop_token& stop) {
    std::vector<std::vector<std::int32_t>> prompts;
    prompts.reserve(sequences.size());
    for (const SequenceInput& sequence : sequences) {
        prompts.push_back(sequence.ids);
    }
    GenerateOptions wanted = generate;
    wanted.stop_ids = checkpoint.config.eos_token_ids;
    wanted.stop = stop;
    wanted.progress = printer.sink();
    std::size_t continued = 0;
    std::size_t generated_tokens = 0;
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
            generated_tokens += fresh.size();
            sequences[at].planned_length = sequences[at].length() + wanted.max_new_tokens;
            sequences[at].ids.insert(sequences[at].ids.end(), fresh.begin(), fresh.end());
            if (tokenizer != nullptr) {
                attach_decoded_text(sequences[at], *tokenizer);
            }
        }
        continued = end;
    };
    run_in_batches(prompts.size(), static_cast<std::size_t>(std::max<std::int64_t>(options.batch, 1)), stop,
                   submit, collect);
    if (stop.stop_requested()) {
        if (generated_tokens == 0) {
            throw Cancelled();
        }
        sequences.resize(continued);
        options.cut_short = "Cancelled after " + std::to_string(generated_tokens) + " generated tokens.";
    }
}

/// Prints about how many bytes each token needs in the trace, on a terminal or if large signals are recorded.
void RecordVerb::say_price(const Engine& engine, std::int64_t window, const ProgressPrinter& printer) const {
    const bool asked = engine.token_bytes() > 0 || engine.attention_pair_bytes() > 0;
    if (printer.on_terminal() || (asked && progress.style == ProgressStyle::automatic)) {
        std::cerr << "--record " << level << "  about "
                  << with_separators(bytes_a_token(engine, options, window)) << " bytes a token"
                  << (options.kept.scalars || compress ? " before they are compressed\n" : "\n");
    }
}

Checkpoint RecordVerb::open() {
    Checkpoint checkpoint = model.open();
    for (const std::string& spec : ablated_sources) {
        options.changes += "-" + ablate_source(checkpoint.config, spec);
    }
    return checkpoint;
}

/// InputError: an option about signals with --record scalars, which stores no signals.
void RecordVerb::check_choice(const RecordChoice& what) const {
    for (const auto& [given, name] :
         {std::pair{!how.attention.empty(), "--attention"}, std::pair{no_candidates, "--no-candidates"}}) {
        if (given && what.scalars) {
            throw InputError(
                ErrorId::usage_unsuited,
                std::string(name) +
                    " is about signals, but --record scalars stores no signals; leave one of the two "
                    "options out.");
        }
    }
}

void RecordVerb::check_input() const {
    check_sampling(generate);
    if (jsonl.file.empty()) {
        if (jsonl.limit_tokens > 0 && input.texts.empty()) {
            throw InputError(ErrorId::usage_missing,
                             "--limit-tokens needs --jsonl FILE or --text FILE; add one of them.");
        }
        input.check();
        if (!streams_texts()) {
            return;
        }
    }
    if (generate.max_new_tokens > 0) {
        throw InputError(ErrorId::usage_conflict,
                         "--generate continues a prompt, but this input is a corpus; leave --generate out.");
    }
    for (const auto& [given, name] :
         {std::pair{!how.force_steps.empty(), "--force-steps"}, std::pair{!patch_file.empty(), "--patch"}}) {
        if (given) {
            throw InputError(ErrorId::usage_conflict,
                             std::string(name) +
                                 " needs texts that are known before the recording, but this corpus is "
                                 "read during the recording; leave " +
                                 name + " out.");
        }
    }
}

bool RecordVerb::streams_texts() const {
    std::uintmax_t bytes = 0;
    bool stream = jsonl.limit_tokens > 0;
    for (const std::filesystem::path& file : input.texts) {
        std::error_code error;
        const std::uintmax_t size = std::filesystem::file_size(file, error);
        bytes += error ? 0 : size;
        stream = stream || file == "-" || file.extension() == ".gz" || file.extension() == ".zst" ||
                 std::filesystem::is_fifo(file, error);
    }
    return !input.texts.empty() && (stream || bytes > TextFilesOptions::default_part_bytes);
}

RecordReport RecordVerb::record_texts(Engine& engine, const Checkpoint& checkpoint,
                                      const Tokenizer* tokenizer, std::vector<SequenceInput>& sequences,
                                      ProgressPrinter& printer, const std::stop_token& stop) {
    if (generate.max_new_tokens > 0) {
        continue_prompts(engine, checkpoint, tokenizer, sequences, printer, stop);
        if (!options.cut_short.empty()) {
            generate.max_new_tokens = 0;
            const ScopedStop undisturbed({}); // an interruption does not cut this recording
            return record_texts(engine, checkpoint, tokenizer, sequences, printer, {});
        }
    }
    how.check_places(sequences);
    if (!how.force_steps.empty() && options.run_name.empty()) {
        options.run_name = checkpoint.folder.filename().string() + " forced " + how.force_steps;
    }
    // Check all inputs before creating the trace: a wrong input must leave no file behind.
    check_sequences(sequences, checkpoint.config.vocab_size);
    const WindowShape shape = resolve_windows(checkpoint.config, options.context, options.stride);
    std::int64_t longest = 0;
    for (const SequenceInput& sequence : sequences) {
        longest = std::max(longest, std::min(sequence.length(), shape.context));
    }
    (void)windows_that_fit(engine, longest, 1);
    say_price(engine, longest, printer);
    if (patches.empty()) {
        TraceWriter writer(trace, {.compress = compress});
        return record(engine, checkpoint, sequences, tokenizer, writer, options, printer.sink(), stop);
    }
    std::vector<StatePatch> states =
        take_states(engine, patches, sequences, shape, options.batch, printer.sink(), stop);
    // Invalid patches must fail before the trace file is created.
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
    }
    if (!patched_only || options.run_name.empty()) {
        (options.run_name.empty() ? options.changes : options.run_name) += " patched";
    }
    options.patches = to_json(patches).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    engine.use_patches(std::move(states));
    return record(engine, checkpoint, sequences, tokenizer, writer, options, printer.sink(), stop);
}

RecordReport RecordVerb::record_corpus(const Engine& engine, const Checkpoint& checkpoint,
                                       const Tokenizer* tokenizer, ProgressPrinter& printer,
                                       const std::stop_token& stop) {
    const std::int64_t window = resolve_windows(engine.config(), options.context, options.stride).context;
    (void)windows_that_fit(engine, window, 1);
    say_price(engine, window, printer);
    TraceWriter writer(trace, {.compress = compress});
    const RecordReport report =
        record(engine, checkpoint, *corpus, tokenizer, writer, options, printer.sink(), stop);
    left_out = corpus->left_out();
    lines_left_out = corpus->skipped();
    return report;
}

void RecordVerb::enter_world() {
    world = world_from_environment();
    if (world.size == 1) {
        return;
    }
    for (const auto& [given, name] :
         {std::pair{!patch_file.empty(), "--patch"}, std::pair{generate.max_new_tokens > 0, "--generate"},
          std::pair{overwrite, "--overwrite"}}) {
        if (given) {
            throw InputError(ErrorId::usage_unsuited, std::string(name) + " needs a single process, but " +
                                                          world.launcher + " started " +
                                                          std::to_string(world.size) +
                                                          " processes; run the command "
                                                          "without the launcher.");
        }
    }
    if (model.device == "cuda") {
        model.device = local_gpu(world.local_rank);
    }
    if (progress.style != ProgressStyle::automatic) {
        return;
    }
    if (world.rank > 0) {
        progress.style = ProgressStyle::none;
    } else {
        std::cerr << world.launcher << "  " << world.size << " processes  "
                  << visible(shard_path(trace, 0, world.size).string()) << " and so on\n";
    }
}

void RecordVerb::choose_trace() {
    const auto holds_something = [](const std::filesystem::path& file) {
        std::error_code error;
        return std::filesystem::exists(file, error) && std::filesystem::file_size(file, error) > 0;
    };
    const std::filesystem::path whole = trace;
    if (world.size > 1) {
        if (whole.extension() != ".ponder") {
            throw InputError(ErrorId::usage_value, whole, "a trace name that ends in .ponder",
                             "another ending", "write " + whole.string() + ".ponder");
        }
        trace = shard_path(whole, world.rank, world.size);
        options.rank = world.rank;
        options.world = world.size;
        if (!resume && holds_something(trace)) {
            throw InputError(ErrorId::file_exists, trace, "a new file", "a shard of an earlier recording",
                             "continue that recording with --resume, or choose another name");
        }
    }
    if (resume && holds_something(trace)) {
        options.resume = trace;
    } else if (resume) {
        for (const std::filesystem::path& shard : shards_of(whole)) {
            const std::int64_t size = parse_shard_name(shard)->world;
            if (size != world.size) {
                throw InputError(ErrorId::shard_mixed, whole,
                                 "shards of as many processes as now (" + std::to_string(world.size) + ")",
                                 "shards of " + std::to_string(size) + " processes",
                                 "start " + std::to_string(size) + " processes, or remove the old shards");
            }
        }
    }
}

Notices RecordVerb::notices_of_texts(const Tokenizer& tokenizer, std::int64_t vocabulary_size,
                                     const std::vector<SequenceInput>& sequences) const {
    Notices notices = tokenizer_notices(tokenizer, vocabulary_size);
    TextNotices texts = corpus ? corpus->notices() : TextNotices();
    TextReading reading = options.reading;
    if (!input.ids.empty() || !input.from.empty()) {
        reading.bos = TextReading::Bos::never;
    }
    for (const SequenceInput& sequence : sequences) {
        texts.look_at(sequence.text, tokenizer, reading);
    }
    add_new(notices, texts.all());
    return notices;
}

void RecordVerb::run() {
    if (!options.run_name.empty()) {
        check_run_name(options.run_name);
    }
    check_input();
    enter_world();
    const RecordChoice what = RecordChoice::parse(level);
    options.level = what.level;
    options.kept.scalars = what.scalars;
    options.kept.candidates = !no_candidates;
    if (!patch_file.empty()) {
        patches = read_patch_file(patch_file);
    }
    options.text_source = jsonl.file.empty()  ? input.source()
                          : jsonl.file == "-" ? "standard input"
                                              : jsonl.file.string();
    options.seed = generate.seed;
    if (input.ids.empty() && input.from.empty()) { // ids need no tokenizer
        options.reading = input.reading;
    }
    ProgressPrinter printer(progress.style);
    const std::stop_token stop = stop_on_interrupt();
    choose_trace();

    const Checkpoint checkpoint = open();
    check_choice(what);
    const std::optional<Tokenizer> tokenizer = open_tokenizer(checkpoint);
    const Tokenizer* const reading = tokenizer ? &*tokenizer : nullptr;
    // Errors in the texts are reported before the model is loaded.
    std::vector<SequenceInput> sequences;
    if (!jsonl.file.empty()) {
        jsonl.reading = input.reading;
        corpus = std::make_unique<JsonlSource>(jsonl, require_tokenizer(checkpoint, reading),
                                               checkpoint.config.vocab_size, printer.sink(), stop);
    } else if (streams_texts()) {
        corpus = std::make_unique<TextFiles>(TextFilesOptions{input.texts, input.reading, jsonl.limit_tokens},
                                             require_tokenizer(checkpoint, reading), printer.sink(), stop);
    } else {
        sequences = input.read(reading, checkpoint);
    }
    if (corpus && corpus->text_digest().empty() && (options.world > 1 || options.resume)) {
        throw InputError(ErrorId::usage_unsuited, options.text_source,
                         options.world > 1 ? "a file that every process can read" : "a file to resume from",
                         "a stream, which can be read only once",
                         "save the stream to a file, and give this file");
    }
    options.notices =
        reading != nullptr ? notices_of_texts(*reading, checkpoint.config.vocab_size, sequences) : Notices();
    resolve_windows(checkpoint.config, options.context, options.stride);
    Engine engine = model.load(checkpoint, printer, stop);
    what.apply(engine);
    how.apply(engine);
    engine.check_attention(options.level);
    const RecordReport report = corpus ? record_corpus(engine, checkpoint, reading, printer, stop)
                                       : record_texts(engine, checkpoint, reading, sequences, printer, stop);
    printer.finish();
    if (overwrite && !report.cancelled) {
        replace_old_run(report);
        if (plain && plain->run != report.run) {
            replace_old_run(*plain);
        }
    }
    printer.note(options.notices);
    print(report, engine);
    if (report.cancelled) {
        throw Cancelled();
    }
}

/// Replaces the old run of the wanted name by the complete new run.
void RecordVerb::replace_old_run(const RecordReport& made) const {
    std::optional<RunInfo> old;
    std::optional<RunInfo> fresh;
    for (RunInfo& run : TraceReader::open(trace).runs()) {
        if (run.id == made.run) {
            fresh = std::move(run);
        } else if (run.name == made.wanted_name) {
            old = std::move(run);
        }
    }
    if (old && fresh) {
        replace_run(trace, *old, *fresh);
    }
}

void add_record(CLI::App& program) {
    auto [app, verb] = add_verb<RecordVerb>(program, "record");
    verb.model.add_to(app);
    verb.how.add_to(app);
    verb.input.add_to(app, true);
    app.get_option("--text")->description(
        "Text file in UTF-8 (also .gz, .zst, - for standard input); each file is a sequence. A text of more "
        "than 8 MiB is cut at line ends into several sequences; memory use does not grow with the text");
    CLI::Option* jsonl =
        app.add_option(
               "--jsonl", verb.jsonl.file,
               "JSON Lines file (also .gz, .zst, - for standard input); each line is a sequence. Memory use "
               "does not grow with the file")
            ->type_name("FILE");
    for (const char* other : {"--text", "--prompt", "--ids", "--from"}) {
        jsonl->excludes(other);
    }
    app.add_option("--text-field", verb.jsonl.text_field,
                   "Field with the text; meta.text for a field of an object")
        ->type_name("NAME")
        ->capture_default_str();
    app.add_option("--group-field", verb.jsonl.group_field,
                   "Field with the group of a text, such as its author or source (sequence.group)")
        ->needs(jsonl)
        ->type_name("NAME");
    app.add_option("--label-field", verb.jsonl.label_field,
                   "Field with the class of a text, or a list of {begin, end, class} in bytes, for stats")
        ->needs(jsonl)
        ->type_name("NAME");
    app.add_flag("--skip-bad", verb.jsonl.skip_bad, "Skip invalid lines of --jsonl and count them")
        ->needs(jsonl);
    add_number(app, "--limit-tokens", verb.jsonl.limit_tokens,
               "Stop after the text that reaches N tokens (--jsonl, --text)", 1)
        ->type_name("N");
    app.add_option("-o,--output", verb.trace,
                   "Trace to write; an existing trace gets another run. A run name that is taken gets "
                   "\" (2)\" at its end (--overwrite replaces the old run instead)")
        ->required()
        ->type_name("TRACE.ponder");
    app.add_option(
           "--record", verb.level,
           "What to record, one of scalars, basic, steps, layers, then with commas layers, states, experts: "
           "scalars is NLL, entropy, rank, steps, FLOPs and the gate at exit of each token, in a tenth of "
           "the size of basic. basic is every signal that the method computes anyway. steps adds KL, cosine, "
           "latent difference and margin at every step, which replays need, and costs one more head product "
           "a step. layers records the same after every block of a vanilla model, for early exits. After a "
           "comma, layers adds the read-out of every layer at every step; states[:LAYERS] adds the states in "
           "fp16 at the end of each step, or after these layers (all, or such as 0,3-5); experts adds the "
           "choices of the routers, experts:probabilities also the probabilities of all experts. The size is "
           "printed before the run")
        ->type_name("LEVEL[,layers][,states[:LAYERS]][,experts[:probabilities]]")
        ->capture_default_str();
    app.add_option(
           "--patch", verb.patch_file,
           "Replace states by states of another token, step, layer or text, as listed in this JSON file "
           "(resources/docs/states.md), and record the patched run after the unpatched run")
        ->type_name("FILE");
    app.add_flag("--patched-only", verb.patched_only, "Record only the patched run of --patch")
        ->needs("--patch");
    app.add_flag("--no-candidates", verb.no_candidates,
                 "Omit the ten likeliest tokens of each step, which take most of the size of basic");
    app.add_flag("--compress", verb.compress,
                 "Compress signals by zstd if that saves space (scalars and depth-mixing weights always)");
    app.add_flag("--resume", verb.resume,
                 "Continue an interrupted run after its last finished sequence: add --resume to the same "
                 "command line. Shards need as many processes as before");
    app.add_option("--name", verb.options.run_name, "Name of the run (default: the folder's name)");
    app.add_flag("--overwrite", verb.overwrite,
                 "Replace the run of the same name in the trace once the new run is complete")
        ->excludes("--resume");
    add_number(app, "--context", verb.options.context,
               "Tokens a window (default: the model's maximum, at most 2048)", 1);
    add_number(app, "--stride", verb.options.stride,
               "Tokens from one window to the next (default: half the context)", 1);
    add_number(app, "--batch", verb.options.batch, "Windows computed together", 1, 4096);
    app.add_option("--ablate-source", verb.ablated_sources,
                   "Remove the value of layer S from the depth attention of all layers, or of LAYER; the "
                   "other weights are renormalised. Compare the run with a run without this option")
        ->type_name("S[:LAYER]");
    add_number(app, "--generate", verb.generate.max_new_tokens,
               "Continue the prompt by N tokens and record prompt and continuation", 0)
        ->type_name("N");
    add_sampling(app, verb.generate);
    for (const char* const name : {"--temperature", "--top-k", "--top-p"}) {
        app.get_option(name)->needs("--generate");
    }
    verb.progress.add_to(app);
    app.add_flag("--json", verb.json, "Print the result as JSON");
    app.footer("Example:\n  ponderscope record sample_models/ponderlm-neox-1m --text "
               "sample_models/texts/passage.txt -o story.ponder\n"
               "  zcat corpus.jsonl.gz | ponderscope record sample_models/ponderlm-neox-1m --jsonl - "
               "--group-field author -o corpus.ponder\n"
               "Started by torchrun, srun or mpirun, each process records its share:\n"
               "  mpirun -n 4 ponderscope record sample_models/ponderlm-neox-1m --jsonl corpus.jsonl -o "
               "corpus.ponder\n"
               "  ponderscope compare corpus.ponder other.ponder   (or merge --join first)");
}

} // namespace ponderscope::cli
