// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/text/normalized_text.h"

#include <cstdint>
#include <string>

namespace ponderscope::characters {

/// Classes of characters as Hugging Face tokenizers define them, by the tables of utf8proc. Every code point
/// is a valid argument.

bool is_white_space(char32_t c); ///< the Unicode property White_Space
bool is_word(char32_t c);        ///< letters, marks, decimal digits, connectors: matched by \w
bool is_mark(char32_t c);        ///< general categories M*

/// Appends the full lower-case form (one character; two for U+0130).
void append_lower_case(std::string& out, char32_t c);

/// Normalisation forms of Unicode Standard Annex 15.
enum class Form : std::uint8_t { nfc, nfd, nfkc, nfkd };
/// Edits only the characters that the form changes, with the characters that combine with them.
void normalize(NormalizedText& normalized, Form form);

} // namespace ponderscope::characters
