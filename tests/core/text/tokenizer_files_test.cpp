// SPDX-License-Identifier: GPL-3.0-or-later
// Tokenizer files of all sorts: what each option does, and what is refused with which sentence.
#include "core/base/error.h"
#include "core/text/tokenizer.h"
#include "tests/support/errors.h"
#include "tests/support/test_data.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <cstdio>
#include <fstream>

namespace ponderscope {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Ids = std::vector<std::int32_t>;
using Offsets = std::vector<std::uint64_t>;

void write_text(const fs::path& file, const std::string& text) {
    std::ofstream(file, std::ios::binary) << text;
}

// A tokenizer that knows a few letters, with what a test wants to change.
json small() {
    return json::parse(R"({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
        "normalizer": null, "pre_tokenizer": null, "post_processor": null, "decoder": null,
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
                  "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
                  "vocab": {"a": 0, "b": 1, "c": 2, "ab": 3, "abc": 4, " ": 5, "1": 6, "2": 7, ".": 8, "▁": 9, "▁a": 10, "▁ab": 11,
                            "?": 12, "é": 13},
                  "merges": ["a b", ["ab", "c"], "▁ a", "▁ ab"]}})");
}

Tokenizer load(const json& j) {
    testing::TemporaryFolder folder;
    write_text(folder / "tokenizer.json", j.dump());
    return Tokenizer::load(folder / "tokenizer.json");
}

// The sentence with which a file is refused; empty when it is not.
std::string refusal(const json& j) {
    const std::string sentence = testing::error_of([&] { load(j); });
    EXPECT_EQ(sentence.find('\n'), std::string::npos) << sentence;
    return sentence;
}

TEST(TokenizerFile, MergesAsStringsAndPairs) {
    const Tokenizer t = load(small());
    EXPECT_EQ(t.encode("abcab").ids, (Ids{4, 3}));
    EXPECT_EQ(t.encode("cba").ids, (Ids{2, 1, 0}));
    EXPECT_EQ(t.size(), 14);
    EXPECT_EQ(t.id_of("abc"), 4);
    EXPECT_EQ(t.decode(Ids{4, 3}), "abc ab"); // without a decoder the original joins with spaces
    EXPECT_EQ(t.token_bytes(4), "abc");
}

TEST(TokenizerFile, UnknownCharacters) {
    json j = small();
    EXPECT_EQ(load(j).encode("axxb").ids, (Ids{3})); // nothing stands for x: it is left out before merging
    EXPECT_EQ(load(j).encode("axxb").end, (Offsets{4}));
    j["model"]["unk_token"] = "?";
    EXPECT_EQ(load(j).encode("axxb").ids, (Ids{0, 12, 12, 1}));
    j["model"]["fuse_unk"] = true;
    const Encoding fused = load(j).encode("axxb");
    EXPECT_EQ(fused.ids, (Ids{0, 12, 1}));
    EXPECT_EQ(fused.begin, (Offsets{0, 1, 3}));
    const std::string unknown(100, 'x'); // long words go another way
    EXPECT_EQ(load(j).encode("ab" + unknown + "ab").ids, (Ids{3, 12, 3}));
    j["model"]["fuse_unk"] = false;
    EXPECT_EQ(load(j).encode("ab" + unknown + "ab").ids.size(), 102u);
    j["model"]["unk_token"] = nullptr;
    EXPECT_EQ(load(j).encode("a" + unknown + "b").ids, (Ids{3}));
    j["model"]["unk_token"] = "<missing>";
    EXPECT_NE(refusal(j).find("\"<missing>\""), std::string::npos);
}

TEST(TokenizerFile, ByteFallback) {
    json j = small();
    j["model"]["byte_fallback"] = true;
    j["model"]["unk_token"] = "?";
    j["model"]["vocab"]["<0xC3>"] = 20;
    EXPECT_EQ(load(j).encode("aöb").ids, (Ids{0, 12, 1})); // only one of its two bytes has a token
    j["model"]["vocab"]["<0xB6>"] = 21;
    j["decoder"] = {{"type", "ByteFallback"}};
    const Tokenizer t = load(j);
    const Encoding e = t.encode("aöb");
    EXPECT_EQ(e.ids, (Ids{0, 20, 21, 1}));
    EXPECT_EQ(e.begin, (Offsets{0, 1, 2, 3}));
    EXPECT_EQ(t.decode(e.ids), "aöb");
    EXPECT_EQ(t.token_bytes(20), "\xC3");
    EXPECT_FALSE(t.id_of("").has_value());
    // The original puts an unknown character behind the bytes that follow it; spans stay in order, also
    // through a normaliser that moves them.
    j["normalizer"] = {{"type", "Replace"}, {"pattern", {{"String", "cc"}}}, {"content", "x"}};
    for (const bool fuse : {false, true}) {
        j["model"]["fuse_unk"] = fuse;
        const Encoding late = load(j).encode("ccöb");
        EXPECT_EQ(late.ids, (Ids{20, 21, 12, 1}));
        EXPECT_EQ(late.begin, (Offsets{0, 0, 0, 4}));
        EXPECT_EQ(late.end, (Offsets{0, 0, 4, 5}));
    }
}

TEST(TokenizerFile, IgnoreMerges) {
    json j = small();
    j["model"]["vocab"]["cab"] = 20;
    EXPECT_EQ(load(j).encode("cab").ids, (Ids{2, 3}));
    j["model"]["ignore_merges"] = true;
    EXPECT_EQ(load(j).encode("cab").ids, (Ids{20}));
    std::string word;
    for (int i = 0; i < 40; ++i) {
        word += "cab";
    }
    EXPECT_EQ(load(j).encode(word).ids.size(), 41u);
    j["model"]["vocab"][word] = 21;
    EXPECT_EQ(load(j).encode(word).ids, (Ids{21}));
    const Tokenizer t = load(j);
    EXPECT_EQ(t.encode(word + "c").ids.size(), 41u); // its parts are no words, before and after one was met
    EXPECT_EQ(t.encode("cab").ids, (Ids{20}));
    EXPECT_EQ(t.encode(word + "c").ids.size(), 41u);
}

TEST(TokenizerFile, AddedTokens) {
    json j = small();
    const auto added = [](int id, const char* content) {
        return json{{"id", id},        {"content", content}, {"special", false},    {"normalized", false},
                    {"lstrip", false}, {"rstrip", false},    {"single_word", false}};
    };
    j["added_tokens"] = {added(14, "<x>"), added(15, "<x><y>")};
    EXPECT_EQ(load(j).encode("a<x>b<x><y>").ids, (Ids{0, 14, 1, 15})); // the longest
    EXPECT_EQ(load(j).size(), 16);
    EXPECT_EQ(load(j).id_of("<x>"), 14);

    j["added_tokens"][0]["lstrip"] = true;
    Encoding e = load(j).encode("a  <x> b");
    EXPECT_EQ(e.ids, (Ids{0, 14, 5, 1}));
    EXPECT_EQ(e.begin[1], 1u);
    j["added_tokens"][0]["rstrip"] = true;
    EXPECT_EQ(load(j).encode("a  <x> \u00A0 b").ids, (Ids{0, 14, 1}));
    EXPECT_EQ(load(j).encode("<x>  <x>").ids, (Ids{14, 14}));

    j = small();
    j["added_tokens"] = {added(14, "a")};
    j["added_tokens"][0]["single_word"] = true;
    j["added_tokens"][0]["id"] = 0;
    EXPECT_EQ(load(j).encode("ab a").ids, (Ids{3, 5, 0}));

    // A normalised token is found in the normalised text, in its normalised form.
    j = small();
    j["normalizer"] = {{"type", "Lowercase"}};
    j["added_tokens"] = {added(14, "Yes"), added(15, "No")};
    j["added_tokens"][0]["normalized"] = true;
    EXPECT_EQ(load(j).encode("aYESyesNoa").ids, (Ids{0, 14, 14, 15, 0}));
    EXPECT_EQ(load(j).encode("NO").ids, (Ids{}));

    // Ids are the library's, whatever the file says: the vocabulary's, or the next free one.
    j = small();
    const auto given = [&](std::initializer_list<json> tokens, const std::string& text) {
        j["added_tokens"] = tokens;
        return load(j).encode(text).ids;
    };
    EXPECT_EQ(given({added(120, "<x>")}, "a<x>b"), (Ids{0, 14, 1}));
    EXPECT_EQ(given({added(3, "<x>")}, "ab<x>b"), (Ids{3, 14, 1})) << "3 is ab's";
    EXPECT_EQ(given({added(14, "<x>"), added(14, "<y>")}, "<x><y>"), (Ids{14, 15}));
    EXPECT_EQ(given({added(14, "<x>"), added(15, "<x>"), added(17, "<y>")}, "<x><y>"), (Ids{14, 15}));
    EXPECT_EQ(given({added(20, "ab"), added(21, "<x>")}, "ab<x>"), (Ids{3, 14}));
    EXPECT_EQ(load(j).notices().size(), 2U);
    j["added_tokens"] = {added(14, "<x>"), added(15, "<y>")};
    EXPECT_TRUE(load(j).notices().empty());
    j["model"]["vocab"]["k"] = 20; // a vocabulary with holes: its tokens count, not its largest id
    EXPECT_EQ(given({added(50, "<x>")}, "k<x>"), (Ids{20, 15}));
    j = small();
    j["added_tokens"] = {added(-1, "x")};
    EXPECT_NE(refusal(j), "");
    j["added_tokens"] = {added(1 << 30, "x")};
    EXPECT_NE(refusal(j), "");
    j["added_tokens"] = "x";
    EXPECT_NE(refusal(j), "");
}

/// The ids of a text under a part of the file that a test wants to change.
struct Encoded {
    const char* part;
    const char* text;
    Ids ids;
};

TEST(TokenizerFile, Normalizers) {
    const auto with = [](const char* normalizer) {
        json j = small();
        j["model"]["vocab"]["x"] = 30;
        j["normalizer"] = json::parse(normalizer);
        return load(j);
    };
    constexpr const char* strip = R"({"type": "Strip", "strip_left": true, "strip_right": true})";
    const Encoded cases[] = {
        {R"({"type": "NFC"})", "e\u0301", {13}},
        {R"({"type": "NFKC"})", "\u00B2\u2460", {7, 6}},
        {R"({"type": "NFD"})", "\u00E0b", {3}}, // the accent has no token
        {R"({"type": "NFKD"})", "\uFB01\u00AA", {0}},
        {R"({"type": "Lowercase"})", "ABC\u00C9", {4, 13}},
        {R"({"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}]})",
         "\u00E0\u0323",
         {0}},
        {R"({"type": "Strip", "strip_left": false, "strip_right": true})", " a ", {5, 0}},
        {strip, "  ", {}},
        {R"({"type": "Replace", "pattern": {"String": "xx"}, "content": "a"})", "xxxb", {0, 30, 1}},
        {R"({"type": "Replace", "pattern": {"Regex": "x+"}, "content": "a"})", "xxxb", {3}},
        {R"({"type": "Prepend", "prepend": "▁"})", "", {}}};
    for (const auto& [normalizer, text, ids] : cases) {
        EXPECT_EQ(with(normalizer).encode(text).ids, ids) << normalizer;
    }
    EXPECT_EQ(with(R"({"type": "NFC"})").encode("ae\u0301b").end, (Offsets{1, 4, 5}));
    const Encoding stripped = with(strip).encode(" \t a b \n");
    EXPECT_EQ(stripped.ids, (Ids{0, 5, 1}));
    EXPECT_EQ(stripped.begin.front(), 0u);
    EXPECT_EQ(stripped.end.back(), 8u);
    const Encoding prepended = with(R"({"type": "Sequence", "normalizers": [
        {"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]})")
                                   .encode("ab ab b");
    EXPECT_EQ(prepended.ids, (Ids{11, 11, 9, 1}));
    EXPECT_EQ(prepended.begin, (Offsets{0, 2, 5, 6}));
    EXPECT_EQ(prepended.end, (Offsets{2, 5, 6, 7}));

    json j = small();
    for (const char* type : {"BertNormalizer", "Nmt", "nonsense"}) {
        j["normalizer"] = {{"type", type}};
        EXPECT_NE(refusal(j).find(type), std::string::npos);
    }
}

TEST(TokenizerFile, PreTokenizers) {
    const auto with = [](const char* pre_tokenizer) {
        json j = small();
        j["pre_tokenizer"] = json::parse(pre_tokenizer);
        return load(j);
    };
    const auto split = [](const char* behavior, bool invert = false) {
        json j = small();
        j["pre_tokenizer"] = json::parse(R"({"type": "Split", "pattern": {"String": "b"}})");
        j["pre_tokenizer"].update({{"behavior", behavior}, {"invert", invert}});
        return load(j);
    };
    EXPECT_EQ(split("Isolated").encode("abcab").ids, (Ids{0, 1, 2, 0, 1}));
    EXPECT_EQ(split("Removed").encode("abcab").ids, (Ids{0, 2, 0}));
    EXPECT_EQ(split("Removed", true).encode("abcab").ids, (Ids{1, 1}));
    EXPECT_EQ(split("MergedWithPrevious").encode("abcab").ids, (Ids{3, 2, 3}));
    EXPECT_EQ(split("MergedWithNext").encode("abcab").ids, (Ids{0, 1, 2, 0, 1}));
    EXPECT_EQ(split("Contiguous").encode("abb").ids, (Ids{0, 1, 1}));
    const Encoded cases[] = {
        {R"({"type": "Digits", "individual_digits": true})", "ab12ab", {3, 6, 7, 3}},
        {R"({"type": "Whitespace"})", "ab  ab.", {3, 3, 8}},
        {R"({"type": "WhitespaceSplit"})", "ab\u3000ab.", {3, 3, 8}},
        {R"({"type": "Punctuation", "behavior": "Removed"})", "ab.ab", {3, 3}},
        {R"({"type": "BertPreTokenizer"})", "ab .ab", {3, 8, 3}},
        {R"({"type": "CharDelimiterSplit", "delimiter": "1"})", "a1b", {0, 1}},
        {R"({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"})", "ab ab", {11, 11}},
        {R"({"type": "Metaspace", "replacement": "▁", "add_prefix_space": false})", "ab ab", {3, 11}}};
    for (const auto& [pre_tokenizer, text, ids] : cases) {
        EXPECT_EQ(with(pre_tokenizer).encode(text).ids, ids) << pre_tokenizer;
    }
    EXPECT_EQ(with(R"({"type": "Whitespace"})").encode("ab  ab.").begin, (Offsets{0, 4, 6}));
    EXPECT_EQ(
        with(R"({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never"})").encode("ab ab").end,
        (Offsets{2, 5}));
    // After ByteLevel, patterns see the alphabet: the second byte of é is a sign there, ©.
    json j = small();
    j["pre_tokenizer"] = json::parse(R"({"type": "Sequence", "pretokenizers": [
        {"type": "ByteLevel", "add_prefix_space": true, "use_regex": false},
        {"type": "Split", "pattern": {"String": "Ã"}, "behavior": "Removed", "invert": false}]})");
    j["model"]["vocab"]["Ġ"] = 20;
    j["model"]["vocab"]["©"] = 21;
    j["model"]["vocab"]["Ã"] = 22;
    const Encoding e = load(j).encode("aéb");
    EXPECT_EQ(e.ids, (Ids{20, 0, 21, 1}));
    EXPECT_EQ(e.begin, (Offsets{0, 0, 2, 3}));

    j = small();
    for (const char* type : {"UnicodeScripts", "nonsense"}) {
        j["pre_tokenizer"] = {{"type", type}};
        EXPECT_NE(refusal(j).find(type), std::string::npos);
    }
    j["pre_tokenizer"] =
        json::parse(R"({"type": "Split", "pattern": {"Regex": "(a"}, "behavior": "Isolated"})");
    EXPECT_NE(refusal(j).find("\"(a\""), std::string::npos);
    j["pre_tokenizer"] = json::parse(R"({"type": "Split", "pattern": {"Regex": "a"}, "behavior": "Wild"})");
    EXPECT_NE(refusal(j).find("\"Wild\""), std::string::npos);
}

TEST(TokenizerFile, PatternWithoutEndIsGivenUp) {
    json j = small();
    j["pre_tokenizer"] =
        json::parse(R"({"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated"})");
    const Tokenizer t = load(j);
    EXPECT_EQ(t.encode("aa").ids, (Ids{0, 0}));
    const std::string refusal = testing::error_of([&] { (void)t.encode(std::string(60, 'a') + "b"); });
    EXPECT_NE(refusal.find("(a+)+$"), std::string::npos) << refusal;
    EXPECT_EQ(t.encode("aa").ids, (Ids{0, 0}));
}

json unigram() {
    return json::parse(R"({
        "added_tokens": [], "normalizer": null, "pre_tokenizer": null, "post_processor": null,
        "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"},
        "model": {"type": "Unigram", "unk_id": 0, "byte_fallback": false,
                  "vocab": [["<unk>", 0.0], ["a", -1.0], ["b", -1.0], ["ab", -1.5], ["abab", -4.0], ["ba", -0.25],
                            ["c", -9.0]]}})");
}

TEST(TokenizerFile, UnigramTakesTheBestSum) { // values: tokenizers 0.23.3
    json j = unigram();
    EXPECT_EQ(load(j).encode("ab").ids, (Ids{3}));
    EXPECT_EQ(load(j).encode("abab").ids, (Ids{1, 5, 2})) << "a, ba, b: -2.25";
    EXPECT_EQ(load(j).encode("abc").ids, (Ids{3, 6}));
    const Encoding unknown = load(j).encode("axéb");
    EXPECT_EQ(unknown.ids, (Ids{1, 0, 2})) << "unknown characters are one token";
    EXPECT_EQ(unknown.begin, (Offsets{0, 1, 4}));
    EXPECT_EQ(unknown.end, (Offsets{1, 4, 5}));
    EXPECT_EQ(load(j).encode("x").ids, (Ids{0}));
    EXPECT_EQ(load(j).encode("").ids, (Ids{}));
    j["model"]["byte_fallback"] = true;
    EXPECT_EQ(load(j).encode("axb").ids, (Ids{1, 0, 2})) << "there are no tokens of bytes";
    for (int byte = 0; byte < 256; ++byte) {
        char name[8];
        std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned>(byte));
        j["model"]["vocab"].push_back({name, -30.0});
    }
    const Encoding bytes = load(j).encode("aéb");
    EXPECT_EQ(bytes.ids, (Ids{1, 7 + 0xC3, 7 + 0xA9, 2}));
    EXPECT_EQ(bytes.begin, (Offsets{0, 1, 2, 3}));
    j["model"]["unk_id"] = nullptr;
    EXPECT_EQ(load(j).encode("aéb").ids, (Ids{1, 7 + 0xC3, 7 + 0xA9, 2}));
    j["model"]["byte_fallback"] = false;
    EXPECT_THROW((void)load(j).encode("aéb"), InputError);
    EXPECT_EQ(load(j).encode("ab").ids, (Ids{3}));
    j["model"]["unk_id"] = 1000;
    EXPECT_NE(refusal(j), "");
    j["model"]["unk_id"] = 0;
    for (const json& wrong : {json(3), json::array({"a"}), json::array({"a", "b"}), json::array({1, -1.0})}) {
        j["model"]["vocab"][3] = wrong;
        EXPECT_NE(refusal(j), "") << wrong;
    }
    j = unigram();
    j["pre_tokenizer"] = {{"type", "ByteLevel"}};
    EXPECT_NE(refusal(j), "");
    j = unigram();
    j["normalizer"] = {{"type", "Precompiled"}, {"precompiled_charsmap", "AAAA"}};
    EXPECT_NE(refusal(j), "");
}

TEST(TokenizerFile, UnigramOfT5) { // values: tokenizers 0.23.3
    PONDERSCOPE_REQUIRE_TEST_DATA("external/tokenizers/unsupported_t5_unigram");
    const Tokenizer t =
        Tokenizer::load_folder(testing::test_data() / "external/tokenizers/unsupported_t5_unigram");
    EXPECT_EQ(t.encode("Hello world").ids, (Ids{8774, 296, 1}));
    EXPECT_EQ(t.encode("  The ﬁrst Ⅳ naïve café").ids, (Ids{37, 166, 10869, 3, 29, 9, 2, 162, 11949, 1}));
    EXPECT_EQ(t.encode("漢字 x").ids, (Ids{3, 2, 3, 226, 1}));
    EXPECT_EQ(t.encode("a\u0300b ½").ids, (Ids{3, 85, 115, 209, 2, 357, 1}));
    EXPECT_EQ(t.decode(Ids{8774, 296}), "Hello world");
}

TEST(TokenizerFile, PostProcessors) {
    json j = small();
    j["added_tokens"] = json::parse(R"([{"id": 14, "content": "<s>", "special": true, "normalized": false},
                                        {"id": 15, "content": "</s>", "special": true, "normalized": false}])");
    j["post_processor"] = json::parse(R"({"type": "Sequence", "processors": [{"type": "ByteLevel"},
        {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
         {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}], "pair": [],
         "special_tokens": {"<s>": {"id": "<s>", "ids": [14], "tokens": ["<s>"]},
                            "</s>": {"id": "</s>", "ids": [15], "tokens": ["</s>"]}}}]})");
    const Tokenizer t = load(j);
    const Encoding e = t.encode("ab");
    EXPECT_EQ(e.ids, (Ids{14, 3, 15}));
    EXPECT_EQ(e.begin, (Offsets{0, 0, 2}));
    EXPECT_EQ(e.end, (Offsets{0, 2, 2}));
    EXPECT_EQ(t.encode("ab", false).ids, (Ids{3}));
    EXPECT_EQ(t.encode("").ids, (Ids{14, 15}));
    EXPECT_TRUE(t.adds_start_token());
    EXPECT_EQ(t.decode(e.ids, true), "ab");

    json bert = j;
    bert["post_processor"] =
        json::parse(R"({"type": "RobertaProcessing", "sep": ["</s>", 15], "cls": ["<s>", 14]})");
    EXPECT_EQ(load(bert).encode("ab").ids, (Ids{14, 3, 15}));
    json bad = j;
    bad["post_processor"]["processors"][1]["special_tokens"]["<s>"]["ids"] = {99};
    EXPECT_NE(refusal(bad).find("id 99"), std::string::npos);
    bad["post_processor"]["processors"][1]["special_tokens"].erase("<s>");
    EXPECT_NE(refusal(bad), "");
    bad = j;
    bad["post_processor"]["processors"][1]["single"].erase(1);
    EXPECT_NE(refusal(bad).find("single\""), std::string::npos);
    bad["post_processor"] = {{"type", "Other"}};
    EXPECT_NE(refusal(bad).find("\"Other\""), std::string::npos);
}

TEST(TokenizerFile, Decoders) {
    const auto with = [](const char* decoder) {
        json j = small();
        j["decoder"] = json::parse(decoder);
        return load(j);
    };
    const struct {
        const char* decoder;
        Ids ids;
        const char* text;
    } cases[] = {
        {R"({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"})", {10, 11}, "a ab"},
        {R"({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never"})", {10, 11}, " a ab"},
        {R"({"type": "Fuse"})", {0, 1}, "ab"},
        {R"({"type": "Sequence", "decoders": [{"type": "Fuse"}, {"type": "Strip", "content": "a", "start": 1, "stop": 1}]})",
         {0, 0, 1, 0, 0},
         "aba"},
        {R"({"type": "BPEDecoder", "suffix": "b"})", {3, 3}, "a a"}};
    for (const auto& [decoder, ids, text] : cases) {
        EXPECT_EQ(with(decoder).decode(ids), text) << decoder;
    }
    EXPECT_EQ(with(R"({"type": "Metaspace", "replacement": "▁"})").token_bytes(10), " a");
    json j = small();
    for (const char* type : {"WordPiece", "CTC", "nonsense"}) {
        j["decoder"] = {{"type", type}};
        EXPECT_NE(refusal(j).find(type), std::string::npos);
    }
}

TEST(TokenizerFile, DamagedModels) {
    const auto changed = [](const char* key, const json& value) {
        json j = small();
        j["model"][key] = value;
        return refusal(j);
    };
    EXPECT_NE(changed("type", "WordPiece").find("WordPiece"), std::string::npos);
    EXPECT_NE(changed("type", "Unigram").find("\"model.vocab\""), std::string::npos) << "a list with scores";
    EXPECT_NE(changed("type", "WordLevel").find("WordLevel"), std::string::npos);
    EXPECT_NE(changed("continuing_subword_prefix", "##").find("continuing_subword_prefix"),
              std::string::npos);
    EXPECT_NE(changed("end_of_word_suffix", "</w>").find("end_of_word_suffix"), std::string::npos);
    EXPECT_NE(changed("dropout", 0.1).find("dropout"), std::string::npos);
    EXPECT_NE(changed("merges", {"a z"}).find("\"z\""), std::string::npos);
    EXPECT_NE(changed("merges", {"b a"}).find("\"ba\""), std::string::npos);
    EXPECT_NE(changed("merges", {"a"}).find("merge 1"), std::string::npos);
    EXPECT_NE(changed("merges", {"a b c"}).find("merge 1"), std::string::npos);
    EXPECT_NE(changed("merges", json::parse(R"([["a", "b", "c"]])")), "");
    EXPECT_NE(changed("merges", json::parse(R"([["", "a"]])")), "");
    EXPECT_NE(changed("merges", nullptr), "");
    EXPECT_NE(changed("vocab", {{"a", 0}, {"b", 0}}).find(" 0 "), std::string::npos);
    EXPECT_NE(changed("vocab", {{"a", -1}}).find("-1 "), std::string::npos);
    EXPECT_NE(changed("vocab", {{"a", 1e9}}), "");
    EXPECT_NE(changed("vocab", {{"a", 1000000000}}), "");
    EXPECT_NE(changed("vocab", {{"a", ~std::uint64_t{0}}}), "");
    EXPECT_NE(changed("vocab", {{"a", "0"}}), "");
    EXPECT_NE(changed("vocab", json::object()), "");
    EXPECT_NE(changed("vocab", json::array()), "");
    EXPECT_NE(refusal(json::array()), "");
    EXPECT_NE(refusal(json::object()), "");
}

TEST(TokenizerFile, DamagedText) {
    testing::TemporaryFolder folder;
    const fs::path file = folder / "tokenizer.json";
    EXPECT_THROW(Tokenizer::load(file), InputError);
    EXPECT_THROW(Tokenizer::load_folder(folder.path()), InputError);
    EXPECT_THROW(Tokenizer::load_folder(folder / "absent"), InputError);
    const std::string whole = small().dump();
    for (std::size_t size = 0; size < whole.size(); size += 37) {
        write_text(file, whole.substr(0, size));
        EXPECT_THROW(Tokenizer::load(file), InputError) << size;
    }
    write_text(file, std::string(100'000, '['));
    EXPECT_THROW(Tokenizer::load(file), InputError);
    write_text(file, R"({"model": {"type": "BPE", "vocab": {"a": 0, "a": 1}, "merges": []}})");
    EXPECT_EQ(Tokenizer::load(file).id_of("a"), 1) << "as other readers of JSON: the last one counts";
    // Any single byte changed: a sentence or a tokenizer, never anything else.
    for (std::size_t i = 0; i < whole.size(); ++i) {
        for (const char c : {'\0', '"', '9', '\xFF'}) {
            std::string damaged = whole;
            damaged[i] = c;
            write_text(file, damaged);
            try {
                (void)Tokenizer::load(file).encode("ab ab1. \xC3\xA9");
            } catch (const InputError&) {
            }
        }
    }
    fs::remove(file);
    write_text(folder / "tokenizer.model", "x");
    const std::string refusal = testing::error_of([&] { Tokenizer::load_folder(folder.path()); });
    EXPECT_NE(refusal.find("SentencePiece"), std::string::npos);
}

// The odd and corrupt files of other projects, each with what is to become of it.
TEST(TokenizerFile, FilesOfOthers) {
    PONDERSCOPE_REQUIRE_TEST_DATA("external/tokenizers/edge_mlxd");
    const fs::path root = testing::test_data() / "external";
    const auto outcome = [&](const fs::path& folder) -> std::string {
        try {
            return "loads, " + std::to_string(Tokenizer::load_folder(root / folder).size()) + " ids";
        } catch (const InputError& error) {
            return error.what();
        }
    };
    struct Case {
        const char *folder, *expected;
    };
    for (const auto& [folder, expected] :
         {Case{"tokenizers/edge_mlxd/config_object", "loads, 12 ids"},
          Case{"tokenizers/edge_mlxd/config_unknown", "loads, 4 ids"},
          Case{"tokenizers/edge_mlxd/corrupt_json", "tokenizer.json"},
          Case{"tokenizers/edge_mlxd/legacy_bpe", "loads, 5 ids"},
          Case{"tokenizers/edge_mlxd/legacy_bpe_escape", "loads, 5 ids"},
          Case{"tokenizers/edge_mlxd/legacy_bpe_special", "loads, 6 ids"},
          Case{"tokenizers/small/tiny_bpe_tokenizer.json", "loads, 2003 ids"},
          Case{"tokenizers/small/tiktoken_small.model", "tiktoken_small.model"},
          Case{"tokenizers/unsupported_bert_wordpiece", "WordPiece"},
          Case{"tokenizers/unsupported_t5_unigram", "loads, 32100 ids"},
          Case{"checkpoints/fake_gpt2", "loads, 50257 ids"}, Case{"checkpoints/hf2q_tiny_model", "vocab"},
          Case{"checkpoints/tiny_gpt2", "loads, "}, Case{"checkpoints/tiny_llama3", "none of these files"}}) {
        EXPECT_NE(outcome(folder).find(expected), std::string::npos) << folder << ": " << outcome(folder);
    }
    const Tokenizer escape = Tokenizer::load_folder(root / "tokenizers/edge_mlxd/legacy_bpe_escape");
    EXPECT_EQ(escape.encode("\"!\\").ids, (Ids{4}));
    const Tokenizer special = Tokenizer::load_folder(root / "tokenizers/edge_mlxd/legacy_bpe_special");
    EXPECT_EQ(special.encode("ab<|endoftext|> a").ids, (Ids{2, 5, 3}));
}

} // namespace
} // namespace ponderscope
