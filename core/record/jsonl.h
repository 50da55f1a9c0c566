// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/record/line_reader.h"
#include "core/record/sequence_source.h"
#include "core/text/tokenizer.h"

#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>

namespace ponderscope {

/// Options for JSON Lines: one object on each line; blank lines are counted and skipped. A dot in a field's
/// name reaches into a nested object: meta.author.
struct JsonlOptions {
    std::filesystem::path file; ///< "-": standard input; gzip and Zstandard are detected
    std::string text_field = "text";
    std::string group_field =
        {}; ///< field with SequenceInfo::group: a text, number or boolean; null: no group; "": not read
    /// The field with classes: a text, number or boolean for the whole text, or a list of {"begin", "end",
    /// "class"} for parts of it, in bytes. null: no class. "": not read.
    std::string label_field = {};
    bool skip_bad = false; ///< skip invalid lines and count them
    TextReading reading = {};
    std::int64_t limit_tokens = 0; ///< stop after the text that reaches this number of tokens; 0: all
};

/// Sequences from JSON Lines. A plain file is read once before the recording, so that its errors are reported
/// first. A stream is read during the recording. InputError: "FILE: line 17: ..." for a line that is not a
/// JSON object, lacks a field, or has a text that is empty, not UTF-8 or shorter than two tokens.
class JsonlSource final : public TextSource {
public:
    /// \p tokenizer must outlive the object. \p stop during the first reading throws Cancelled.
    JsonlSource(JsonlOptions options, const Tokenizer& tokenizer, std::int64_t vocab_size,
                const ProgressSink& progress = {}, std::stop_token stop = {});

    std::shared_ptr<const SequenceInput> next() override;
    void rewind() override;
    [[nodiscard]] std::string left_out() const override;
    [[nodiscard]] std::int64_t skipped() const override { return skipped_; }
    void add_choices(nlohmann::json& choices) const override;

private:
    void read_through(const ProgressSink& progress);
    void require_any() const;
    [[nodiscard]] std::shared_ptr<const SequenceInput> read_next();
    /// Reads the next valid line.
    [[nodiscard]] bool next_line(LineReader& lines, SequenceInput& sequence, bool encode_all);
    void read(const std::string& line, const LineReader& lines, SequenceInput& sequence,
              bool encode_all) const;

    JsonlOptions options_;
    std::string name_; ///< the file's name in titles and messages
    const Tokenizer& tokenizer_;
    std::int64_t vocab_size_;
    std::unique_ptr<LineReader> lines_;
    std::shared_ptr<const SequenceInput> first_; ///< of a stream: the first sequence, read before the run
    Sha256 lines_hash_;                          ///< of all lines so far, including skipped ones
    std::string lines_digest_;                   ///< digest from the first reading; empty: a stream
    bool ended_ = false;                         ///< no more lines since begin or rewind
    std::int64_t found_ = 0;
    std::int64_t taken_tokens_ = 0; ///< tokens of the encoded texts
    std::int64_t skipped_ = 0;
    std::string first_skipped_;
};

} // namespace ponderscope
