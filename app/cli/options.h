// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/cli/console.h"
#include "core/base/notice.h"
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

/// The checkpoint and its device, for all verbs that run a model.
struct ModelOptions {
    std::filesystem::path checkpoint;
    std::string method;
    std::int64_t steps = 0;  ///< recurrences; 0: the config's number
    std::int64_t layers = 0; ///< number of first layers to keep; 0: all
    std::string device = "cpu";
    std::string dtype = "float32";

    void add_to(CLI::App& verb, bool positional = true);
    /// Opens the checkpoint. InputError: the config fits several methods; the message asks for --method.
    [[nodiscard]] Checkpoint open() const;
    /// Loads the checkpoint and prints its notices (Engine::notices).
    [[nodiscard]] Engine load(const Checkpoint& opened, ProgressPrinter& progress,
                              std::stop_token stop) const;
};

/// Options that change how a loaded model runs.
struct RunOptions {
    std::string jacobi;      ///< number of refreshes, "exact", or empty: the config's choice
    std::string policy;      ///< a halting policy; empty: the method's own rule
    std::string force_steps; ///< "12:3,17:0" (position:steps); empty: none
    std::string attention;   ///< "0,3-5:1", layers and heads; empty: not recorded
    std::string kv;          ///< the KV policy for stopped tokens; empty: the method's default
    /// Number of first tokens that see each other in both directions; absent: see RunPlan::prefix.
    std::optional<std::int64_t> prefix;
    std::string start_state; ///< "random:7", "zero", a file; empty: "random:0"

    void add_to(CLI::App& verb);
    /// InputError: an invalid text, or an option that the engine's method does not support.
    void apply(Engine& engine) const;
    /// InputError: --force-steps names a token that does not exist.
    void check_places(const std::vector<SequenceInput>& sequences) const;
};

/// The input: text files, a prompt, ids, or the sequences of a recorded run.
struct InputOptions {
    std::vector<std::filesystem::path> texts;
    std::string prompt;
    std::filesystem::path ids;
    std::string from; ///< TRACE#RUN
    TextReading reading;

    void add_to(CLI::App& verb, bool with_ids);
    /// InputError unless exactly one kind of input is given.
    void check() const;
    [[nodiscard]] std::vector<SequenceInput> read(const Tokenizer* tokenizer,
                                                  const Checkpoint& checkpoint) const;
    /// The prompt, or the text files.
    [[nodiscard]] std::vector<SequenceInput> read_texts(const Tokenizer& tokenizer) const;
    [[nodiscard]] std::string source() const;
};

/// Opens the checkpoint's tokenizer, if any, and checks it against the model's vocabulary.
std::optional<Tokenizer> open_tokenizer(const Checkpoint& checkpoint);
/// The tokenizer's notices. Includes a notice if the tokenizer has far fewer tokens than the model's
/// embedding has rows (\p vocabulary_size).
Notices tokenizer_notices(const Tokenizer& tokenizer, std::int64_t vocabulary_size);
/// Returns the tokenizer for verbs that read text. InputError: no tokenizer; the message suggests --ids.
const Tokenizer& require_tokenizer(const Checkpoint& checkpoint, const Tokenizer* tokenizer);

/// Adds --bos and --parse-special.
void add_reading(CLI::App& app, TextReading& reading, bool windows);
/// Adds --temperature, --top-k, --top-p and --seed.
void add_sampling(CLI::App& app, GenerateOptions& options);
/// InputError: --top-k or --top-p with temperature 0. This temperature always chooses the most likely token.
void check_sampling(const GenerateOptions& options);

/// TRACE#RUN as a user types it. RUN is the run's name, or the run's number if the name is ambiguous or has
/// invisible characters.
std::string run_reference(const std::filesystem::path& trace, const RunInfo& run);

} // namespace ponderscope::cli
