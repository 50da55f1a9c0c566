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

/// The run's row in the trace, before its first token. Reads the checkpoint's files for their digest.
RunInfo describe_run(const Engine& engine, const Checkpoint& checkpoint, const SequenceSource& source,
                     const Tokenizer* tokenizer, const RecordOptions& options, const WindowShape& shape,
                     const ProgressSink& progress, const std::stop_token& stop);

/// Writes results in the order of their windows; opens and closes sequences as they come.
class Appender {
public:
    /// \p finished: sequences that are in the trace already; \p begun: their run.
    Appender(TraceWriter& writer, const Tokenizer* tokenizer, const RecordOptions& options,
             std::int64_t finished, const std::optional<RunInfo>& begun)
        : writer_(writer),
          tokenizer_(tokenizer),
          options_(options),
          sequences_(finished),
          text_bytes_(begun ? begun->scored_bytes : 0),
          tokens_before_(begun ? begun->tokens : 0) {}

    void append(const Task& task, WindowResult result);

    [[nodiscard]] std::int64_t sequences() const { return sequences_; }   ///< begun
    [[nodiscard]] std::int64_t text_bytes() const { return text_bytes_; } ///< of finished ones
    /// Earlier ones included.
    [[nodiscard]] std::int64_t tokens_in_all() const { return tokens_before_ + tokens_; }
    [[nodiscard]] std::int64_t tokens() const { return tokens_; }
    [[nodiscard]] std::int64_t scored() const { return scored_; }
    [[nodiscard]] std::int64_t lost() const { return lost_; } ///< that have a next token, and no NLL
    [[nodiscard]] double mean_nll() const {
        return scored_ > 0 ? nll_sum_ / static_cast<double>(scored_)
                           : std::numeric_limits<double>::quiet_NaN();
    }

private:
    void begin_sequence(const Task& task);
    /// With every batch, so that a killed recording has the words of its tokens.
    void put_new_vocabulary();

    TraceWriter& writer_;
    const Tokenizer* tokenizer_;
    const RecordOptions& options_;
    std::int64_t sequences_; ///< begun
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
