// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/error.h"
#include "core/base/sha256.h"
#include "core/record/session.h"
#include "core/record/text_notices.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace ponderscope {

/// Texts of at most this many bytes are encoded in the first reading, to find those below two tokens.
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
    /// RunInfo::text_digest. Empty while unknown. Known at the latest after the last sequence.
    [[nodiscard]] virtual std::string text_digest() const = 0;
    /// One sentence about the texts skipped so far; empty: none.
    [[nodiscard]] virtual std::string left_out() const { return {}; }
    /// Adds to RunInfo::choices what the text digest does not cover: the reading options of the texts, and
    /// planned lengths that exceed a sequence's length. All shards of a run, and both parts of a resumed
    /// run, need equal choices.
    virtual void add_choices(nlohmann::json& choices) const { (void)choices; }
};

/// Texts that are read, checked and encoded on request. A source that can be read twice is read once before
/// the recording. Then digest and amount are known from the beginning, and rewind() works.
class TextSource : public SequenceSource {
public:
    /// Also throws InputError if the texts changed after the first reading.
    std::shared_ptr<const SequenceInput> next() final;
    /// Returns to the first text. Call this only if the digest is known.
    void rewind();
    [[nodiscard]] Amount amount() const override { return {text_bytes_, true}; }
    [[nodiscard]] std::string text_digest() const override { return digest_; }
    [[nodiscard]] virtual std::int64_t skipped() const { return 0; } ///< number of skipped texts
    /// Notices about all texts after a first reading; for a stream, about the first text.
    [[nodiscard]] const TextNotices& notices() const { return notices_; }

protected:
    /// \p name: the source's name in messages.
    TextSource(std::string name, std::stop_token stop) : stop_(std::move(stop)), name_(std::move(name)) {}
    /// Reads all of \p files once, so that errors are reported before a recording. If one of the files is a
    /// stream, reads only the first text. A stop request throws Cancelled.
    void start(const std::vector<std::filesystem::path>& files, const ProgressSink& progress);
    [[nodiscard]] bool is_stopped() const { return stop_.stop_requested(); }

    virtual void go_to_begin() = 0;
    /// Reads and encodes the next text and adds it to `hash_`. Null at the end, or after a stop.
    virtual std::shared_ptr<const SequenceInput> read_next() = 0;
    /// Reads all texts: sets `hash_`, `text_bytes_` and `notices_`.
    virtual void read_through(const ProgressSink& progress) = 0;
    virtual void look_at(const SequenceInput& first) = 0; ///< adds notices about a stream's first text

    std::stop_token stop_; ///< ends a next() that waits for a silent pipe
    TextNotices notices_;
    Sha256 hash_;                 ///< hash of the texts so far
    std::int64_t text_bytes_ = 0; ///< bytes of text, known from the first reading

private:
    std::string name_;
    std::string digest_;
    std::int64_t skipped_before_ = 0;            ///< skipped texts of the first reading
    bool ended_ = false;                         ///< all texts since the begin were read
    std::shared_ptr<const SequenceInput> first_; ///< for a stream: the first text, read before the run
};

/// Like record() in session.h, but reads sequences one by one. Memory grows with the batch, not with the
/// source. If the source fails, the finished sequences stay, and the run is marked partial, with the fault.
/// InputError: a source without sequences; then no trace is written.
RecordReport record(const Engine& engine, const Checkpoint& checkpoint, SequenceSource& source,
                    const Tokenizer* tokenizer, TraceWriter& writer, const RecordOptions& options,
                    const ProgressSink& progress = {}, const std::stop_token& stop = {});

} // namespace ponderscope
