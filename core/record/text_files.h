// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/record/line_reader.h"
#include "core/record/sequence_source.h"
#include "core/text/tokenizer.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

namespace ponderscope {

struct TextFilesOptions {
    std::vector<std::filesystem::path> files; ///< "-": standard input; gzip and Zstandard are recognised
    TextReading reading = {};
    std::int64_t limit_tokens = 0; ///< end with the sequence that reaches this number of tokens; 0: all

    /// The bytes of some two million tokens.
    static constexpr std::size_t default_part_bytes = std::size_t{8} << 20;
    std::size_t part_bytes = default_part_bytes; ///< a text of more becomes several sequences
};

/// Sequences from text files, one after the other, with some parts in memory. A text that is longer than a
/// part is cut at a line end, else between words, else between characters, and each part is encoded as a
/// separate text. Files are read through once before the recording, so that their errors are reported first;
/// a stream is taken as it comes. InputError: as read_text_file; damaged packing.
class TextFiles final : public TextSource {
public:
    /// \p tokenizer must outlive this. Cancelled if \p stop comes while files are read through.
    TextFiles(TextFilesOptions options, const Tokenizer& tokenizer, const ProgressSink& progress = {},
              std::stop_token stop = {});

    std::shared_ptr<const SequenceInput> next() override;
    void rewind() override;
    void add_choices(nlohmann::json& choices) const override;

private:
    void read_through(const ProgressSink& progress);
    [[nodiscard]] bool open_next_file();
    /// Reads this number of bytes into the buffer, or all that are left.
    void fill(std::size_t bytes);
    [[nodiscard]] std::shared_ptr<const SequenceInput> read_next();

    TextFilesOptions options_;
    const Tokenizer& tokenizer_;
    std::size_t tail_; ///< the rest behind a part has more bytes
    std::size_t next_file_ = 0;
    std::unique_ptr<LineReader> reader_; ///< of the file that is being read; null: none
    std::string name_;                   ///< of that file, in sentences
    std::string title_;
    std::string buffer_;       ///< of its text, from the part that is next on
    std::uint64_t offset_ = 0; ///< of the buffer in the text
    std::size_t valid_ = 0;    ///< the buffer was looked at up to here
    bool at_end_ = false;      ///< nothing comes behind the buffer
    std::int64_t part_ = 0;    ///< from 1
    std::int64_t taken_tokens_ = 0;
    bool ended_ = false;                         ///< since it was begun, nothing comes any more
    std::shared_ptr<const SequenceInput> first_; ///< of a stream, read before the run
};

} // namespace ponderscope
