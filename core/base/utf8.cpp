// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/utf8.h"

#include <algorithm>
#include <limits>

#include <cstring>

namespace ponderscope {
namespace {

constexpr char32_t replacement = 0xFFFD;

bool is_continuation(unsigned char byte) {
    return (byte & 0xC0U) == 0x80U;
}

/// Bytes of the valid character at the front of \p text, 0 when there is none. The second byte's range is
/// what excludes overlong forms, surrogates and values above U+10FFFF (Unicode, table 3-7).
std::size_t sequence_length(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char lead = byte(0);
    if (lead < 0x80U) {
        return 1;
    }
    std::size_t length = 0;
    unsigned char low = 0x80U;
    unsigned char high = 0xBFU;
    if (lead >= 0xC2U && lead <= 0xDFU) {
        length = 2;
    } else if (lead >= 0xE0U && lead <= 0xEFU) {
        length = 3;
        low = lead == 0xE0U ? 0xA0U : low;
        high = lead == 0xEDU ? 0x9FU : high;
    } else if (lead >= 0xF0U && lead <= 0xF4U) {
        length = 4;
        low = lead == 0xF0U ? 0x90U : low;
        high = lead == 0xF4U ? 0x8FU : high;
    } else {
        return 0;
    }
    if (text.size() < length || byte(1) < low || byte(1) > high) {
        return 0;
    }
    for (std::size_t i = 2; i < length; ++i) {
        if (!is_continuation(byte(i))) {
            return 0;
        }
    }
    return length;
}

/// How many bytes at the front begin a character that does not end; at least one.
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
        const std::size_t length = sequence_length(text.substr(offset));
        if (length == 0) {
            return offset;
        }
        offset += length;
    }
    return std::string_view::npos;
}

Utf8Character utf8_at(std::string_view text, std::size_t offset) {
    const std::string_view rest = text.substr(offset);
    const std::size_t length = sequence_length(rest);
    const auto bits = [&](std::size_t i, unsigned mask) {
        return static_cast<char32_t>(static_cast<unsigned char>(rest[i]) & mask);
    };
    switch (length) {
    case 1:
        return {bits(0, 0x7FU), 1};
    case 2:
        return {(bits(0, 0x1FU) << 6U) | bits(1, 0x3FU), 2};
    case 3:
        return {(bits(0, 0x0FU) << 12U) | (bits(1, 0x3FU) << 6U) | bits(2, 0x3FU), 3};
    case 4:
        return {(bits(0, 0x07U) << 18U) | (bits(1, 0x3FU) << 12U) | (bits(2, 0x3FU) << 6U) | bits(3, 0x3FU),
                4};
    default:
        return {replacement, 1};
    }
}

void append_utf8(std::string& text, char32_t code) {
    if ((code >= 0xD800 && code <= 0xDFFF) || code > 0x10FFFF) {
        code = replacement;
    }
    const auto put = [&](char32_t value) {
        text.push_back(static_cast<char>(static_cast<unsigned char>(value)));
    };
    if (code < 0x80) {
        put(code);
    } else if (code < 0x800) {
        put(0xC0U | (code >> 6U));
        put(0x80U | (code & 0x3FU));
    } else if (code < 0x10000) {
        put(0xE0U | (code >> 12U));
        put(0x80U | ((code >> 6U) & 0x3FU));
        put(0x80U | (code & 0x3FU));
    } else {
        put(0xF0U | (code >> 18U));
        put(0x80U | ((code >> 12U) & 0x3FU));
        put(0x80U | ((code >> 6U) & 0x3FU));
        put(0x80U | (code & 0x3FU));
    }
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
           code == 0x200E || code == 0x200F || // joiners are letters of some scripts
           (code >= 0x2028 && code <= 0x202E) || (code >= 0x2060 && code <= 0x206F) || code == 0xFEFF ||
           (code >= 0xE0000 && code <= 0xE0FFF);
}

std::string printable(std::string_view text, std::size_t max_bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string result;
    for (std::size_t offset = 0; offset < text.size();) {
        if (result.size() >= max_bytes) {
            return result + "…";
        }
        const Utf8Character character = utf8_at(text, offset);
        const auto byte = static_cast<unsigned char>(text[offset]);
        const bool invalid = character.bytes == 1 && byte >= 0x80U;
        if (text[offset] == '\n') {
            result += "\\n";
        } else if (text[offset] == '\t') {
            result += "\\t";
        } else if (invalid || is_unseen(character.code)) {
            for (std::size_t i = 0; i < character.bytes; ++i) {
                const auto raw = static_cast<unsigned char>(text[offset + i]);
                result += "\\x";
                result += digits[raw >> 4U];
                result += digits[raw & 0xFU];
            }
        } else {
            result.append(text.substr(offset, character.bytes));
        }
        offset += character.bytes;
    }
    return result;
}

std::string visible(std::string_view text) {
    return printable(text, std::numeric_limits<std::size_t>::max());
}

} // namespace ponderscope
