// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/error.h"
#include "core/base/sha256.h"
#include "core/record/session.h"
#include "core/record/text_notices.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace ponderscope {

/// Texts up to this length, in bytes, may be a single token and are encoded while files are read through.
inline constexpr std::size_t short_text = 256;

/// The source from which record() takes sequences one by one, so that a corpus need not fit in memory. A
/// sequence lives as long as its windows are computed.
class SequenceSource {
public:
    virtual ~SequenceSource() = default;
    /// Null after the last one, and when it was stopped. InputError: the next sequence is wrong.
    virtual std::shared_ptr<const SequenceInput> next() = 0;
    /// The total, for progress; a total of 0 is not known.
    struct Amount {
        std::int64_t total = 0;
        bool bytes = false;       ///< `total` counts bytes of text; else tokens
        std::int64_t longest = 0; ///< tokens of the longest sequence; 0: not known
    };
    [[nodiscard]] virtual Amount amount() const = 0;
    /// SequenceInput::planned_length of each; empty: none of them stopped before it was that long.
    [[nodiscard]] virtual std::vector<std::int64_t> planned_lengths() const { return {}; }
    /// RunInfo::text_digest; empty until it is known, at the latest after the last sequence.
    [[nodiscard]] virtual std::string text_digest() const = 0;
    /// One sentence on skipped texts so far; empty: nothing.
    [[nodiscard]] virtual std::string left_out() const { return {}; }
    /// How the texts are read, in RunInfo::choices: the digest does not cover them, and all parts of a run
    /// must agree.
    virtual void add_choices(nlohmann::json& choices) const { (void)choices; }
};

/// Texts that are read, checked and tokenised as they are requested. Sources that can be read twice are read
/// through before the recording: digest and amount are known from the beginning, and they can be rewound.
class TextSource : public SequenceSource {
public:
    /// Starts again from the beginning; only if the digest is known.
    virtual void rewind() = 0;
    [[nodiscard]] Amount amount() const override { return {text_bytes_, true}; }
    [[nodiscard]] std::string text_digest() const override { return digest_; }
    [[nodiscard]] virtual std::int64_t skipped() const { return 0; } ///< texts that were left out
    /// Notices about all texts if they were read through beforehand; about the first text of a stream.
    [[nodiscard]] const TextNotices& notices() const { return notices_; }

protected:
    explicit TextSource(std::stop_token stop) : stop_(std::move(stop)) {}
    [[nodiscard]] bool is_stopped() const { return stop_.stop_requested(); }
    /// InputError: the text changed between the first reading, whose digest the run has, and \p again.
    static void require_unchanged(const std::string& name, const std::string& before,
                                  const std::string& again) {
        if (before != again) {
            throw InputError(name, "the texts that it held when it was read through", "others",
                             "record a file that nobody writes to");
        }
    }

    std::stop_token stop_; ///< ends a next() that waits, for a pipe that is silent
    TextNotices notices_;
    Sha256 hash_; ///< of the texts so far
    std::string digest_;
    std::int64_t text_bytes_ = 0; ///< found when they were read through
};

/// The same as the record() of session.h, sequence by sequence: memory grows with the batch, not with the
/// source. If the source fails, the sequences so far stay in the trace, marked partial, with the fault.
/// InputError: a source without sequences; then no trace is written.
RecordReport record(const Engine& engine, const Checkpoint& checkpoint, SequenceSource& source,
                    const Tokenizer* tokenizer, TraceWriter& writer, const RecordOptions& options,
                    const ProgressSink& progress = {}, const std::stop_token& stop = {});

} // namespace ponderscope
