// SPDX-License-Identifier: GPL-3.0-or-later
// The digest of what a tokenizer does: the same for every way to write it, another one for every change.
#include "core/text/tokenizer.h"
#include "tests/support/test_data.h"

#include <nlohmann/json.hpp>

#include <fstream>
#include <gtest/gtest.h>

namespace ponderscope {
namespace {

using Json = nlohmann::json;

Json small_tokenizer() {
    return Json::parse(R"({
        "added_tokens": [{"id": 4, "content": "<end>", "special": true, "normalized": true, "lstrip": true}],
        "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}]},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": false},
            {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}]},
        "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "byte_fallback": false, "ignore_merges": true,
            "vocab": {"a": 0, "b": 1, "ab": 2, "é": 3}, "merges": ["a b"]}})");
}

std::string digest_of(const Json& tokenizer) {
    const testing::TemporaryFolder folder;
    std::ofstream(folder / "tokenizer.json") << tokenizer.dump(3);
    return Tokenizer::load_folder(folder.path()).content_digest();
}

TEST(TokenizerDigest, IsTheOneOfTheDefinition) {
    // SHA-256 of the bytes that app/python/ponderscope/tokenizer_digest.py describes, put together by hand.
    EXPECT_EQ(digest_of(small_tokenizer()),
              "4abb42b41fde4236e64df75594e3a808335122239a0bb6ceeddcd637dd21d9ea");
}

TEST(TokenizerDigest, IsOfTheContentAndNotOfTheFile) {
    const std::string digest = digest_of(small_tokenizer());
    Json other = small_tokenizer();
    other["normalizer"] = Json::parse(R"({"type": "NFC"})");
    other["pre_tokenizer"] = Json::parse(R"({"type": "Sequence", "pretokenizers": [
        {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": false}]},
        {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false}]})");
    other["model"]["merges"] = Json::parse(R"([["a", "b"]])");
    other["model"].erase("byte_fallback");
    other["added_tokens"][0]["special"] = false;
    other["post_processor"] = {{"type", "ByteLevel"}};
    EXPECT_EQ(digest_of(other), digest);
}

/// An added token has the id that the library `tokenizers` gives it, whatever the file says.
TEST(TokenizerDigest, CountsAddedTokensAsTheLibraryDoes) {
    Json other = small_tokenizer();
    other["added_tokens"][0]["id"] = 6;
    EXPECT_EQ(digest_of(other), digest_of(small_tokenizer()));
}

TEST(TokenizerDigest, ChangesWithEveryPart) {
    const Json whole = small_tokenizer();
    const std::vector<std::pair<const char*, Json>> changes{
        {"/model/vocab/a", 4},
        {"/model/merges", Json::array()},
        {"/model/ignore_merges", false},
        {"/added_tokens/0/lstrip", false},
        {"/added_tokens/0/content", "<stop>"},
        {"/normalizer", nullptr},
        {"/pre_tokenizer/pretokenizers/0/individual_digits", true},
        {"/pre_tokenizer/pretokenizers/1/add_prefix_space", true},
    };
    for (const auto& [place, value] : changes) {
        Json other = whole;
        other[Json::json_pointer(place)] = value;
        EXPECT_NE(digest_of(other), digest_of(whole)) << place;
    }
}

} // namespace
} // namespace ponderscope
