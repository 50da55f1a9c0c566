// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/record/sequence_source.h"
#include "core/record/tasks.h"
#include "core/trace/writer.h"

#include <cstdint>
#include <optional>
#include <set>
#include <stop_token>

namespace ponderscope {

/// The run's row in the trace before its first token. Reads the checkpoint's files for their digest.
/// \p source: nullptr if the texts are not known yet.
RunInfo describe_run(const Engine& engine, const Checkpoint& checkpoint, const SequenceSource* source,
                     const Tokenizer* tokenizer, const RecordOptions& options, const WindowShape& shape,
                     const ProgressSink& progress, const std::stop_token& stop);

/// Writes results in the order of their windows. Opens and closes sequences on the way.
class Appender {
public:
    /// \p finished: number of sequences that the trace already has. \p begun: the resumed run, if any.
    Appender(TraceWriter& writer, const Tokenizer* tokenizer, const RecordOptions& options,
             std::int64_t finished, const std::optional<RunInfo>& begun)
        : writer_(writer),
          tokenizer_(tokenizer),
          options_(options),
          sequences_(finished),
          text_bytes_(begun ? begun->scored_bytes : 0),
          tokens_before_(begun ? begun->tokens : 0) {}

    void append(const Task& task, WindowResult result);

    [[nodiscard]] std::int64_t sequences() const { return sequences_; }   ///< number of begun sequences
    [[nodiscard]] std::int64_t text_bytes() const { return text_bytes_; } ///< bytes of finished texts
    /// Includes the tokens from before a resume.
    [[nodiscard]] std::int64_t tokens_in_all() const { return tokens_before_ + tokens_; }
    [[nodiscard]] std::int64_t tokens() const { return tokens_; }
    [[nodiscard]] std::int64_t scored() const { return scored_; }
    [[nodiscard]] std::int64_t lost() const { return lost_; } ///< tokens that have a next token but no NLL
    [[nodiscard]] double mean_nll() const {
        return scored_ > 0 ? nll_sum_ / static_cast<double>(scored_)
                           : std::numeric_limits<double>::quiet_NaN();
    }

private:
    void begin_sequence(const Task& task);
    /// Called after every batch, so that a killed recording has the texts of its tokens.
    void put_new_vocabulary();

    TraceWriter& writer_;
    const Tokenizer* tokenizer_;
    const RecordOptions& options_;
    std::int64_t sequences_; ///< number of begun sequences
    bool open_ = false;
    std::int64_t text_bytes_;
    std::int64_t tokens_before_;
    std::int64_t tokens_ = 0;
    std::int64_t scored_ = 0;
    std::int64_t lost_ = 0;
    double nll_sum_ = 0;
    std::set<std::int32_t> seen_;
    std::set<std::int32_t> written_;
};

} // namespace ponderscope
