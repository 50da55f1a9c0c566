// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ponderscope {

/// Offset of the first byte at which \p text stops being valid UTF-8 (RFC 3629: no overlong forms, no
/// surrogates, no code above U+10FFFF). std::string_view::npos: all of \p text is valid.
std::size_t first_invalid_utf8(std::string_view text);

inline bool is_valid_utf8(std::string_view text) {
    return first_invalid_utf8(text) == std::string_view::npos;
}

/// One character of a text: its code point and the number of bytes it takes.
struct Utf8Character {
    char32_t code = 0;
    std::uint8_t bytes = 0;
};

/// The character that starts at \p offset, which must lie inside \p text. For invalid UTF-8 the result is
/// U+FFFD with a length of one byte. So a loop always advances and visits every byte once.
Utf8Character utf8_at(std::string_view text, std::size_t offset);

/// Appends the UTF-8 form of \p code; surrogates and values above U+10FFFF become U+FFFD.
void append_utf8(std::string& text, char32_t code);

/// Replaces each maximal invalid subpart by U+FFFD (Unicode, 3.9), as Python does.
std::string valid_utf8(std::string_view bytes);

/// Number of characters; an invalid byte counts as one.
std::size_t utf8_length(std::string_view text);

/// The largest offset <= \p offset that is not inside a character of valid \p text.
std::size_t utf8_boundary_before(std::string_view text, std::size_t offset);

/// Whether the character is invisible or moves other characters: control characters, direction marks, spaces
/// without width. False for joiners, which some scripts need as letters.
bool is_unseen(char32_t code);

/// \p text for messages, cut after about \p max_bytes bytes. Invisible characters and invalid bytes are shown
/// as escapes.
std::string printable(std::string_view text, std::size_t max_bytes = 60);
/// Like printable(), but without a cut, for names from untrusted files on a terminal.
std::string visible(std::string_view text);

/// Lower-case hexadecimal, two digits a byte.
std::string to_hex(std::string_view bytes);

} // namespace ponderscope
