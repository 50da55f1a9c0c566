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
/// part is cut at a line end, else between words, else between tokens. Its sequences have the tokens of the
/// whole text, because each part is encoded together with the text around it. If two parts disagree about the
/// tokens at their cut, the file is refused. Files are read through once before the recording, so that their
/// errors are reported first; a stream is taken as it comes. InputError: as read_text_file; damaged packing;
/// a text that the tokenizer does not cut into tokens.
class TextFiles final : public TextSource {
public:
    /// \p tokenizer must outlive this. Cancelled if \p stop comes while files are read through.
    TextFiles(TextFilesOptions options, const Tokenizer& tokenizer, const ProgressSink& progress = {},
              std::stop_token stop = {});

    std::shared_ptr<const SequenceInput> next() override;
    void rewind() override;
    void add_choices(nlohmann::json& choices) const override;

private:
    struct Token {
        std::int32_t id;
        std::uint64_t begin, end; ///< in the text of the file
        bool operator==(const Token&) const = default;
    };
    void read_through(const ProgressSink& progress);
    void look_at_part(const SequenceInput& part); ///< that read_next() gave last
    [[nodiscard]] bool open_next_file();
    /// Reads this number of bytes into the buffer, or all that are left.
    void fill(std::size_t bytes);
    [[nodiscard]] std::shared_ptr<const SequenceInput> read_next();
    /// Where the part ends that is encoded with \p encoding, which begins at \p from of the buffer.
    [[nodiscard]] std::size_t choose_cut(const Encoding& encoding, std::size_t from) const;
    [[nodiscard]] std::vector<Token> around_seam(const Encoding& encoding, std::uint64_t from) const;

    TextFilesOptions options_;
    const Tokenizer& tokenizer_;
    std::size_t tail_; ///< the rest behind a part has more bytes
    std::size_t next_file_ = 0;
    std::unique_ptr<LineReader> reader_; ///< of the file that is being read; null: none
    std::string name_;                   ///< of that file, in sentences
    std::string title_;
    std::string buffer_;          ///< of its text: the text before a part, the part, and more
    std::uint64_t offset_ = 0;    ///< of the buffer in the text
    std::size_t begin_ = 0;       ///< of the part in the buffer
    std::size_t before_ = 0;      ///< where encoding begins: a token of the part before that lies before it
    std::size_t valid_ = 0;       ///< the buffer was looked at up to here
    bool at_end_ = false;         ///< nothing comes behind the buffer
    std::int64_t part_ = 0;       ///< from 1
    std::uint64_t seam_ = 0;      ///< the part's beginning in the text
    std::vector<Token> expected_; ///< around it, as the part before saw them
    std::int64_t taken_tokens_ = 0;
    bool ended_ = false;                         ///< since it was begun, nothing comes any more
    std::shared_ptr<const SequenceInput> first_; ///< of a stream, read before the run
};

} // namespace ponderscope
