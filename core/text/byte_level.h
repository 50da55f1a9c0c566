// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ponderscope {

/// GPT-2's printable alphabet for bytes: printable bytes map to themselves, the others to U+0100 and above,
/// in order. Byte-level tokenizers write their vocabularies in this alphabet ("Ġthe").
std::string to_byte_level(std::string_view bytes);
/// Converts \p text back to bytes. No value: a character is not in the alphabet.
std::optional<std::string> from_byte_level(std::string_view text);

} // namespace ponderscope
