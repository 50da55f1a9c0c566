// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/options.h"
#include "app/cli/numbers.h"

#include "core/base/error.h"
#include "core/base/utf8.h"
#include "core/base/words.h"
#include "core/checkpoint/method_info.h"
#include "core/policy/policy_spec.h"
#include "core/ponder/halting/halting_rules.h"
#include "core/ponder/halting/policy_halting.h"
#include "core/record/recorded_sequences.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>
#include <vector>

namespace ponderscope::cli {

void ModelOptions::add_to(CLI::App& verb, bool positional) {
    if (positional) {
        verb.add_option("checkpoint", checkpoint,
                        "Checkpoint folder in Hugging Face layout, or ORG/NAME of a model in the local cache "
                        "of its hub")
            ->required();
    }
    verb.add_option("--method", method, "Method, if config.json does not name one: " + method_names());
    add_number(verb, "--steps", steps,
               "Number of recurrences of a model whose steps share all weights (" +
                   method_names([](const MethodInfo& info) { return info.any_steps; }) +
                   "), instead of the config's number; the steps are then 0 to N - 1",
               1)
        ->type_name("N");
    add_number(verb, "--layers", layers, "Run only the first N layers of a plain stack, for a quick look", 1)
        ->type_name("N");
    verb.add_option("--device", device,
                    "cpu, cuda, cuda:N, or auto (a GPU with room for the model, else the CPU)")
        ->capture_default_str();
    verb.add_option(
            "--dtype", dtype,
            "Precision of weights and products, one of float32, tf32, bfloat16, float16: with tf32 a GPU "
            "rounds factors to three digits and is several times as fast; bfloat16 takes half the memory, "
            "keeps two to three digits and is several times as fast on hardware that supports it")
        ->capture_default_str();
}

Checkpoint ModelOptions::open() const {
    std::optional<MethodKind> kind;
    if (!method.empty()) {
        kind = method_from_string(method);
        if (!kind) {
            throw InputError(ErrorId::usage_value,
                             "--method: expected one of " + method_names() + "; found '" + method + "'.");
        }
    }
    Checkpoint opened = Checkpoint::open(checkpoint, kind, steps > 0 ? std::optional(steps) : std::nullopt);
    if (!kind && opened.config.candidate_methods.size() > 1) {
        const auto name = [](MethodKind candidate) { return to_string(candidate); };
        throw InputError(ErrorId::usage_unsuited,
                         (opened.folder / "config.json").string() + ": the keys match several methods (" +
                             joined(opened.config.candidate_methods, name) + "). Choose one with --method.");
    }
    if (layers > 0) {
        keep_first_layers(opened.config, layers);
    }
    return opened;
}

Engine ModelOptions::load(const Checkpoint& opened, ProgressPrinter& progress, std::stop_token stop) const {
    const std::optional<Precision> precision = precision_from_string(dtype);
    if (!precision) {
        throw InputError(ErrorId::usage_value,
                         "--dtype: expected " + precision_names() + ", found '" + dtype + "'.");
    }
    LoadOptions options;
    options.device = device;
    options.precision = *precision;
    options.progress = progress.sink();
    options.stop = std::move(stop);
    Engine engine = Engine::load(opened, options);
    progress.note(engine.notices());
    return engine;
}

namespace {

[[noreturn]] void refuse_forced_steps(const std::string& what) {
    throw InputError(ErrorId::usage_value, "--force-steps: " + what + ".");
}

/// "POSITION:STEPS" or "SEQUENCE/POSITION:STEPS", several with commas.
std::vector<ForcedSteps> forced_steps(const std::string& text, std::int64_t max_steps) {
    std::vector<ForcedSteps> forced;
    for (const std::string_view entry : split_at(text, ',')) {
        const std::size_t slash = entry.find('/');
        const std::size_t begin = slash == std::string_view::npos ? 0 : slash + 1;
        const std::size_t colon = entry.find(':', begin);
        const std::int64_t sequence = begin == 0 ? 0 : parse_count(entry.substr(0, slash));
        const std::int64_t position = parse_count(entry.substr(begin, colon - begin));
        const std::int64_t steps =
            colon == std::string_view::npos ? -1 : parse_count(entry.substr(colon + 1));
        if (std::min({sequence, position, steps}) < 0) {
            refuse_forced_steps("expected POSITION:STEPS or SEQUENCE/POSITION:STEPS, found '" +
                                std::string(entry) + "'; write for example 12:3,17:0");
        }
        if (steps > max_steps) {
            refuse_forced_steps("expected at most the model's " + std::to_string(max_steps) +
                                " steps, found " + std::to_string(steps) + " for position " +
                                std::to_string(position));
        }
        for (const ForcedSteps& other : forced) {
            if (other.sequence == sequence && other.position == position) {
                refuse_forced_steps("position " + std::to_string(position) +
                                    " is given twice; give each position once");
            }
        }
        forced.push_back({sequence, position, steps});
    }
    return forced;
}

} // namespace

void RunOptions::add_to(CLI::App& verb) {
    verb.add_option(
            "--jacobi", jacobi,
            "How to score models whose steps wait for earlier tokens, such as PonderLM-2: N refreshes "
            "of all steps at once, or exact (default: the number in config.json)")
        ->type_name("N|exact");
    verb.add_option(
            "--policy", policy,
            "Halting policy, such as learned, full or entropy:theta=2.5 (ponderscope policy --help-all "
            "lists all). learned is the method's own rule; full runs every step. For a vanilla model "
            "the policy decides after which block a token exits")
        ->type_name("SPEC");
    verb.add_option("--force-steps", force_steps,
                    "Steps of chosen tokens, regardless of the policy: POSITION:STEPS, separated by commas; "
                    "SEQUENCE/POSITION:STEPS for a later sequence")
        ->type_name("12:3,17:0");
    verb.add_option(
            "--kv", kv,
            "Keys and values of a stopped token that later tokens see at step k: full (those of step k: all "
            "steps run, and an exit only chooses the read-out), per_step (of its last step up to k), shared "
            "(of its last step, at every k), skip (of step k, if it ran). Default: full where a released "
            "model exits in this way (" +
                method_names([](const MethodInfo& info) { return info.exits_select; }) +
                "), per_step under any other policy")
        ->type_name("full|per_step|shared|skip");
    verb.add_option("--prefix", prefix,
                    "Let the first N tokens of each text see each other in both directions, for models "
                    "trained this way (HRM-Text). These tokens are not predicted and have no NLL (default: "
                    "none in scoring, the prompt in generation)")
        ->type_name("N");
    verb.add_option("--initial-state", start_state,
                    "Start state of a recurrent stack: random[:SEED], zero, or a safetensors file with "
                    "initial_state [sequences, tokens, width], searched first in the checkpoint's folder "
                    "(default: random:0). Record several seeds to see how much the start matters")
        ->type_name("random|zero|FILE");
    verb.add_option("--attention", attention,
                    "Also record the sequence attention of these layers and heads: all, or numbers and "
                    "ranges from 0 such as 0,3-5:1,2 (without heads: all heads). The size grows with the "
                    "square of the text length and is printed before the run")
        ->type_name("LAYERS[:HEADS]");
}

void RunOptions::apply(Engine& engine) const {
    if (!kv.empty()) {
        const std::optional<KvPolicy> seen = kv_policy_from_string(kv);
        if (!seen) {
            throw InputError(ErrorId::usage_value,
                             "--kv: expected full, per_step, shared or skip, found '" + kv + "'.");
        }
        engine.choose(&RunPlan::kv, seen);
    }
    if (prefix) {
        engine.choose(&RunPlan::prefix, prefix);
    }
    if (!start_state.empty()) {
        engine.choose(&RunPlan::start_state, start_state);
    }
    if (!attention.empty()) {
        engine.choose(&RunPlan::attention, AttentionChoice::parse(attention, engine.config()));
    }
    std::shared_ptr<const HaltingRule> rule;
    if (!policy.empty()) {
        rule = rule_of(PolicySpec::parse(policy), engine);
    }
    if (!force_steps.empty()) {
        rule = forced_halting(forced_steps(force_steps, engine.max_steps()), rule);
    }
    if (rule) {
        engine.choose(&RunPlan::rule, std::move(rule));
    }
    // After the rule: pause tokens allow refreshes only under a halting rule.
    if (jacobi == "exact") {
        engine.choose(&RunPlan::refreshes, std::nullopt);
    } else if (!jacobi.empty()) {
        const std::int64_t refreshes = parse_count(jacobi);
        if (refreshes < 0 || refreshes > 1'000'000) {
            throw InputError(ErrorId::usage_value,
                             "--jacobi: expected exact or a number of refreshes from 0 to 1000000, found '" +
                                 jacobi + "'.");
        }
        engine.choose(&RunPlan::refreshes, refreshes);
    }
}

void RunOptions::check_places(const std::vector<SequenceInput>& sequences) const {
    if (force_steps.empty()) {
        return;
    }
    for (const ForcedSteps& one : forced_steps(force_steps, std::numeric_limits<std::int64_t>::max())) {
        const auto sequence = static_cast<std::size_t>(one.sequence);
        if (sequence >= sequences.size()) {
            refuse_forced_steps("expected a sequence from 0 to " + std::to_string(sequences.size() - 1) +
                                ", found " + std::to_string(one.sequence));
        }
        const std::size_t length = sequences[sequence].ids.size();
        if (static_cast<std::size_t>(one.position) >= length) {
            refuse_forced_steps("expected a position from 0 to " + std::to_string(length - 1) + " in " +
                                sequences[sequence].title + ", found " + std::to_string(one.position));
        }
    }
}

void InputOptions::add_to(CLI::App& verb, bool with_ids) {
    verb.add_option("--text", texts, "Text file in UTF-8; each file is a sequence")->type_name("FILE");
    verb.add_option("--prompt", prompt, "Text given on the command line")
        ->type_name("STR")
        ->check([](const std::string& text) {
            return text.empty() ? std::string("expected a text, found an empty one") : std::string();
        });
    if (with_ids) {
        verb.add_option("--ids", ids, "Token ids: JSON [[...], ...] or a safetensors file with input_ids")
            ->type_name("FILE");
        verb.add_option("--from", from,
                        "Token ids of a recorded run, with that run's options unless you give others")
            ->type_name("TRACE.ponder[#RUN]");
    }
    add_reading(verb, reading, with_ids);
}

void add_reading(CLI::App& app, TextReading& reading, bool windows) {
    std::vector<std::string> values{"auto", "always", "never"};
    if (windows) {
        values.emplace_back("every-window");
    }
    app.add_option_function<std::string>(
           "--bos", [&reading](const std::string& text) { reading.bos = TextReading::parse_bos(text); },
           std::string("Start token before each text: auto (as the tokenizer's files say), always, never") +
               (windows ? ", every-window (also before every window of a long text)" : ""))
        ->check(CLI::IsMember(values))
        ->default_str("auto");
    app.add_option_function<std::string>(
           "--parse-special", [&reading](const std::string& text) { reading.parse_special = text == "on"; },
           "Special tokens in a text, on or off: on reads them as tokens, off as plain text")
        ->check(CLI::IsMember({"on", "off"}))
        ->default_str("on");
}

void InputOptions::check() const {
    const int kinds = static_cast<int>(!texts.empty()) + static_cast<int>(!prompt.empty()) +
                      static_cast<int>(!ids.empty()) + static_cast<int>(!from.empty());
    if (kinds != 1) {
        throw InputError(kinds == 0 ? ErrorId::usage_missing : ErrorId::usage_conflict,
                         kinds == 0
                             ? "There is no input: give --text FILE, --prompt STR or another input (--help)."
                             : "--text, --prompt, --ids and --from exclude each other; give one of them.");
    }
}

std::vector<SequenceInput> InputOptions::read(const Tokenizer* tokenizer,
                                              const Checkpoint& checkpoint) const {
    check();
    if (!from.empty()) {
        return sequences_of(parse_run_reference(from));
    }
    std::vector<SequenceInput> sequences;
    if (!ids.empty()) {
        std::vector<std::vector<std::int32_t>> rows = read_ids(ids);
        for (std::size_t row = 0; row < rows.size(); ++row) {
            SequenceInput sequence;
            sequence.title =
                ids.filename().string() + (rows.size() > 1 ? " [" + std::to_string(row) + "]" : "");
            sequence.ids = std::move(rows[row]);
            if (tokenizer != nullptr) {
                // With a tokenizer, the decoded ids become the sequence's text.
                attach_decoded_text(sequence, *tokenizer);
            }
            sequences.push_back(std::move(sequence));
        }
        return sequences;
    }
    return read_texts(require_tokenizer(checkpoint, tokenizer));
}

std::vector<SequenceInput> InputOptions::read_texts(const Tokenizer& tokenizer) const {
    std::vector<SequenceInput> sequences;
    if (!prompt.empty()) {
        sequences.push_back(sequence_from_prompt(prompt, tokenizer, reading));
    }
    for (const std::filesystem::path& file : texts) {
        sequences.push_back(sequence_from_text_file(file, tokenizer, reading));
    }
    return sequences;
}

std::string InputOptions::source() const {
    if (!prompt.empty()) {
        return "prompt";
    }
    if (!ids.empty()) {
        return ids.string();
    }
    if (!from.empty()) {
        return from;
    }
    return joined(texts, [](const std::filesystem::path& file) {
        return file == "-" ? std::string("standard input") : file.string();
    });
}

std::optional<Tokenizer> open_tokenizer(const Checkpoint& checkpoint) {
    if (!checkpoint.vocabulary) {
        return std::nullopt;
    }
    Tokenizer tokenizer = Tokenizer::load_folder(checkpoint.folder);
    tokenizer.require_vocabulary(checkpoint.config.vocab_size);
    return tokenizer;
}

Notices tokenizer_notices(const Tokenizer& tokenizer, std::int64_t vocabulary_size) {
    Notices notices = tokenizer.notices();
    // Models pad their vocabulary by a few percent, for example to a multiple of 64: no notice.
    if (static_cast<double>(tokenizer.size()) < 0.9 * static_cast<double>(vocabulary_size)) {
        notices.push_back({NoticeId::tokenizer_size,
                           "The tokenizer has " + std::to_string(tokenizer.size()) +
                               " tokens, but the model's embedding has " + std::to_string(vocabulary_size) +
                               " rows. The tokenizer may belong to another model."});
    }
    return notices;
}

const Tokenizer& require_tokenizer(const Checkpoint& checkpoint, const Tokenizer* tokenizer) {
    if (tokenizer == nullptr) {
        throw InputError(ErrorId::text_tokenizer, checkpoint.folder,
                         "tokenizer.json, or vocab.json and merges.txt, to read text", "none of these files",
                         "copy the model's tokenizer into this folder, or give token ids (record --ids)");
    }
    return *tokenizer;
}

void add_sampling(CLI::App& app, GenerateOptions& options) {
    add_number(app, "--temperature", options.temperature,
               "Sampling temperature. 0 always takes the most probable token", 0.0);
    add_number(app, "--top-k", options.top_k, "Sample from the K most probable tokens; 0: all", 0)
        ->type_name("K");
    app.add_option("--top-p", options.top_p,
                   "Of these K tokens, sample from the fewest that have this share of their probability")
        ->check(number_above(0, 1))
        ->capture_default_str();
    add_number(app, "--seed", options.seed,
               "Seed of sampling: a draw depends on the seed, the sequence number and the position, not "
               "on the batch size",
               0);
}

void check_sampling(const GenerateOptions& options) {
    for (const auto& [is_given, name] :
         {std::pair{options.top_k > 0, "--top-k"}, std::pair{options.top_p < 1, "--top-p"}}) {
        if (is_given && options.temperature == 0) {
            throw InputError(ErrorId::usage_missing,
                             std::string(name) +
                                 " needs sampling, but a temperature of 0 always takes the likeliest "
                                 "token; give --temperature above 0.");
        }
    }
}

std::string run_reference(const std::filesystem::path& trace, const RunInfo& run) {
    const bool as_named =
        !run.name.empty() && run.name.find('#') == std::string::npos && visible(run.name) == run.name;
    return trace.string() + "#" + (as_named ? run.name : std::to_string(run.id));
}

} // namespace ponderscope::cli
