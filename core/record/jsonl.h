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

/// Options for JSON Lines: one object on each line. Blank lines are skipped, but count in line numbers. A dot
/// in a field's name reaches into a nested object: meta.author.
struct JsonlOptions {
    std::filesystem::path file; ///< "-": standard input; gzip and Zstandard are detected
    std::string text_field = "text";
    /// Field with SequenceInfo::group: a text, number or boolean; null: no group. Empty name: no field.
    std::string group_field = {};
    /// Field with classes: a text, number or boolean for the whole text, or a list of {"begin", "end",
    /// "class"} for parts of the text, in bytes; null: no class. Empty name: no field.
    std::string label_field = {};
    bool skip_bad = false; ///< skip invalid lines and count them
    TextReading reading = {};
    std::int64_t limit_tokens = 0; ///< stop after the text that reaches this number of tokens; 0: all
};

/// Sequences from JSON Lines. A regular file is read once before the recording, so that its errors are
/// reported first. A stream is read during the recording. InputError: "FILE: line 17: ..." for a line that is
/// not a JSON object, lacks a field, or has a text that is empty, not UTF-8 or shorter than two tokens.
class JsonlSource final : public TextSource {
public:
    /// \p tokenizer must outlive the object. \p stop during the first reading throws Cancelled.
    JsonlSource(JsonlOptions options, const Tokenizer& tokenizer, std::int64_t vocab_size,
                const ProgressSink& progress = {}, std::stop_token stop = {});

    [[nodiscard]] std::string left_out() const override;
    [[nodiscard]] std::int64_t skipped() const override { return skipped_; }
    void add_choices(nlohmann::json& choices) const override;

private:
    void go_to_begin() override;
    void read_through(const ProgressSink& progress) override;
    void look_at(const SequenceInput& first) override {
        notices_.look_at(first.text, tokenizer_, options_.reading);
    }
    [[nodiscard]] std::shared_ptr<const SequenceInput> read_next() override;
    /// Reads the next valid line. InputError: the file ends and no line was valid.
    [[nodiscard]] bool next_line(SequenceInput& sequence, bool encode_all);
    void read(const std::string& line, SequenceInput& sequence, bool encode_all) const;

    JsonlOptions options_;
    std::string name_; ///< the file's name in titles and messages
    const Tokenizer& tokenizer_;
    std::int64_t vocab_size_;
    std::unique_ptr<LineReader> lines_;
    std::int64_t found_ = 0;
    std::int64_t taken_tokens_ = 0; ///< tokens of the encoded texts
    std::int64_t skipped_ = 0;
    std::string first_skipped_;
};

} // namespace ponderscope
