// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/cli/console.h"
#include "app/cli/options.h"
#include "core/base/world.h"
#include "core/record/jsonl.h"
#include "core/record/patch_file.h"
#include "core/record/record_choice.h"
#include "core/record/session.h"
#include "core/trace/reader.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ponderscope::cli {

/// `record`: its options, the recording (record.cpp) and the output (record_print.cpp).
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
    bool overwrite = false; ///< remove the run of the same name when the new run is complete
    bool compress = false;
    bool no_candidates = false;
    bool json = false;
    World world;

    void run();
    /// Joins the world: selects this process's GPU and shows one progress line for all processes.
    void enter_world();
    /// Sets this process's trace, and whether to resume it. InputError: the shard exists and --resume is
    /// absent, or the shards belong to another number of processes.
    void choose_trace();
    [[nodiscard]] Notices notices_of_texts(const Tokenizer& tokenizer, std::int64_t vocabulary_size,
                                           const std::vector<SequenceInput>& sequences) const;
    void check_input() const;
    void check_choice(const RecordChoice& what) const;
    /// record_texts records texts from memory; record_corpus reads the texts of `corpus` while it records.
    [[nodiscard]] RecordReport record_texts(Engine& engine, const Checkpoint& checkpoint,
                                            const Tokenizer* tokenizer, std::vector<SequenceInput>& sequences,
                                            ProgressPrinter& printer, const std::stop_token& stop);
    [[nodiscard]] RecordReport record_corpus(const Engine& engine, const Checkpoint& checkpoint,
                                             const Tokenizer* tokenizer, ProgressPrinter& printer,
                                             const std::stop_token& stop);
    /// Whether --text is read during the recording.
    [[nodiscard]] bool streams_texts() const;
    void replace_old_run(const RecordReport& made) const;
    void print(const RecordReport& report, const Engine& engine) const;
    void print_run(const RunInfo& run, const RecordReport& report, const Engine& engine) const;
    /// One sentence about patches that were not applied, because their token did not run the step. Empty: all
    /// patches were applied.
    [[nodiscard]] std::string unreached_patches(const TraceReader& reader, const RunInfo& run,
                                                const Engine& engine) const;
    std::unique_ptr<TextSource> corpus; ///< texts read during the recording; null: texts in memory
    std::vector<PlannedPatch> patches;
    std::optional<RecordReport> plain; ///< the run without patches, recorded beside the patched run
    std::string left_out;              ///< one sentence about skipped lines; empty: none
    std::int64_t lines_left_out = 0;
    /// Opens the checkpoint and applies --steps, --layers and --ablate-source. The run stores these changes.
    [[nodiscard]] Checkpoint open();
    void say_price(const Engine& engine, std::int64_t window, const ProgressPrinter& printer) const;
    void continue_prompts(const Engine& engine, const Checkpoint& checkpoint, const Tokenizer* tokenizer,
                          std::vector<SequenceInput>& sequences, ProgressPrinter& printer,
                          const std::stop_token& stop);
};

} // namespace ponderscope::cli
