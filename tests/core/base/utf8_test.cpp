// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/utf8.h"

#include <gtest/gtest.h>

namespace ponderscope {
namespace {

constexpr std::size_t valid = std::string_view::npos;

TEST(Utf8, EveryCodePointRoundTrips) {
    for (char32_t code = 0; code <= 0x10FFFF; ++code) {
        if (code >= 0xD800 && code <= 0xDFFF) {
            continue;
        }
        std::string text;
        append_utf8(text, code);
        ASSERT_EQ(first_invalid_utf8(text), valid) << static_cast<std::uint32_t>(code);
        const Utf8Character character = utf8_at(text, 0);
        ASSERT_EQ(character.code, code);
        ASSERT_EQ(character.bytes, text.size());
    }
}

TEST(Utf8, SaysWhereItStopsBeingValid) {
    struct Case {
        std::string text;
        std::size_t offset;
    };
    const std::string ascii = "0123456789abcdefghij"; // longer than one step of the fast path
    const std::vector<Case> cases{
        {"", valid},
        {ascii, valid},
        {ascii + "\xC3\xA9", valid},
        {ascii + "\x80", 20},        // a continuation byte alone
        {ascii + "\xC3", 20},        // cut off
        {"\xE2\x82", 0},             // cut off
        {"\xC0\xAF", 0},             // overlong '/'
        {"\xC1\xBF", 0},             // overlong
        {"\xE0\x80\xAF", 0},         // overlong
        {"\xE0\x9F\xBF", 0},         // overlong
        {"\xF0\x80\x80\xAF", 0},     // overlong
        {"\xF0\x8F\xBF\xBF", 0},     // overlong
        {"\xED\xA0\x80", 0},         // surrogate
        {"\xED\xBF\xBF", 0},         // surrogate
        {"\xEE\x80\x80", valid},     // U+E000, just above them
        {"\xF4\x8F\xBF\xBF", valid}, // U+10FFFF
        {"\xF4\x90\x80\x80", 0},     // U+110000
        {"\xF5\x80\x80\x80", 0},
        {"\xFF\xFE", 0},
        {"a\xC3\xA9"
         "b\xC3(",
         4},
        {"\xF0\x9F\x98\x80\xF0\x9F\x98", 4},
    };
    for (const Case& c : cases) {
        EXPECT_EQ(first_invalid_utf8(c.text), c.offset) << printable(c.text);
        EXPECT_EQ(is_valid_utf8(c.text), c.offset == valid);
    }
}

TEST(Utf8, InvalidBytesAreSteppedOverOneByOne) {
    const std::string text = "a\xFF\xC3\xA9\xE2\x82";
    EXPECT_EQ(utf8_length(text), 5U);
    EXPECT_EQ(utf8_at(text, 1).code, U'\uFFFD');
    EXPECT_EQ(utf8_at(text, 1).bytes, 1);
    EXPECT_EQ(utf8_at(text, 2).code, U'\u00E9');
}

TEST(Utf8, ACutCharacterIsReplacedOnce) {
    EXPECT_EQ(valid_utf8("caf\xc3\xa9"), "caf\xc3\xa9");
    const std::string sign = "\xef\xbf\xbd";
    EXPECT_EQ(valid_utf8("a\xe2\x80"), "a" + sign);
    EXPECT_EQ(valid_utf8("\xf0\x9f\x98z\xff"), sign + "z" + sign);
    EXPECT_EQ(valid_utf8("\xed\xa0\x80"), sign + sign + sign) << "no part of a surrogate begins a character";
    EXPECT_EQ(valid_utf8(""), "");
}

TEST(Utf8, NoFormForSurrogates) {
    std::string text;
    append_utf8(text, 0xD800);
    append_utf8(text, 0x110000);
    EXPECT_EQ(text, "\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(Utf8, BoundaryBefore) {
    const std::string text = "a\xE2\x82\xAC"
                             "b";
    EXPECT_EQ(utf8_boundary_before(text, 0), 0U);
    EXPECT_EQ(utf8_boundary_before(text, 1), 1U);
    EXPECT_EQ(utf8_boundary_before(text, 2), 1U);
    EXPECT_EQ(utf8_boundary_before(text, 3), 1U);
    EXPECT_EQ(utf8_boundary_before(text, 4), 4U);
    EXPECT_EQ(utf8_boundary_before(text, 99), 5U);
}

TEST(Utf8, PrintableShowsWhatATerminalWouldObey) {
    EXPECT_EQ(printable("caf\xC3\xA9"), "caf\xC3\xA9");
    EXPECT_EQ(printable("a\nb\t\x1B[31m\x7F"), "a\\nb\\t\\x1b[31m\\x7f");
    EXPECT_EQ(printable("\xFF"), "\\xff");
    EXPECT_EQ(printable("\xC2\x9B"
                        "1m"),
              "\\xc2\\x9b1m")
        << "C1 control sequences too";
    EXPECT_EQ(printable("a\xE2\x80\xAE"
                        "b"),
              "a\\xe2\\x80\\xaeb");                       // a mark of direction
    EXPECT_EQ(printable("\xE2\x80\x8D"), "\xE2\x80\x8D"); // a joiner is a letter
    EXPECT_EQ(visible(std::string(100, 'x') + "\x1B"), std::string(100, 'x') + "\\x1b");
    EXPECT_EQ(printable(std::string(100, 'x'), 10), std::string(10, 'x') + "…");
}

} // namespace
} // namespace ponderscope
