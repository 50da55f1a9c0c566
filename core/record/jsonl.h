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

/// The fields of a line of JSON Lines, one object a line; blank lines are counted and skipped. A field within
/// an object is written with a point: meta.author.
struct JsonlOptions {
    std::filesystem::path file; ///< "-": standard input; gzip and Zstandard are recognised
    std::string text_field = "text";
    std::string group_field =
        {}; ///< SequenceInfo::group: a text, number or truth value; null: none; "": not read
    /// The field with classes: a text, number or truth value for the whole text, or a list of {"begin",
    /// "end", "class"}, in bytes, for parts of it; null: none. "": not read.
    std::string label_field = {};
    bool skip_bad = false; ///< leave lines out that are wrong, and count them
    TextReading reading = {};
    std::int64_t limit_tokens = 0; ///< end with the text that reaches this number of tokens; 0: all
};

/// Sequences from JSON Lines. A plain file is read through once before the recording, so that its errors are
/// reported first. A stream is read as it comes. InputError: "FILE: line 17: ..." for a line that is no JSON
/// object, lacks a field, or has a text that is empty, not UTF-8 or shorter than two tokens.
class JsonlSource final : public TextSource {
public:
    /// \p tokenizer must outlive this. Cancelled if \p stop comes while a file is read through.
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
    /// The next valid line.
    [[nodiscard]] bool next_line(LineReader& lines, SequenceInput& sequence, bool encode_all);
    void read(const std::string& line, const LineReader& lines, SequenceInput& sequence,
              bool encode_all) const;

    JsonlOptions options_;
    std::string name_; ///< of the file, in titles and sentences
    const Tokenizer& tokenizer_;
    std::int64_t vocab_size_;
    std::unique_ptr<LineReader> lines_;
    std::shared_ptr<const SequenceInput> first_; ///< of a stream, read before the run
    Sha256 lines_hash_;                          ///< of all lines so far, omitted ones included
    std::string lines_digest_;                   ///< of the texts that were read before; empty: a stream
    bool ended_ = false;                         ///< since it was begun, nothing comes any more
    std::int64_t found_ = 0;
    std::int64_t taken_tokens_ = 0; ///< of those that were encoded
    std::int64_t skipped_ = 0;
    std::string first_skipped_;
};

} // namespace ponderscope
