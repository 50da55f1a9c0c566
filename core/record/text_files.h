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
    std::vector<std::filesystem::path> files; ///< "-": standard input; gzip and Zstandard are detected
    TextReading reading = {};
    std::int64_t limit_tokens = 0; ///< stop after the sequence that reaches this number of tokens; 0: all

    /// About two million tokens.
    static constexpr std::size_t default_part_bytes = std::size_t{8} << 20;
    std::size_t part_bytes = default_part_bytes; ///< a longer text becomes several sequences
};

/// Sequences from text files, one after the other, with a few parts in memory. A text longer than a part is
/// cut at a line end if possible, else between words, else between tokens. Each part is encoded together with
/// the text around it, so that it has the same tokens as in an encoding of the whole text. A file whose parts
/// disagree about the tokens at their cut is refused. Files are read once before the recording, so that
/// errors are reported first. A stream is read during the recording. InputError: as read_text_file; damaged
/// compression; a text that the tokenizer cannot split into tokens.
class TextFiles final : public TextSource {
public:
    /// \p tokenizer must outlive the object. \p stop during the first reading throws Cancelled.
    TextFiles(TextFilesOptions options, const Tokenizer& tokenizer, const ProgressSink& progress = {},
              std::stop_token stop = {});

    void add_choices(nlohmann::json& choices) const override;

private:
    struct Token {
        std::int32_t id;
        std::uint64_t begin, end; ///< offsets in the file's text
        bool operator==(const Token&) const = default;
    };
    void go_to_begin() override;
    void read_through(const ProgressSink& progress) override;
    void look_at(const SequenceInput& part) override; ///< Takes the part that read_next() gave last.
    [[nodiscard]] bool open_next_file();
    /// Reads this number of bytes into the buffer, or all remaining bytes.
    void fill(std::size_t bytes);
    [[nodiscard]] std::shared_ptr<const SequenceInput> read_next() override;
    /// The end of the part. \p encoding: the tokens of the buffer from offset \p from on.
    [[nodiscard]] std::size_t choose_cut(const Encoding& encoding, std::size_t from) const;
    [[nodiscard]] std::vector<Token> around_seam(const Encoding& encoding, std::uint64_t from) const;

    TextFilesOptions options_;
    const Tokenizer& tokenizer_;
    std::size_t tail_; ///< if more than this many bytes follow a part, another part follows
    std::size_t next_file_ = 0;
    std::unique_ptr<LineReader> reader_; ///< the file that is being read; null: none
    std::string name_;                   ///< name of this file in messages
    std::string title_;
    std::string buffer_;          ///< text before a part, the part, and text after it
    std::uint64_t offset_ = 0;    ///< offset of the buffer in the text
    std::size_t begin_ = 0;       ///< offset of the part in the buffer
    std::size_t before_ = 0;      ///< offset where encoding begins: a token boundary in the previous part
    std::size_t valid_ = 0;       ///< offset in the buffer up to which the text was checked
    bool at_end_ = false;         ///< the buffer reaches the end of the text
    std::int64_t part_ = 0;       ///< number of the part, from 1
    std::uint64_t seam_ = 0;      ///< offset of the part in the text
    std::vector<Token> expected_; ///< tokens around the cut, as the previous part encoded them
    std::int64_t taken_tokens_ = 0;
};

} // namespace ponderscope
