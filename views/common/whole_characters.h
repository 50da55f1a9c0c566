// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/records.h"

#include <QString>

#include <cstddef>
#include <string_view>

namespace ponderscope {

/// A span of UTF-8 moved to the borders of characters: byte-level tokens begin and end inside of them.
struct CharacterSpan {
    /// The characters that begin inside the span, the last one to its end; empty inside a single one.
    std::string_view bytes;
    std::size_t before = 0; ///< bytes of the span that belong to a character begun in front of it
    std::size_t after = 0;  ///< bytes of the last character behind the span
};

/// \p begin <= \p end <= text.size(). Bytes that are no UTF-8 are characters of their own.
CharacterSpan whole_characters(std::string_view text, std::size_t begin, std::size_t end);

/// The characters that begin in token \p row; the end of one that the token before it began is that token's,
/// where it is shown, too (\p follows), and its text lies next to this one's. Empty where token_bytes() is.
CharacterSpan characters_of(const TokenColumns& tokens, std::string_view text, std::size_t row, bool follows);

/// A token as visible_token() shows it, and of which characters it is a part: "‹BC› of 今". Empty where
/// token_bytes() is.
QString visible_token_of(const TokenColumns& tokens, std::string_view text, std::size_t row, int limit = 40);

} // namespace ponderscope
