// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/json.h"
#include "core/text/normalized_text.h"
#include "core/text/pattern.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ponderscope {

/// Bytes [begin, end) of a normalised text.
struct Piece {
    std::uint32_t begin = 0, end = 0;
};

/// The "pre_tokenizer" of a tokenizer.json: ByteLevel, Split, Digits, Punctuation, Metaspace, Whitespace,
/// WhitespaceSplit, CharDelimiterSplit, BertPreTokenizer and sequences of them. InputError names any other
/// type. ByteLevel does not change the text, because TokenTexts has bytes, not letters of the byte-level
/// alphabet (byte_level.h). But patterns after ByteLevel in a sequence are matched against these letters.
class PreTokenizer {
public:
    PreTokenizer() = default;                                         ///< leaves the text in one piece
    static PreTokenizer parse(const std::optional<JsonObject>& json); ///< InputError
    [[nodiscard]] bool is_byte_level() const { return byte_level_; }

    /// The pieces of \p text, in order, without empty pieces. Some steps change the text. \p at_text_begin:
    /// \p text is the beginning of the whole text.
    std::vector<Piece> split(NormalizedText& text, bool at_text_begin) const;

private:
    enum class Kind : std::uint8_t { pattern, metaspace, prefix_space };
    enum class Behavior : std::uint8_t {
        removed,
        isolated,
        merged_with_previous,
        merged_with_next,
        contiguous
    };
    enum class Prepend : std::uint8_t { always, first, never };
    struct Step {
        Kind kind = Kind::pattern;
        Behavior behavior = Behavior::isolated;
        bool invert = false;
        bool on_alphabet = false;       // the pattern matches byte-level letters
        std::optional<Pattern> pattern; // Kind::pattern
        std::string replacement;        // Kind::metaspace
        Prepend prepend = Prepend::always;
    };

    static void split_piece(const Step& step, std::string_view text, Piece piece, std::vector<Piece>& out);
    void add(const JsonObject& object, const std::string& type);
    void add_pattern(Pattern pattern, Behavior behavior, bool invert = false);

    std::vector<Step> steps_;
    bool byte_level_ = false;
};

} // namespace ponderscope
