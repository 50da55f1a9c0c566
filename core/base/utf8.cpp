// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/utf8.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utf8proc.h>

namespace ponderscope {
namespace {

constexpr char32_t replacement = 0xFFFD;

bool is_continuation(unsigned char byte) {
    return (byte & 0xC0U) == 0x80U;
}

bool is_invalid(Utf8Character character) {
    return character.code == replacement && character.bytes == 1;
}

/// The number of leading bytes that begin an incomplete character; at least one.
std::size_t cut_character(std::string_view bytes) {
    for (std::size_t length = std::min<std::size_t>(3, bytes.size()); length > 1; --length) {
        std::string whole(bytes.substr(0, length));
        while (whole.size() < 4) {
            whole += '\x80';
            if (is_valid_utf8(whole)) {
                return length;
            }
        }
    }
    return 1;
}

} // namespace

std::size_t first_invalid_utf8(std::string_view text) {
    constexpr std::uint64_t high_bits = 0x8080808080808080ULL;
    std::size_t offset = 0;
    while (offset < text.size()) {
        if (text.size() - offset >= sizeof(std::uint64_t)) {
            std::uint64_t word = 0;
            std::memcpy(&word, text.data() + offset, sizeof word);
            if ((word & high_bits) == 0) {
                offset += sizeof word;
                continue;
            }
        }
        const Utf8Character character = utf8_at(text, offset);
        if (is_invalid(character)) {
            return offset;
        }
        offset += character.bytes;
    }
    return std::string_view::npos;
}

Utf8Character utf8_at(std::string_view text, std::size_t offset) {
    const auto* const first = reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + offset;
    if (*first < 0x80U) {
        return {*first, 1};
    }
    utf8proc_int32_t code = 0;
    const utf8proc_ssize_t bytes =
        utf8proc_iterate(first, static_cast<utf8proc_ssize_t>(text.size() - offset), &code);
    return bytes > 0 ? Utf8Character{static_cast<char32_t>(code), static_cast<std::uint8_t>(bytes)}
                     : Utf8Character{replacement, 1};
}

void append_utf8(std::string& text, char32_t code) {
    const auto wanted = static_cast<utf8proc_int32_t>(code);
    std::array<utf8proc_uint8_t, 4> bytes{};
    const utf8proc_ssize_t size = utf8proc_encode_char(
        utf8proc_codepoint_valid(wanted) ? wanted : utf8proc_int32_t{replacement}, bytes.data());
    text.append(reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(size));
}

std::string valid_utf8(std::string_view bytes) {
    std::string text;
    for (;;) {
        const std::size_t invalid = first_invalid_utf8(bytes);
        text += bytes.substr(0, invalid);
        if (invalid == std::string_view::npos) {
            return text;
        }
        append_utf8(text, replacement);
        bytes.remove_prefix(invalid);
        bytes.remove_prefix(cut_character(bytes));
    }
}

std::size_t utf8_length(std::string_view text) {
    std::size_t count = 0;
    for (std::size_t offset = 0; offset < text.size(); ++count) {
        offset += utf8_at(text, offset).bytes;
    }
    return count;
}

std::size_t utf8_boundary_before(std::string_view text, std::size_t offset) {
    if (offset >= text.size()) {
        return text.size();
    }
    while (offset > 0 && is_continuation(static_cast<unsigned char>(text[offset]))) {
        --offset;
    }
    return offset;
}

bool is_unseen(char32_t code) {
    return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0xAD || code == 0x61C || code == 0x200B ||
           code == 0x200E || code == 0x200F || // not the joiners 0x200C and 0x200D
           (code >= 0x2028 && code <= 0x202E) || (code >= 0x2060 && code <= 0x206F) || code == 0xFEFF ||
           (code >= 0xFFF9 && code <= 0xFFFB) || (code >= 0xE0000 && code <= 0xE0FFF);
}

std::string printable(std::string_view text, std::size_t max_bytes) {
    std::string result;
    for (std::size_t offset = 0; offset < text.size();) {
        if (result.size() >= max_bytes) {
            return result + "…";
        }
        const Utf8Character character = utf8_at(text, offset);
        if (text[offset] == '\n') {
            result += "\\n";
        } else if (text[offset] == '\t') {
            result += "\\t";
        } else if (is_invalid(character) || is_unseen(character.code)) {
            for (std::size_t i = 0; i < character.bytes; ++i) {
                result += "\\x" + to_hex(text.substr(offset + i, 1));
            }
        } else {
            result.append(text.substr(offset, character.bytes));
        }
        offset += character.bytes;
    }
    return result;
}

std::string to_hex(std::string_view bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text;
    for (const char byte : bytes) {
        text += digits[static_cast<unsigned char>(byte) >> 4U];
        text += digits[static_cast<unsigned char>(byte) & 0xFU];
    }
    return text;
}

std::string visible(std::string_view text) {
    return printable(text, std::numeric_limits<std::size_t>::max());
}

} // namespace ponderscope
