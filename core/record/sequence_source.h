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

/// Texts up to this number of bytes may be a single token, so they are encoded during the first reading.
inline constexpr std::size_t short_text = 256;

/// Supplies sequences to record() one by one, so that a corpus need not fit in memory. A sequence lives until
/// its windows are computed.
class SequenceSource {
public:
    virtual ~SequenceSource() = default;
    /// Null after the last sequence, or after a stop. InputError: the next sequence is invalid.
    virtual std::shared_ptr<const SequenceInput> next() = 0;
    /// The total for the progress display; 0: unknown.
    struct Amount {
        std::int64_t total = 0;
        bool bytes = false;       ///< `total` counts bytes of text; false: tokens
        std::int64_t longest = 0; ///< tokens of the longest sequence; 0: unknown
    };
    [[nodiscard]] virtual Amount amount() const = 0;
    /// SequenceInput::planned_length of each sequence; empty: all sequences have their planned length.
    [[nodiscard]] virtual std::vector<std::int64_t> planned_lengths() const { return {}; }
    /// RunInfo::text_digest. Empty while it is unknown; known after the last sequence at the latest.
    [[nodiscard]] virtual std::string text_digest() const = 0;
    /// One sentence about the texts skipped so far; empty: none.
    [[nodiscard]] virtual std::string left_out() const { return {}; }
    /// Adds the reading options of the texts to RunInfo::choices. The digest does not cover these options,
    /// but all parts of a run must have the same ones.
    virtual void add_choices(nlohmann::json& choices) const { (void)choices; }
};

/// Texts that are read, checked and encoded on request. A source that can be read twice is read once before
/// the recording. Then digest and amount are known from the beginning, and rewind() works.
class TextSource : public SequenceSource {
public:
    /// Starts again from the beginning. Call this only if the digest is known.
    virtual void rewind() = 0;
    [[nodiscard]] Amount amount() const override { return {text_bytes_, true}; }
    [[nodiscard]] std::string text_digest() const override { return digest_; }
    [[nodiscard]] virtual std::int64_t skipped() const { return 0; } ///< number of skipped texts
    /// Notices about all texts after a first reading; for a stream, about the first text.
    [[nodiscard]] const TextNotices& notices() const { return notices_; }

protected:
    explicit TextSource(std::stop_token stop) : stop_(std::move(stop)) {}
    [[nodiscard]] bool is_stopped() const { return stop_.stop_requested(); }
    /// InputError: the digest \p again differs from \p before, the digest of the first reading.
    static void require_unchanged(const std::string& name, const std::string& before,
                                  const std::string& again) {
        if (before != again) {
            throw InputError(name, "the texts of the first reading", "different texts",
                             "record a file that nobody writes to");
        }
    }

    std::stop_token stop_; ///< ends a next() that waits for a silent pipe
    TextNotices notices_;
    Sha256 hash_; ///< of the texts so far
    std::string digest_;
    std::int64_t text_bytes_ = 0; ///< from the first reading
};

/// As record() in session.h, but sequence by sequence. Memory grows with the batch, not with the source. If
/// the source fails, the finished sequences stay in the trace, marked partial, with the fault. InputError: a
/// source without sequences; then no trace is written.
RecordReport record(const Engine& engine, const Checkpoint& checkpoint, SequenceSource& source,
                    const Tokenizer* tokenizer, TraceWriter& writer, const RecordOptions& options,
                    const ProgressSink& progress = {}, const std::stop_token& stop = {});

} // namespace ponderscope
