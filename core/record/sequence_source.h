// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/record/session.h"

#include <cstdint>
#include <memory>
#include <string>

namespace ponderscope {

/// Where record() takes its sequences from, one after the other, so that a corpus need not lie in memory. A
/// sequence lives as long as its windows are computed.
class SequenceSource {
public:
    virtual ~SequenceSource() = default;
    /// Null after the last one, and when it was stopped. InputError: what comes next is wrong.
    virtual std::shared_ptr<const SequenceInput> next() = 0;

    /// What there is in all, for progress; a total of 0 is not known.
    struct Amount {
        std::int64_t total = 0;
        bool bytes = false;       ///< `total` counts bytes of text; else tokens
        std::int64_t longest = 0; ///< tokens of the longest sequence; 0: not known
    };
    [[nodiscard]] virtual Amount amount() const = 0;
    /// RunInfo::text_digest; empty as long as it is not known, at the latest after the last sequence it is.
    [[nodiscard]] virtual std::string text_digest() const = 0;
    /// One sentence on what was left out so far; empty: nothing.
    [[nodiscard]] virtual std::string left_out() const { return {}; }
};

/// The same as the record() of session.h, sequence by sequence: memory grows by the batch, not by what the
/// source holds. Where the source fails, what was recorded before stays in the trace, marked partial, with
/// the fault. A source without any sequence is an InputError, and then nothing is written.
RecordReport record(const Engine& engine, const Checkpoint& checkpoint, SequenceSource& source,
                    const Tokenizer* tokenizer, TraceWriter& writer, const RecordOptions& options,
                    const ProgressSink& progress = {}, const std::stop_token& stop = {});

} // namespace ponderscope
