// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/notice.h"
#include "core/base/progress.h"
#include "core/ponder/engine/engine.h"
#include "core/text/text_reading.h"
#include "core/text/tokenizer.h"
#include "core/trace/recorded_choices.h"
#include "core/trace/windows.h"
#include "core/trace/writer.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace ponderscope {

/// One sequence to be scored: its tokens and, if known, their text.
struct SequenceInput {
    std::string title;
    std::string text; ///< UTF-8; empty for ids only
    std::vector<std::int32_t> ids;
    std::vector<std::uint64_t> begin; ///< byte spans in `text`, one for each token; empty without a text
    std::vector<std::uint64_t> end;
    std::string group = {};             ///< SequenceInfo::group
    std::vector<TextLabel> labels = {}; ///< classes of parts of `text`
    /// In a generation, the length for halting rules with a decaying bound: tokens of the prompt plus the
    /// largest number of new tokens. 0: the length of `ids`.
    std::int64_t planned_length = 0;

    void set_tokens(Encoding encoding) {
        ids = std::move(encoding.ids);
        begin = std::move(encoding.begin);
        end = std::move(encoding.end);
    }
    [[nodiscard]] std::int64_t length() const { return static_cast<std::int64_t>(ids.size()); }
    /// Window::sequence_length of the windows.
    [[nodiscard]] std::int64_t length_for_rules() const { return std::max(planned_length, length()); }
    /// The ids of a window's tokens.
    [[nodiscard]] std::span<const std::int32_t> ids_of(const WindowSpan& span) const {
        return std::span(ids).subspan(static_cast<std::size_t>(span.begin),
                                      static_cast<std::size_t>(span.end - span.begin));
    }
    /// A window for the engine. \p number: this sequence's number in the run.
    [[nodiscard]] Window window(const WindowSpan& span, std::int64_t number) const {
        return {ids_of(span),
                span.report_begin - span.begin,
                span.report_end - span.begin,
                number,
                span.begin,
                length_for_rules()};
    }
};

/// Reads and encodes a text file. InputError: the file is unreadable, empty, not UTF-8, has NUL bytes, or has
/// fewer than two tokens.
SequenceInput sequence_from_text_file(const std::filesystem::path& file, const Tokenizer& tokenizer,
                                      const TextReading& reading = {});
/// Encodes a prompt typed by the user.
SequenceInput sequence_from_prompt(const std::string& prompt, const Tokenizer& tokenizer,
                                   const TextReading& reading = {});
/// Sets the text of a sequence of ids: tokens are decoded one by one, each with its own bytes.
void attach_decoded_text(SequenceInput& sequence, const Tokenizer& tokenizer);
/// Reads rows of ids from JSON, [[...]] or one flat [...], or from a safetensors file with an integer tensor
/// `input_ids` [T] or [B,T].
std::vector<std::vector<std::int32_t>> read_ids(const std::filesystem::path& file);

/// The computed signals that a run stores.
struct KeptSignals {
    bool scalars = false;   ///< only one packed row for each token, and the gate at the exit
    bool candidates = true; ///< false: do not store candidate_ids and candidate_probabilities
};

/// Options of a run, besides the engine's plan and the choices of the source.
struct RecordOptions {
    RecordLevel level = RecordLevel::steps;
    KeptSignals kept = {};
    std::int64_t context = 0;  ///< tokens per window; 0: the model's context, at most 2048
    std::int64_t stride = 0;   ///< 0: half the context
    std::int64_t batch = 8;    ///< windows computed together
    std::string run_name = {}; ///< empty: the checkpoint's folder name
    std::string changes = {};  ///< suffix of the run's name for a changed model, such as "-without-source-3"
    std::string text_source = {}; ///< the input as the user gave it: files, "prompt", an ids file
    /// Digest of all texts, if this run has only a part of the texts.
    std::optional<std::string> text_digest = std::nullopt;
    TextReading reading = {};
    std::uint64_t seed = 0;
    std::string patches = {};                    ///< JSON of the patches (patch_file.h); empty: none
    std::optional<Branch> branch = std::nullopt; ///< the run that a generation continues
    /// Signals from the generation of a single sequence, with a row for every token. They are stored besides
    /// the signals from scoring.
    std::vector<std::pair<SignalInfo, SignalChunk>> generated = {};
    Notices notices = {};   ///< the run's notices, besides the engine's
    std::int64_t rank = 0;  ///< rank of this process among the processes that record the run
    std::int64_t world = 1; ///< number of processes; each records its share into its own trace (tasks.h)
    /// Path of the writer's trace, if record() shall resume a run in this trace after its last finished
    /// sequence. A complete run stays unchanged. Without a run to resume, a new run begins.
    std::optional<std::filesystem::path> resume = std::nullopt;
    /// Why the generation of the sequences ended early, one sentence. The run keeps all its sequences and is
    /// marked cancelled. Empty: the generation was complete.
    std::string cut_short = {};
    bool finish = true; ///< finish the writer after the run; false: the caller writes more
};

struct RecordReport {
    std::int64_t run = 0;       ///< id in the trace
    std::string wanted_name;    ///< the requested name; the writer appends " (2)" and so on if it is taken
    std::int64_t sequences = 0; ///< number of begun sequences
    std::int64_t tokens = 0;
    std::int64_t scored_tokens = 0;
    std::int64_t lost = 0;       ///< tokens that have a next token, but NaN logits
    double mean_nll = 0;         ///< nats; NaN if no token was scored
    double seconds = 0;          ///< computing and writing, without loading
    bool found_complete = false; ///< the run to resume was already complete
    bool cancelled = false;      ///< ended by the stop token; the run is in the trace, marked partial
};

struct WindowShape {
    std::int64_t context = 0;
    std::int64_t stride = 0;
};
/// Fills in the default context and stride of a run. InputError: values that do not fit the model.
WindowShape resolve_windows(const ModelConfig& config, std::int64_t context, std::int64_t stride);

/// The number of windows of \p longest tokens that fit into memory, at most \p wanted. Counts the memory for
/// the states, read-outs and attention weights that the plan records. InputError: no window fits; the message
/// names a context that fits.
std::int64_t windows_that_fit(const Engine& engine, std::int64_t longest, std::int64_t wanted);

/// InputError unless there is at least one sequence, each has at least two tokens, and every id is below
/// \p vocab_size. record() makes these checks before it writes. An earlier call ensures that invalid input
/// creates no trace.
void check_sequences(const std::vector<SequenceInput>& sequences, std::int64_t vocab_size);

/// Scores every sequence in windows and appends one run to the trace. Writes the previous batch while the
/// next batch is computed. Memory grows with the batch, not with the text. Checks all ids before the first
/// write (InputError). \p tokenizer may be null (ids only).
RecordReport record(const Engine& engine, const Checkpoint& checkpoint,
                    const std::vector<SequenceInput>& sequences, const Tokenizer* tokenizer,
                    TraceWriter& writer, const RecordOptions& options, const ProgressSink& progress = {},
                    std::stop_token stop = {});

} // namespace ponderscope
