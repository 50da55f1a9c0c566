// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/text/byte_level.h"

#include "core/base/utf8.h"

#include <array>
#include <cstdint>

namespace ponderscope {

namespace {

constexpr bool prints(unsigned byte) {
    return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Alphabet {
    std::array<char16_t, 256> character{};
    std::array<std::int16_t, 0x144> byte{};
};

constexpr Alphabet make_alphabet() {
    Alphabet a;
    for (auto& b : a.byte) {
        b = -1;
    }
    unsigned next = 0x100;
    for (unsigned b = 0; b < 256; ++b) {
        const unsigned c = prints(b) ? b : next++;
        a.character[b] = static_cast<char16_t>(c);
        a.byte[c] = static_cast<std::int16_t>(b);
    }
    return a;
}

constexpr Alphabet alphabet = make_alphabet();

} // namespace

std::string to_byte_level(std::string_view bytes) {
    std::string text;
    text.reserve(bytes.size() * 2);
    for (const char b : bytes) {
        append_utf8(text, alphabet.character[static_cast<std::uint8_t>(b)]);
    }
    return text;
}

std::optional<std::string> from_byte_level(std::string_view text) {
    std::string bytes;
    bytes.reserve(text.size());
    for (std::size_t i = 0; i < text.size();) {
        const Utf8Character c = utf8_at(text, i);
        if (c.code >= alphabet.byte.size() || alphabet.byte[c.code] < 0) {
            return std::nullopt;
        }
        bytes.push_back(static_cast<char>(alphabet.byte[c.code]));
        i += c.bytes;
    }
    return bytes;
}

} // namespace ponderscope
