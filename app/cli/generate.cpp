// SPDX-License-Identifier: GPL-3.0-or-later
// `generate`: prints every token as soon as the model has chosen it, then records the run like `record`.
#include "app/cli/console.h"
#include "app/cli/numbers.h"
#include "app/cli/options.h"
#include "app/cli/verbs.h"
#include "core/base/dtype.h"
#include "core/base/error.h"
#include "core/base/scoped_stop.h"
#include "core/base/utf8.h"
#include "core/model/depth_sources.h"
#include "core/record/rerun.h"
#include "core/record/session.h"
#include "core/record/text_notices.h"
#include "core/trace/reader.h"
#include "core/trace/rows.h"
#include "core/trace/schema.h"
#include "core/trace/tools/run_edits.h"
#include "core/trace/writer.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>
#include <optional>
#include <set>
#include <utility>

namespace ponderscope::cli {
namespace {

/// A signal with more numbers per token than this is only recorded, not printed.
constexpr std::size_t largest_streamed = 4096;

struct GenerateVerb {
    ModelOptions model;
    RunOptions how;
    ProgressOption progress;
    std::string prompt;
    std::string from;        ///< TRACE#RUN to continue instead of a prompt
    std::int64_t number = 0; ///< number of the sequence in this run
    std::optional<std::int64_t> at;
    std::optional<std::int64_t> forced;
    std::filesystem::path trace;
    std::string level = "steps";
    std::string run_name;
    GenerateOptions generate;
    std::vector<std::string> ablated_sources;
    TextReading reading;
    bool json = false;

    void run();

private:
    /// Prints one line of JSON and flushes it.
    static void say(const nlohmann::json& object) {
        std::cout << object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
    }
    void check_options() const;
    /// The tokens of a run before --at, and the token of --force. Sets options.branch.
    [[nodiscard]] SequenceInput take_prefix(const Checkpoint& checkpoint, RecordOptions& options,
                                            ProgressPrinter& printer, const std::stop_token& stop) const;
    /// Sets options.generated, from sampled_ and the rest of the sequence's \p tokens.
    void attach_sampling(RecordOptions& options, std::int64_t tokens) const;
    [[nodiscard]] nlohmann::json describe(std::int32_t id, const Tokenizer& tokenizer) const;
    void say_start(const Engine& engine, const Checkpoint& checkpoint, const SequenceInput& sequence,
                   const Tokenizer& tokenizer, RecordLevel wanted);
    /// Prints the token at \p position, which row \p row of \p readout predicted.
    void say_token(std::int64_t position, std::int32_t id, bool was_given, const WindowResult& readout,
                   std::size_t row, const Tokenizer& tokenizer);
    void read_prompt(const Engine& engine, const SequenceInput& sequence, const Tokenizer& tokenizer,
                     RecordLevel wanted);

    std::set<std::int32_t> named_;     ///< ids whose bytes were printed
    std::vector<SignalChunk> sampled_; ///< sampling_signals() of the new tokens
};

void GenerateVerb::check_options() const {
    if (!run_name.empty()) {
        check_run_name(run_name);
    }
    if (prompt.empty() && from.empty()) {
        throw InputError(ErrorId::usage_missing,
                         "There is no prompt. Give --prompt STR, or --from TRACE#RUN.");
    }
    check_sampling(generate);
}

SequenceInput GenerateVerb::take_prefix(const Checkpoint& checkpoint, RecordOptions& options,
                                        ProgressPrinter& printer, const std::stop_token& stop) const {
    const RunReference reference = parse_run_reference(from);
    const TraceReader reader = TraceReader::open(reference.trace);
    const RunInfo run = find_run(reader, reference.run);
    const auto limit = [](const char* option, std::int64_t value, std::int64_t least, std::int64_t most) {
        if (value < least || value > most) {
            throw InputError(ErrorId::usage_value, std::string(option) + ": expected a number from " +
                                                       std::to_string(least) + " to " + std::to_string(most) +
                                                       ", found " + std::to_string(value) + ".");
        }
    };
    limit("--sequence", number, 0, run.sequences - 1);
    SequenceInput prefix;
    prefix.ids = reader.tokens(run.id, number).id;
    const std::int64_t end = at.value_or(prefix.length());
    limit("--at", end, 1, prefix.length());
    prefix.ids.resize(static_cast<std::size_t>(end));
    if (forced) {
        limit("--force", *forced, 0, checkpoint.config.vocab_size - 1);
        prefix.ids.push_back(static_cast<std::int32_t>(*forced));
    }
    require_checkpoint_of(run, checkpoint, checkpoint_digest(checkpoint, printer.sink(), stop));
    prefix.title = reader.sequences(run.id).at(static_cast<std::size_t>(number)).title;
    options.branch = {run.name, run.text_digest, number, end, std::nullopt};
    if (forced) {
        options.branch->forced = prefix.ids.back();
    }
    return prefix;
}

void GenerateVerb::attach_sampling(RecordOptions& options, std::int64_t tokens) const {
    const std::vector<SignalInfo> infos = sampling_signals();
    for (std::size_t s = 0; s < sampled_.size(); ++s) {
        // The prompt's rows except the last one, and the last new token's row, predict no sampled token.
        SignalChunk rows = sampled_[s];
        const std::size_t width = rows.data.size() / static_cast<std::size_t>(rows.shape.front());
        const auto before = static_cast<std::size_t>(tokens - 1 - rows.shape.front());
        constexpr std::byte nothing{0xff}; // -1, and NaN
        rows.data.insert(rows.data.begin(), before * width, nothing);
        rows.data.insert(rows.data.end(), width, nothing);
        rows.shape.front() = tokens;
        options.generated.emplace_back(infos[s], std::move(rows));
    }
}

/// {"id", "bytes" (hexadecimal), "special"}.
nlohmann::json GenerateVerb::describe(std::int32_t id, const Tokenizer& tokenizer) const {
    nlohmann::json object{{"id", id}, {"bytes", ""}, {"special", false}};
    if (id < tokenizer.size()) {
        object["special"] = tokenizer.is_special(id);
        object["bytes"] = to_hex(tokenizer.token_bytes(id));
    }
    return object;
}

void GenerateVerb::say_start(const Engine& engine, const Checkpoint& checkpoint,
                             const SequenceInput& sequence, const Tokenizer& tokenizer, RecordLevel wanted) {
    nlohmann::json infos = nlohmann::json::array();
    for (const std::vector<SignalInfo>& some : {engine.signals(wanted), sampling_signals()}) {
        for (const SignalInfo& info : some) {
            infos.push_back(schema::json_of_row(info));
        }
    }
    const ModelConfig& config = engine.config();
    nlohmann::json first = describe(sequence.ids.front(), tokenizer);
    say({{"event", "start"},
         {"checkpoint", std::filesystem::absolute(checkpoint.folder).lexically_normal().string()},
         {"architecture", to_string(config.architecture)},
         {"method", to_string(config.ponder.method)},
         {"depth_mixing", to_string(config.depth.kind)},
         {"policy", engine.policy()},
         {"scoring", engine.scoring()},
         {"device", engine.device_name()},
         {"dtype", model.dtype},
         {"max_steps", engine.max_steps()},
         {"layers", config.layers},
         {"vocab_size", config.vocab_size},
         {"title", sequence.title},
         {"prompt_tokens", sequence.ids.size()},
         {"new_tokens", generate.max_new_tokens},
         {"signals", std::move(infos)},
         {"token", std::move(first)}});
}

void GenerateVerb::say_token(std::int64_t position, std::int32_t id, bool was_given,
                             const WindowResult& readout, std::size_t row, const Tokenizer& tokenizer) {
    const TokenColumns& tokens = readout.tokens;
    nlohmann::json line{
        {"event", "token"},
        {"position", position},
        {"given", was_given},
        {"token", describe(id, tokenizer)},
        {"nll", number_or_null(static_cast<double>(tokens.nll.at(row)))},
        {"entropy", number_or_null(static_cast<double>(tokens.entropy.at(row)))},
        {"max_probability", number_or_null(static_cast<double>(tokens.max_probability.at(row)))},
        {"rank", tokens.rank.at(row)},
        {"steps", tokens.steps.at(row)},
        {"flops", tokens.flops.at(row)}};
    nlohmann::json values = nlohmann::json::object();
    nlohmann::json names = nlohmann::json::array();
    for (const auto& [name, chunk] : readout.signals) {
        SignalChunk one;
        append_rows(one, chunk, row, 1);
        if (one.data.size() / size_of(chunk.dtype) > largest_streamed) {
            continue;
        }
        nlohmann::json list = nlohmann::json::array();
        const bool ids = name == signal::candidate_ids || name == signal::sampling_ids;
        if (!is_real(chunk.dtype)) {
            for (const std::int64_t value : to_integers(one)) {
                list.push_back(value);
                if (ids && value != did_not_run && named_.insert(static_cast<std::int32_t>(value)).second) {
                    names.push_back(describe(static_cast<std::int32_t>(value), tokenizer));
                }
            }
        } else {
            for (const float value : to_floats(one)) {
                list.push_back(number_or_null(static_cast<double>(value)));
            }
        }
        values[name] = {{"shape", one.shape}, {"values", std::move(list)}};
    }
    line["signals"] = std::move(values);
    line["names"] = std::move(names);
    say(line);
}

/// With --json, scores the prompt in one exact pass and prints its tokens.
void GenerateVerb::read_prompt(const Engine& engine, const SequenceInput& sequence,
                               const Tokenizer& tokenizer, RecordLevel wanted) {
    const auto tokens = static_cast<std::int64_t>(sequence.ids.size());
    if (tokens < 2 || !json) {
        return;
    }
    const Window window{sequence.ids, 0, tokens, 0, 0, tokens + generate.max_new_tokens};
    const std::vector<WindowResult> read = engine.score({&window, 1}, wanted);
    for (std::int64_t position = 1; position < tokens; ++position) {
        say_token(position, sequence.ids[static_cast<std::size_t>(position)], true, read.front(),
                  static_cast<std::size_t>(position - 1), tokenizer);
    }
}

void GenerateVerb::run() {
    check_options();
    const RecordLevel wanted = level == "basic" ? RecordLevel::basic : RecordLevel::steps;
    ProgressPrinter printer(progress.style);
    const std::stop_token stop = stop_on_interrupt();
    Checkpoint checkpoint = model.open();
    RecordOptions options;
    for (const std::string& spec : ablated_sources) {
        options.changes += "-" + ablate_source(checkpoint.config, spec);
    }
    const std::optional<Tokenizer> opened = open_tokenizer(checkpoint);
    const Tokenizer& tokenizer = require_tokenizer(checkpoint, opened ? &*opened : nullptr);
    SequenceInput text = from.empty() ? sequence_from_prompt(prompt, tokenizer, reading)
                                      : take_prefix(checkpoint, options, printer, stop);
    options.notices = tokenizer_notices(tokenizer, checkpoint.config.vocab_size);
    TextNotices about_prompt;
    if (from.empty()) {
        about_prompt.look_at(prompt, tokenizer, reading);
    }
    add_new(options.notices, about_prompt.all());
    const std::int64_t prompt_tokens = text.length();
    if (prompt_tokens == 0 || prompt_tokens + generate.max_new_tokens < 2) {
        throw InputError(ErrorId::text_empty,
                         "generate: expected at least two tokens in the prompt and its continuation, found " +
                             std::to_string(prompt_tokens + generate.max_new_tokens) +
                             "; give a longer prompt or raise --tokens.");
    }
    const std::int64_t room = checkpoint.config.max_positions;
    if (prompt_tokens + generate.max_new_tokens > room) {
        throw InputError(
            ErrorId::usage_value,
            "--tokens: expected at most " + std::to_string(std::max<std::int64_t>(room - prompt_tokens, 0)) +
                " new tokens (the model has " + std::to_string(room) + " positions and the prompt " +
                std::to_string(prompt_tokens) + " tokens), found " + std::to_string(generate.max_new_tokens) +
                "; generate fewer tokens.");
    }
    Engine engine = model.load(checkpoint, printer, stop);
    if (how.jacobi.empty()) {
        engine.choose(&RunPlan::refreshes,
                      std::nullopt); // shown and recorded tokens are exact by default
    }
    how.apply(engine);
    engine.check_attention(wanted);
    if (std::error_code error; std::filesystem::exists(trace, error)) {
        check_trace_header(trace); // check before any output
    }
    printer.finish();

    if (json) {
        say_start(engine, checkpoint, text, tokenizer, wanted);
    } else {
        attach_decoded_text(text, tokenizer);
        std::cout << text.text << std::flush;
    }
    read_prompt(engine, text, tokenizer, wanted);
    GenerateOptions how_on = generate;
    how_on.stop_ids = checkpoint.config.eos_token_ids;
    how_on.stop = stop;
    how_on.reports_sampling = true;
    std::vector<std::int32_t> ids = text.ids;
    const auto heard = [&](std::int64_t, std::int32_t id, const WindowResult& readout) {
        sampled_.resize(sampling_signals().size());
        for (std::size_t s = 0; s < sampled_.size(); ++s) {
            append_rows(sampled_[s], readout.signals[readout.signals.size() - sampled_.size() + s].second, 0,
                        1);
        }
        if (json) {
            say_token(static_cast<std::int64_t>(ids.size()), id, false, readout, 0, tokenizer);
        } else if (!tokenizer.is_special(id)) {
            std::cout << (tokenizer.token_text(id).empty() ? '[' + std::to_string(id) + ']'
                                                           : tokenizer.token_bytes(id))
                      << std::flush;
        }
        ids.push_back(id);
        return !stop.stop_requested();
    };
    if (!stop.stop_requested() && generate.max_new_tokens > 0) {
        static_cast<void>(engine.generate({text.ids}, how_on, wanted, heard));
    }
    if (!json) {
        std::cout << '\n';
    }
    printer.note(options.notices);
    const bool was_stopped = stop.stop_requested();
    if (!trace.empty() && ids.size() >= 2) {
        // The generated text is recorded, even if generation was interrupted.
        text.ids = ids;
        text.planned_length = prompt_tokens + generate.max_new_tokens;
        attach_decoded_text(text, tokenizer);
        attach_sampling(options, text.length());
        options.level = wanted;
        options.seed = generate.seed;
        options.reading = reading;
        options.run_name = run_name;
        options.text_source = from.empty() ? "prompt" : from;
        options.batch = 1;
        options.context = room; // one window, as in the generation
        options.stride = room;
        if (was_stopped) {
            const auto generated = static_cast<std::int64_t>(ids.size()) - prompt_tokens;
            options.cut_short = "Cancelled after " + std::to_string(generated) + " generated tokens.";
        }
        how.check_places({text});
        const ScopedStop undisturbed({}); // a stop does not interrupt recording
        TraceWriter writer(trace);
        const RecordReport report =
            record(engine, checkpoint, {text}, &tokenizer, writer, options, printer.sink(), {});
        printer.finish();
        const std::string name = run_by_id(TraceReader::open(trace), report.run).name;
        if (json) {
            say({{"event", "recorded"},
                 {"trace", trace.string()},
                 {"run", name},
                 {"tokens", report.tokens},
                 {"mean_nll", number_or_null(report.mean_nll)},
                 {"complete", !was_stopped}});
        } else {
            std::cout << visible(trace.string()) << "#" << visible(name) << '\n';
        }
    }
    if (was_stopped) {
        throw Cancelled();
    }
}

} // namespace

void add_generate(CLI::App& program) {
    auto [app, verb] = add_verb<GenerateVerb>(program, "generate");
    verb.model.add_to(app);
    verb.how.add_to(app);
    app.add_option("--prompt", verb.prompt, "Text to continue")->type_name("STR");
    app.add_option("--from", verb.from, "Run to continue, recorded from the same checkpoint")
        ->excludes("--prompt")
        ->type_name("TRACE.ponder[#RUN]");
    app.add_option("--sequence", verb.number, "Sequence of --from to continue, by number from 0")
        ->needs("--from")
        ->type_name("N");
    app.add_option("--at", verb.at, "Keep the tokens of --from before this position (default: all tokens)")
        ->needs("--from")
        ->type_name("POSITION");
    app.add_option("--force", verb.forced, "Id of the token to put after the kept tokens of --from")
        ->needs("--from")
        ->type_name("ID");
    verb.generate.max_new_tokens = 64;
    add_number(app, "--tokens", verb.generate.max_new_tokens,
               "Maximum number of new tokens. 0 reads the prompt and generates nothing", 0,
               std::int64_t{1} << 20);
    app.add_option("-o,--output", verb.trace,
                   "Also record prompt and continuation into this trace, with every signal")
        ->type_name("TRACE.ponder");
    app.add_option("--record", verb.level, "What to record: basic or steps, as for record")
        ->check(CLI::IsMember({"basic", "steps"}))
        ->capture_default_str();
    app.add_option("--name", verb.run_name, "Name of the run (default: the folder's name)");
    app.add_option("--ablate-source", verb.ablated_sources,
                   "Remove the value of layer S from the depth attention of all layers, or of LAYER")
        ->type_name("S[:LAYER]");
    add_sampling(app, verb.generate);
    add_reading(app, verb.reading, false);
    verb.progress.add_to(app);
    app.add_flag("--json", verb.json,
                 "Print JSON objects, one a line: start, each token as soon as it is known, recorded");
    app.footer("Example:\n  ponderscope generate sample_models/ponderlm-neox-1m --prompt \"The ferry was\" "
               "--tokens 20\n"
               "  ponderscope generate sample_models/ponderlm-neox-1m --from ferry.ponder --at 6 --force 345 "
               "-o ferry.ponder");
}

} // namespace ponderscope::cli
