// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/cli/console.h"
#include "core/checkpoint/checkpoint.h"
#include "core/ponder/engine/engine.h"
#include "core/record/session.h"
#include "core/text/tokenizer.h"
#include "core/trace/reader.h"

#include <CLI/CLI.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace ponderscope::cli {

/// CHECKPOINT and where it runs; shared by every verb that computes.
struct ModelOptions {
    std::filesystem::path checkpoint;
    std::string method;
    std::int64_t steps = 0;  ///< recurrences; 0: the config's
    std::int64_t layers = 0; ///< the first so many; 0: all
    std::string device = "cpu";
    std::string dtype = "float32";

    void add_to(CLI::App& verb, bool positional = true);
    /// Opens the checkpoint; asks for --method where the config fits several (InputError that lists them).
    [[nodiscard]] Checkpoint open() const;
    /// Loads it and prints what a person should hear of it (Engine::notices).
    [[nodiscard]] Engine load(const Checkpoint& opened, ProgressPrinter& progress,
                              std::stop_token stop) const;
    [[nodiscard]] LoadOptions load_options(ProgressPrinter& progress, std::stop_token stop) const;
};

/// How a loaded model is run: what may replace its own decisions and schedule.
struct RunOptions {
    std::string jacobi;      ///< a number, "exact", or empty: as the config says
    std::string policy;      ///< a halting policy, or empty: the method's own
    std::string force_steps; ///< "12:3,17:0"; empty: none
    std::string attention;   ///< "0,3-5:1", layers and heads; empty: none
    std::string kv;          ///< what later tokens see of a stopped token; empty: the method's default
    std::optional<std::int64_t> prefix; ///< absent: none in a score, the prompt in a generation
    std::string start_state;            ///< "random:7", "zero", a file; empty: random

    void add_to(CLI::App& verb);
    /// InputError: a text that is none of these, or something that the engine's method does not have.
    void apply(Engine& engine) const;
    /// InputError: --force-steps names a token that is not there.
    void check_places(const std::vector<SequenceInput>& sequences) const;
};

/// The input: text files, a prompt, ids, or the ids of a recorded run.
struct InputOptions {
    std::vector<std::filesystem::path> texts;
    std::string prompt;
    std::filesystem::path ids;
    std::string from; ///< TRACE#RUN
    TextReading reading;

    void add_to(CLI::App& verb, bool with_ids);
    /// Exactly one kind must be given (InputError).
    void check() const;
    [[nodiscard]] std::vector<SequenceInput> read(const Tokenizer* tokenizer,
                                                  const Checkpoint& checkpoint) const;
    [[nodiscard]] std::string source() const;
};

/// The tokenizer of the folder, when it has one; checked against the model's vocabulary.
std::optional<Tokenizer> open_tokenizer(const Checkpoint& checkpoint);
/// The tokenizer's notices, and whether it has far fewer tokens than the model's \p vocabulary_size rows.
std::vector<std::string> tokenizer_notices(const Tokenizer& tokenizer, std::int64_t vocabulary_size);
/// The tokenizer, where text must be read. InputError if \p tokenizer is null; its message suggests --ids.
const Tokenizer& require_tokenizer(const Checkpoint& checkpoint, const Tokenizer* tokenizer);

/// --bos and --parse-special.
void add_reading(CLI::App& app, TextReading& reading, bool windows);
/// --temperature, --top-k, --top-p and --seed.
void add_sampling(CLI::App& app, GenerateOptions& options);
/// InputError: --top-k or --top-p with a temperature of 0, which takes the likeliest token.
void check_sampling(const GenerateOptions& options);

/// The run that was just recorded, by its number: a name can be a number, too.
RunInfo run_of_number(const TraceReader& reader, std::int64_t number);
/// TRACE#RUN as one types it: by the run's name, or by its number where the name would be read otherwise or
/// is not seen as it is.
std::string run_reference(const std::filesystem::path& trace, const RunInfo& run);

} // namespace ponderscope::cli
