// SPDX-License-Identifier: GPL-3.0-or-later
// Patterns of tokenizer files as Oniguruma means them.
#include "core/base/error.h"
#include "core/text/pattern.h"

#include <gtest/gtest.h>

namespace ponderscope {
namespace {

/// What a search finds in a text, with bars between.
std::string found(const std::string& expression, const std::string& text) {
    const Pattern pattern = Pattern::regex(expression, "tokenizer.json");
    std::string all;
    pattern.each_match(text, [&](std::size_t begin, std::size_t end) {
        all += (all.empty() ? "" : "|") + text.substr(begin, end - begin);
    });
    return all;
}

TEST(Oniguruma, Classes) {
    EXPECT_EQ(found(R"(\p{Han}+)", "\u4e2d\u3002"), "\u4e2d") << "a full stop is of many scripts";
    EXPECT_EQ(found(R"(\w+)", "a\u00b2\u24d0"), "a\u00b2\u24d0");
    EXPECT_EQ(found(R"([^\s\w]+)", "\u00b2"), "\u00b2") << "in a set the numbers of Latin-1 are none of them";
    EXPECT_EQ(found("[[:alpha:]]{2}", "e\u0345"), "e\u0345") << "a mark that is alphabetic";
    EXPECT_EQ(found("[[:punct:]]+", "$\u00d7!"), "$\u00d7!") << "symbols are punctuation there";
    EXPECT_EQ(found(R"(\p{Punct}+)", "$"), "");
    EXPECT_EQ(found(R"(x\b)", "x\u0301"), "") << "a mark belongs to its word";
    EXPECT_EQ(found("\\s|[^\\S]", "\u180E\u2028"), "\u2028") << "no white space since Unicode 6.3";
    EXPECT_EQ(found(R"(\h[\h]\u00e9)", "a0\u00e9"), "a0\u00e9");
    EXPECT_EQ(found("(?i)[a&&[^b]]+", "aAb"), "aA");
    EXPECT_THROW((void)Pattern::regex("(?<n>a", "tokenizer.json"), InputError);
}

TEST(Oniguruma, QuantifiersAndSetsAreRubys) { // values: tokenizers 0.23.3
    EXPECT_EQ(found(R"(\p{N}{1,3}+)", "ab1234567"), "1234567");
    EXPECT_EQ(found("1[0-9]{2}?", "12a"), "1") << "two or none";
    EXPECT_EQ(found("a{3,1}a", "aaa"), "") << "{3,1} is {1,3}, possessive";
    EXPECT_EQ(found("a(?i)b|C", "aBc"), "aB") << "both alternatives are behind a";
    EXPECT_EQ(found("[^[a-z]&&[^aeiou]]+", "heLLo"), "eLLo");
    EXPECT_EQ(found(R"([^(\s|[;,!?·])]+)", "Hi, you(x)|z!"), "Hi|you|x|z");
    EXPECT_EQ(found("[[a]-z]+", "a-zb"), "a-z") << "a hyphen behind a set is itself";
}

TEST(Oniguruma, EscapesAndPlaces) {
    EXPECT_EQ(found(R"(\v+)", "\v\n"), "\v") << "the vertical tab alone";
    EXPECT_EQ(found(R"(\Q\O)", "aQ\nb"), "Q\n");
    EXPECT_EQ(found(R"(\A[0-9]{3}|\G[0-9]{3})", "123456a789"), "123|456") << "where the last match ended";
    EXPECT_EQ(found("(?>a+)b|c", "aabc"), "aab|c");
}

} // namespace
} // namespace ponderscope
