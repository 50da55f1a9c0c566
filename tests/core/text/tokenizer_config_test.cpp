// SPDX-License-Identifier: GPL-3.0-or-later
// Tokenizers of folders: vocab.json with merges.txt, and what tokenizer_config.json and its like say beside.
#include "core/base/error.h"
#include "core/text/tokenizer.h"
#include "tests/support/errors.h"
#include "tests/support/test_data.h"

#include <fstream>
#include <gtest/gtest.h>

namespace ponderscope {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<std::int32_t>;

void write(const fs::path& file, const std::string& text) {
    std::ofstream(file, std::ios::binary) << text;
}

TEST(TokenizerFolder, VocabularyAndMerges) {
    testing::TemporaryFolder folder;
    const auto ids = [&](const char* text) { return Tokenizer::load_folder(folder.path()).encode(text).ids; };
    write(folder / "vocab.json", R"({"a": 0, "b": 1, "ab": 2, "Ġa": 3, "Ġ": 4, "<|endoftext|>": 5, "é": 6})");
    write(folder / "merges.txt", "#version: 0.2\r\n\r\na b\r\nĠ a\r\n");
    EXPECT_EQ(ids("ab a<|endoftext|>"), (Ids{2, 3, 5}));
    write(folder / "added_tokens.json", R"({"<new>": 9})");
    EXPECT_EQ(ids("a<new>"), (Ids{0, 9}));
    write(
        folder / "tokenizer_config.json",
        R"({"tokenizer_class": "GPT2Tokenizer", "add_bos_token": true, "bos_token": {"content": "<|endoftext|>"},
              "added_tokens_decoder": {"10": {"content": "<two>", "special": true}}})");
    EXPECT_EQ(ids("a<two>"), (Ids{5, 0, 10}));
    write(folder / "tokenizer_config.json", R"({"add_eos_token": true, "bos_token": "a"})");
    EXPECT_EQ(ids("bab"), (Ids{1, 0, 1, 5})) << "a token with a name is found before anything is merged";
    write(folder / "tokenizer_config.json", R"({"add_bos_token": true, "bos_token": "<none>"})");
    EXPECT_THROW(ids("a"), InputError);
    write(folder / "tokenizer_config.json",
          R"({"added_tokens_decoder": {"10": {"content": "<two>", "special": true}}})");
    EXPECT_TRUE(Tokenizer::load_folder(folder.path()).is_special(10));
    write(folder / "tokenizer_config.json", R"({"tokenizer_class": "WhisperTokenizer"})");
    EXPECT_THROW(ids("a"), InputError);
    write(folder / "tokenizer_config.json", R"({"added_tokens_decoder": {"x": {"content": "<two>"}}})");
    EXPECT_THROW(ids("a"), InputError);
    fs::remove(folder / "tokenizer_config.json");
    write(folder / "added_tokens.json", R"({"<new>": 1})");
    EXPECT_THROW(ids("a"), InputError);
    fs::remove(folder / "added_tokens.json");
    write(folder / "merges.txt", "a b c\n");
    EXPECT_THROW(ids("a"), InputError);
    write(folder / "merges.txt", "b a\n");
    EXPECT_THROW(ids("a"), InputError);
    write(folder / "merges.txt", "a \xFF\n");
    EXPECT_THROW(ids("a"), InputError);
    write(folder / "merges.txt", "");
    EXPECT_EQ(ids("ab"), (Ids{0, 1}));
    write(folder / "vocab.json", "{}");
    EXPECT_THROW(ids("a"), InputError);
    write(folder / "vocab.json", R"({"a": "b"})");
    EXPECT_THROW(ids("a"), InputError);
}

// Ids: transformers 5.24 (AutoTokenizer). Notices: where 4.57 and 5.24 differ, or the class changes the file.
TEST(TokenizerFolder, WhatTheClassMakesOfATokenizerJson) {
    testing::TemporaryFolder folder;
    const auto put_tokenizer = [&](const std::string& normalizer, const std::string& pre_tokenizer,
                                   const std::string& single) {
        write(folder / "tokenizer.json",
              R"({"added_tokens": [{"id": 2, "content": "<s>", "special": true, "normalized": false},
                                   {"id": 3, "content": "</s>", "special": true, "normalized": false}],
              "normalizer": )" +
                  normalizer + R"(, "pre_tokenizer": )" + pre_tokenizer +
                  R"(, "decoder": {"type": "ByteLevel"},
              "post_processor": )" +
                  single + R"(, "model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}})");
    };
    const auto with_end = [](const std::string& pieces) {
        return R"({"type": "TemplateProcessing", "single": [)" + pieces +
               R"(], "special_tokens": {"<s>": {"id": "<s>", "ids": [2], "tokens": ["<s>"]},
                                        "</s>": {"id": "</s>", "ids": [3], "tokens": ["</s>"]}}})";
    };
    const std::string text = R"({"Sequence": {"id": "A", "type_id": 0}})";
    const std::string end = R"({"SpecialToken": {"id": "</s>", "type_id": 0}})";
    const std::string start = R"({"SpecialToken": {"id": "<s>", "type_id": 0}})";
    const std::string byte_level =
        R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true})";
    const std::string digits = R"({"type": "Sequence", "pretokenizers": [
        {"type": "Digits", "individual_digits": true}, )" +
                               byte_level + "]}";
    const std::string nfc = R"({"type": "NFC"})";
    struct Case {
        std::string model_type, config;
        Ids ids;
        std::size_t notices;
    };
    const std::string names = R"("bos_token": "<s>", "eos_token": "</s>")";
    const auto check = [&](const std::vector<Case>& cases) {
        for (const Case& one : cases) {
            write(folder / "config.json", R"({"model_type": ")" + one.model_type + "\"}");
            write(folder / "tokenizer_config.json", "{" + names + one.config + "}");
            const Tokenizer tokenizer = Tokenizer::load_folder(folder.path());
            EXPECT_EQ(tokenizer.encode("ab").ids, one.ids) << one.model_type << one.config;
            EXPECT_EQ(tokenizer.notices().size(), one.notices) << one.model_type << one.config;
        }
    };
    const auto of_class = [](const char* name) {
        return R"(, "tokenizer_class": ")" + std::string(name) + '"';
    };

    put_tokenizer(nfc, byte_level, with_end(text + "," + end));
    check({{"gpt_neox", "", {0, 1}, 1},
           {"gpt_neox", of_class("GPTNeoXTokenizerFast"), {0, 1}, 1},
           {"llama", of_class("GPTNeoXTokenizer") + R"(, "add_eos_token": true)", {0, 1}, 2},
           {"gpt_neox", of_class("PreTrainedTokenizerFast"), {0, 1, 3}, 0},
           {"olmo2", of_class("GPTNeoXTokenizerFast"), {0, 1, 3}, 0}, // registered as the general class
           {"phi3", of_class("GPTNeoXTokenizerFast"), {0, 1, 3}, 0},
           {"qwen3", of_class("GPTNeoXTokenizerFast"), {0, 1}, 1},
           {"qwen2", of_class("GPTNeoXTokenizerFast"), {0, 1, 3}, 1}, // Qwen2Tokenizer: another pattern
           {"llama", of_class("PreTrainedTokenizerFast"), {0, 1, 3}, 0},
           {"llama", of_class("LlamaTokenizerFast") + R"(, "add_eos_token": false)", {0, 1, 3}, 1},
           {"llama", of_class("LlamaTokenizerFast") + R"(, "add_eos_token": true)", {0, 1, 3}, 0}});
    put_tokenizer(nfc, byte_level, "null");
    check({{"llama", of_class("LlamaTokenizerFast") + R"(, "add_bos_token": true)", {0, 1}, 1},
           {"llama", of_class("PreTrainedTokenizerFast") + R"(, "add_bos_token": true)", {0, 1}, 1},
           {"llama", of_class("PreTrainedTokenizerFast") + R"(, "add_bos_token": false)", {0, 1}, 0},
           {"gpt_neox", "", {0, 1}, 0},
           {"gpt2", "", {0, 1}, 0},
           {"gpt2", of_class("GPT2Tokenizer"), {0, 1}, 1}}); // it has no normalizer
    put_tokenizer("null", digits, with_end(start + "," + text));
    check({{"ouro", of_class("GPT2Tokenizer"), {2, 0, 1}, 1},
           {"ouro", of_class("PreTrainedTokenizerFast"), {2, 0, 1}, 0},
           {"opt", "", {2, 0, 1}, 1}});
}

// Expected ids are those that transformers 5.23's PreTrainedTokenizerFast.from_pretrained gives for the same
// folder.
TEST(TokenizerFolder, WhatStandsBesideATokenizerJson) {
    testing::TemporaryFolder folder;
    const auto tokenizer = [&] { return Tokenizer::load_folder(folder.path()); };
    const auto ids = [&](const char* text) { return tokenizer().encode(text).ids; };
    write(folder / "tokenizer.json", R"({"added_tokens": [
            {"id": 0, "content": "<|end|>", "special": true, "normalized": false},
            {"id": 20, "content": "<new>", "lstrip": true}],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
        "post_processor": {"type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<|end|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "special_tokens": {"<|end|>": {"id": "<|end|>", "ids": [0], "tokens": ["<|end|>"]}}},
        "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "merges": ["a b"], "vocab": {"<|end|>": 0, "a": 1, "b": 2, "c": 3, "Ġ": 4, "<": 5,
            ">": 6, "s": 7, "/": 8, "ab": 9, "[": 10, "]": 11, "p": 12, "n": 13, "e": 14, "w": 15, "x": 16, "|": 17,
            "d": 18, "<s>": 19}}})");
    const Ids plain{0, 9, 20, 5, 7, 6, 10, 12, 11};
    const char* const text = "ab <new><s>[p]";
    EXPECT_EQ(ids(text), plain);
    const std::string alone = tokenizer().content_digest();
    EXPECT_EQ(tokenizer().files().size(), 1u);

    // What changes nothing leaves the tokenizer the one it was.
    write(folder / "tokenizer_config.json",
          R"({"eos_token": "<|end|>", "pad_token": "<pad>", "model_max_length": 1e30,
        "added_tokens_decoder": {"0": {"content": "<|end|>", "special": true, "normalized": false}}})");
    EXPECT_EQ(ids(text), plain);
    EXPECT_EQ(tokenizer().content_digest(), alone);
    EXPECT_FALSE(tokenizer().id_of("<pad>")) << "a name for a token that there is not";

    write(folder / "tokenizer_config.json", R"({"added_tokens_decoder": {
        "20": {"content": "<new>", "rstrip": true}, "21": {"content": "[p]", "special": true, "normalized": false}}})");
    EXPECT_EQ(ids(text), (Ids{0, 9, 4, 20, 5, 7, 6, 21}));
    EXPECT_TRUE(tokenizer().is_special(21));
    EXPECT_NE(tokenizer().content_digest(), alone);
    EXPECT_EQ(tokenizer().files().size(), 2u);

    // Older: two more files, and only where the first lists nothing.
    write(folder / "added_tokens.json", R"({"<new>": 20, "[p]": 22})");
    write(folder / "special_tokens_map.json",
          R"({"bos_token": {"content": "<s>"}, "additional_special_tokens": ["[p]"]})");
    EXPECT_EQ(ids(text), (Ids{0, 9, 4, 20, 5, 7, 6, 21}));
    write(folder / "tokenizer_config.json", "{}");
    EXPECT_EQ(ids(text), (Ids{0, 9, 20, 19, 22}));
    EXPECT_TRUE(tokenizer().is_special(19));
    EXPECT_TRUE(tokenizer().is_special(22));

    // A flag of a token that has a name counts where nothing else lists it. What is put around a text is the
    // post-processor's to say.
    write(folder / "special_tokens_map.json", R"({"bos_token": {"content": "<s>", "lstrip": true}})");
    write(folder / "tokenizer_config.json",
          R"({"add_bos_token": true, "add_eos_token": true, "eos_token": "<|end|>"})");
    EXPECT_EQ(ids("ab <s>"), (Ids{0, 9, 19}));
    write(folder / "special_tokens_map.json", "{}");

    const auto refused = [&](const char* file, const char* content, const char* expected) {
        write(folder / file, content);
        const std::string refusal = testing::error_of([&] { (void)tokenizer(); });
        EXPECT_NE(refusal.find(expected), std::string::npos) << refusal;
        write(folder / file, "{}");
    };
    refused("tokenizer_config.json", R"({"added_tokens_decoder": {"3": {"content": "[p]"}}})",
            "which is \"c\" in it");
    refused("tokenizer_config.json", R"({"bos_token": 1})", "\"bos_token\"");
    refused("tokenizer_config.json", "[]", "tokenizer_config.json");
    refused("special_tokens_map.json", R"({"additional_special_tokens": [1]})", "special_tokens_map.json");
    refused("added_tokens.json", R"({"[p]": -1})", "added_tokens.json");
}

} // namespace
} // namespace ponderscope
