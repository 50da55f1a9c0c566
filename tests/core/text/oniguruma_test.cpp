// SPDX-License-Identifier: GPL-3.0-or-later
// Patterns of tokenizer files as Oniguruma means them.
#include "core/base/error.h"
#include "core/base/utf8.h"
#include "core/text/pattern.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace ponderscope {
namespace {

namespace fs = std::filesystem;

TEST(Oniguruma, Translation) {
    const fs::path file = "tokenizer.json";
    EXPECT_EQ(translate_oniguruma(R"(\p{L}+| ?\d{1,3}(?!\S))", file).find("\\S"), std::string::npos);
    EXPECT_EQ(translate_oniguruma("a{,3}", file), "a{0,3}");
    EXPECT_EQ(translate_oniguruma("(?m:.)(?i)x(?:y)(?<!z)", file), "(?s:.)(?i:x(?:y)(?<!z))");
    EXPECT_EQ(translate_oniguruma(R"(\h[\h]\u00e9)", file), R"([0-9A-Fa-f][0-9A-Fa-f]\x{00e9})");
    EXPECT_EQ(translate_oniguruma("[]a][^]a]", file), R"([\]a][^\]a])");
    EXPECT_EQ(translate_oniguruma(R"(\p{Han}[^\P{Thai}\p{^Latin}]\p{Lu})", file),
              R"(\p{sc:Han}[^\P{sc:Thai}\P{sc:Latin}]\p{Lu})");
    const auto matches = [&](const std::string& expression, const std::string& text) {
        const Pattern pattern = Pattern::regex("^(?:" + expression + ")$", file);
        MatchState state;
        Pattern::Match match;
        return Pattern::Search(pattern, text, state).next(match);
    };
    EXPECT_TRUE(matches(R"(\p{Han}+)", "\u4e2d"));
    EXPECT_FALSE(matches(R"(\p{Han}+)", "\u3002")) << "a full stop of many scripts";
    EXPECT_TRUE(matches(R"(\w+)", "a\u00b2\u24d0"));
    EXPECT_TRUE(matches(R"([^\s\w]+)", "\u00b2")) << "in a set the numbers of Latin-1 are none of them";
    EXPECT_EQ(translate_oniguruma("[[:alpha:]x]", file), R"([\p{Alphabetic}x])");
    EXPECT_EQ(translate_oniguruma(R"([[:^alpha:]\P{Letter}]\p{^Uppercase_Letter})", file),
              R"([\P{Alphabetic}\P{L}]\P{Lu})");
    EXPECT_TRUE(matches("[[:alpha:]]{2}", "e\u0345")) << "a mark that is alphabetic";
    EXPECT_TRUE(matches("[[:punct:]]+", "$\u00d7!")) << "symbols are punctuation there";
    EXPECT_FALSE(matches(R"(\p{Punct}+)", "$"));
    EXPECT_FALSE(matches(R"(x\b.*)", "x\u0301")) << "a mark belongs to its word";
    EXPECT_TRUE(matches(R"(x\B\u0301\b-)", "x\u0301-"));
    for (const char* bad : {"(?i)[a&&b]", "[a-[z]]", "(*SKIP)a", "a\\Kb", "\\yb", "(?<n>a)\\g<n>"}) {
        EXPECT_THROW(translate_oniguruma(bad, file), InputError) << bad;
    }
    // U+180E is no white space since Unicode 6.3, whatever PCRE2's \s says.
    MatchState state;
    const Pattern space = Pattern::regex("\\s|[^\\S]", file);
    Pattern::Match match;
    EXPECT_FALSE(Pattern::Search(space, "\u180E", state).next(match));
    EXPECT_TRUE(Pattern::Search(space, "\u2028", state).next(match));
}

/// What a search finds in a text, with bars between.
std::string found(const std::string& expression, const std::string& text) {
    const Pattern pattern = Pattern::regex(expression, "tokenizer.json");
    MatchState state;
    Pattern::Search search(pattern, text, state);
    Pattern::Match match;
    std::string all;
    while (search.next(match)) {
        all += (all.empty() ? "" : "|") + text.substr(match.begin, match.end - match.begin);
    }
    return all;
}

TEST(Oniguruma, QuantifiersAreRubys) { // values: tokenizers 0.23.3
    EXPECT_EQ(found(R"(\p{N}{1,3}+)", "ab1234567"), "1234567");
    EXPECT_EQ(found(R"(\p{N}{2}+)", "12345"), "1234");
    EXPECT_EQ(found("(?:12|34){1,2}+", "1212341212x"), "1212341212");
    EXPECT_EQ(found("1[0-9]{2}?", "12a"), "1") << "two or none";
    EXPECT_EQ(found("a{1,2}?", "aa"), "a|a");
    EXPECT_EQ(found("a{3,1}a", "aaa"), "") << "{3,1} is {1,3}, possessive";
    EXPECT_EQ(found("a{2}{2}", "aaaaa"), "aaaa");
    EXPECT_EQ(found("a{,}|a{x}|{", "a{,}a{x}{"), "a{,}|a{x}|{");
    EXPECT_EQ(found("a++a|b", "aab"), "b");
    EXPECT_EQ(found("a(?#comment)+", "aab"), "aa");
    EXPECT_EQ(found("(?x) a b # comment\n +", "abbc"), "abb");
    EXPECT_EQ(found("a(?i)b|C", "aBc"), "aB") << "both alternatives are behind a";
}

TEST(Oniguruma, SetsInSets) {
    EXPECT_EQ(found("[a-c[x-z]]+", "abxq"), "abx");
    EXPECT_EQ(found("[[a-z]&&[^aeiou]]+", "hello"), "h|ll");
    EXPECT_EQ(found("[^[a-z]&&[^aeiou]]+", "heLLo"), "eLLo");
    EXPECT_EQ(found("[a-z&&[^b-d]&&[^x]]+", "abcxyz"), "a|yz");
    EXPECT_EQ(found(R"([^(\s|[;,!?·])]+)", "Hi, you(x)|z!"), "Hi|you|x|z");
    EXPECT_EQ(found(R"([\p{L}&&[^\p{Han}]]+|\p{Han}+)", "abc漢字def"), "abc|漢字|def");
    EXPECT_EQ(found("[a[^a-y]]+", "aZzb"), "aZz");
    EXPECT_EQ(found(R"([\W]+)", "a, b"), ", ");
    EXPECT_EQ(found(R"([^\W_]+)", "a_b"), "a|b");
    EXPECT_EQ(found("[[a]-z]+", "a-zb"), "a-z") << "a hyphen behind a set is itself";
    EXPECT_EQ(found("[a&&]", "a"), "");
}

TEST(Oniguruma, EscapesAndPlaces) {
    EXPECT_EQ(found(R"(\v+)", "\v\n"), "\v") << "the vertical tab alone";
    EXPECT_EQ(found(R"(\Q\O)", "aQ\nb"), "Q\n");
    EXPECT_EQ(found(R"(\A[0-9]{3}|\G[0-9]{3})", "123456a789"), "123|456") << "where the last match ended";
    EXPECT_EQ(found("(?>a+)b|c", "aabc"), "aab|c");
}

} // namespace
} // namespace ponderscope
