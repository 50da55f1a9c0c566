// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/progress.h"
#include "core/ponder/engine/engine.h"
#include "core/text/text_reading.h"
#include "core/text/tokenizer.h"
#include "core/trace/writer.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace ponderscope {

/// One sequence to be scored: its tokens and, if known, their text.
struct SequenceInput {
    std::string title;
    std::string text; ///< UTF-8; empty for ids only
    std::vector<std::int32_t> ids;
    std::vector<std::uint64_t> begin; ///< byte spans into `text`, one a token; empty without a text
    std::vector<std::uint64_t> end;
    std::string group = {};             ///< SequenceInfo::group
    std::vector<TextLabel> labels = {}; ///< classes of parts of `text`
    /// The length that decaying bounds use for a generation: tokens of the prompt plus the largest number of
    /// new tokens. 0: the number of tokens.
    std::int64_t planned_length = 0;

    [[nodiscard]] std::int64_t length() const { return static_cast<std::int64_t>(ids.size()); }
    /// Window::sequence_length of the windows.
    [[nodiscard]] std::int64_t length_for_rules() const { return std::max(planned_length, length()); }
};

/// Reads a text file and encodes it. InputError: not readable, empty, not UTF-8, NUL bytes, fewer than two
/// tokens.
SequenceInput sequence_from_text_file(const std::filesystem::path& file, const Tokenizer& tokenizer,
                                      const TextReading& reading = {});
/// Encodes a prompt typed by the user.
SequenceInput sequence_from_prompt(const std::string& prompt, const Tokenizer& tokenizer,
                                   const TextReading& reading = {});
/// Gives ids a text: the tokens decoded one by one, each with its own bytes.
void attach_decoded_text(SequenceInput& sequence, const Tokenizer& tokenizer);
/// Rows of ids: JSON [[...]] (or one flat [...]), or a safetensors file with an integer tensor `input_ids`
/// [T] or [B,T].
std::vector<std::vector<std::int32_t>> read_ids(const std::filesystem::path& file);

/// Which computed signals are stored.
struct KeptSignals {
    bool scalars = false;   ///< one row a token, packed, and the gate at exit; no other signal
    bool candidates = true; ///< false: without candidate_ids and candidate_probabilities
};

/// Options of a run beside the engine's plan and the choices of its source (SequenceSource::choices).
struct RecordOptions {
    RecordLevel level = RecordLevel::steps;
    KeptSignals kept;
    std::int64_t context = 0; ///< tokens a window; 0: the model's context, at most 2048
    std::int64_t stride = 0;  ///< 0: half the context
    std::int64_t batch = 8;   ///< windows computed together
    std::string run_name;     ///< empty: the checkpoint's folder name
    std::string changes;      ///< appended to that: a change of the model, such as "-without-source-3"
    std::string text_source;  ///< the input as the user named it: files, "prompt", an ids file
    std::optional<std::string> text_digest = std::nullopt; ///< of all texts, if these are a partial run's
    TextReading reading;
    std::uint64_t seed = 0;
    std::string patches;              ///< JSON of the states that were put in (patch_file.h); empty: none
    std::vector<std::string> notices; ///< of the run, beside the engine's
    std::int64_t training = 0;        ///< RunInfo::training
    std::int64_t training_step = 0;   ///< RunInfo::training_step
    std::int64_t rank = 0;            ///< rank of this process among those that record the run together
    std::int64_t world = 1; ///< how many there are; each records its share into a trace of its own (tasks.h)
    /// The writer's trace, if a run in it is to be resumed after its last finished sequence. A complete run
    /// stays unchanged; without one, this begins as usual.
    std::optional<std::filesystem::path> resume = std::nullopt;
    /// Why the generation of the sequences ended early, one sentence: the run is then marked as cancelled,
    /// with all of them in it. Empty: nothing did.
    std::string cut_short = {};
    bool finish = true; ///< the writer is finished after the run; false: the caller goes on writing
};

struct RecordReport {
    std::int64_t run = 0;       ///< its id in the trace
    std::string wanted_name;    ///< the writer appends " (2)" and so on to a taken name
    std::int64_t sequences = 0; ///< begun
    std::int64_t tokens = 0;
    std::int64_t scored_tokens = 0;
    std::int64_t lost = 0;       ///< tokens with a next one whose logits were NaN
    double mean_nll = 0;         ///< nats; NaN when nothing was scored
    double seconds = 0;          ///< of computing and writing, not of loading
    bool found_complete = false; ///< there was nothing to resume
    bool cancelled = false;      ///< stopped by the stop token; the run is in the trace, marked partial
};

/// Context and stride that a run uses when the user names none. InputError when they do not fit the model.
struct WindowShape {
    std::int64_t context = 0;
    std::int64_t stride = 0;
};
WindowShape resolve_windows(const ModelConfig& config, std::int64_t context, std::int64_t stride);

/// How many windows of \p longest tokens fit into memory with the states, read-outs and attention weights
/// that the engine's plan records; at most \p wanted. InputError: not even one; the message names a context
/// that would fit.
std::int64_t windows_that_fit(const Engine& engine, std::int64_t longest, std::int64_t wanted);

/// What record() checks before it writes anything: at least one sequence, at least two tokens in each, every
/// id below \p vocab_size (InputError). For callers that must not even create a trace for a wrong input.
void check_sequences(const std::vector<SequenceInput>& sequences, std::int64_t vocab_size);

/// Scores every sequence in windows and appends one run to the trace. While a batch is computed, the batch
/// before is written; memory grows by the batch, not by the text. Every id is checked against the vocabulary
/// before anything is written (InputError). \p tokenizer may be null (ids only).
RecordReport record(const Engine& engine, const Checkpoint& checkpoint,
                    const std::vector<SequenceInput>& sequences, const Tokenizer* tokenizer,
                    TraceWriter& writer, const RecordOptions& options, const ProgressSink& progress = {},
                    std::stop_token stop = {});

} // namespace ponderscope
