// SPDX-License-Identifier: GPL-3.0-or-later
// Against the ids that other implementations give to the same texts, and against what must hold for every
// text.
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/splitmix.h"
#include "core/base/utf8.h"
#include "core/text/tokenizer.h"
#include "tests/support/errors.h"
#include "tests/support/test_data.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

namespace ponderscope {
namespace {

namespace fs = std::filesystem;

const fs::path tokenizers = fs::path("external") / "tokenizers";

std::string bytes_of(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
}

fs::path data(const fs::path& relative) {
    return testing::test_data() / relative;
}

// Spans are in order, inside the text and without overlap; with \p covers they leave nothing out.
void expect_spans(const Encoding& e, std::string_view text, bool covers) {
    ASSERT_EQ(e.ids.size(), e.begin.size());
    ASSERT_EQ(e.ids.size(), e.end.size());
    std::uint64_t last = 0;
    for (std::size_t i = 0; i < e.ids.size(); ++i) {
        ASSERT_LE(last, e.begin[i]) << "token " << i << " of " << printable(text, 200);
        ASSERT_LE(e.begin[i], e.end[i]);
        if (covers) {
            ASSERT_EQ(last, e.begin[i]) << "token " << i << " of " << printable(text, 200);
        }
        last = e.end[i];
    }
    ASSERT_LE(last, text.size());
    if (covers) {
        ASSERT_EQ(last, text.size()) << printable(text, 200);
    }
}

std::vector<std::string> edge_strings() {
    std::vector<std::string> texts{"", " ", "a", "\n", "  \n\t  x", "don't DON'T we'll", "<0x0A>"};
    for (const char* const text : {"\xEF\xBB\xBF"
                                   "bom\r\ncrlf\r\n",
                                   "👩‍👩‍👧‍👦🏳️‍🌈👍🏽🇩🇪1️⃣",
                                   "e\u0301a\u0323\u030A한\u1112\u1161\u11AB", "<|endoftext|> <s></s><unk>",
                                   "▁▁ Ġthe \u2028\u00A0\u3000", "\U0010FFFF\U00020000", "1234567890 ½²Ⅷ٣"}) {
        texts.emplace_back(text);
    }
    texts.insert(texts.end(),
                 {std::string("nul\0bytes\0", 10), std::string(300, ' '), std::string(300, 'a')});
    return texts;
}

std::vector<std::string> udhr() {
    std::vector<std::string> texts;
    for (const auto& entry : fs::directory_iterator(data("external/text/udhr"))) {
        if (entry.path().extension() == ".txt") {
            texts.push_back(bytes_of(entry.path()));
        }
    }
    return texts;
}

class Parity : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(Parity, LlamaCppIds) {
    PONDERSCOPE_REQUIRE_TEST_DATA(tokenizers / "parity" / "llama.cpp");
    const auto [vectors, name] = GetParam();
    const Tokenizer tokenizer = Tokenizer::load(data(tokenizers / name / "tokenizer.json"));
    const std::string input =
        bytes_of(data(tokenizers / "parity/llama.cpp" / (std::string(vectors) + ".inp")));
    std::istringstream expected(
        bytes_of(data(tokenizers / "parity/llama.cpp" / (std::string(vectors) + ".out"))));
    const std::string separator = "\n__ggml_vocab_test__\n";
    std::size_t equal = 0;
    std::size_t total = 0;
    std::size_t from = 0;
    for (std::string line; std::getline(expected, line);) {
        const std::size_t to = std::min(input.find(separator, from), input.size());
        const std::string text = input.substr(from, to - from);
        from = std::min(to + separator.size(), input.size());
        std::istringstream numbers(line);
        const std::vector<std::int32_t> ids{std::istream_iterator<std::int32_t>(numbers), {}};
        const Encoding e = tokenizer.encode(text, false);
        ++total;
        equal += e.ids == ids ? 1 : 0;
        EXPECT_EQ(e.ids, ids) << printable(text);
        expect_spans(e, text, true);
    }
    EXPECT_GE(total, 40u);
    EXPECT_EQ(equal, total);
    std::cout << name << ": " << equal << " of " << total << " cases of llama.cpp equal\n";
}

INSTANTIATE_TEST_SUITE_P(Files, Parity,
                         ::testing::Values(std::pair{"gpt-2", "gpt2"}, std::pair{"llama-spm", "llama2"},
                                           std::pair{"llama-bpe", "llama3"}, std::pair{"qwen2", "qwen3"}),
                         [](const auto& p) { return std::string(p.param.second); });

TEST(TokenizerParity, SwiftTransformersTexts) {
    PONDERSCOPE_REQUIRE_TEST_DATA(tokenizers / "parity" / "swift-transformers");
    const fs::path folder = data(tokenizers / "parity/swift-transformers");
    struct Case {
        const char *vectors, *name;
        bool special;
    };
    for (const auto& [vectors, name, special] :
         {Case{"gpt2_encoded_tokens.json", "gpt2", false}, Case{"llama_encoded.json", "llama2", true},
          Case{"llama_3.2_encoded.json", "llama3", true}}) {
        const Tokenizer tokenizer = Tokenizer::load(data(tokenizers / name / "tokenizer.json"));
        const nlohmann::json expected = read_json_file(folder / vectors);
        const auto text = expected.at("text").get<std::string>();
        const Encoding e = tokenizer.encode(text, special);
        EXPECT_EQ(e.ids, expected.at("token_ids").get<std::vector<std::int32_t>>()) << name;
        EXPECT_EQ(tokenizer.decode(e.ids), expected.at("decoded_text").get<std::string>()) << name;
        EXPECT_EQ(tokenizer.adds_start_token(), special) << name;
        expect_spans(e, text, true);
    }
    const std::map<std::string, std::string> files{{"distilgpt2", "gpt2"},
                                                   {"coreml-projects/Llama-2-7b-chat-coreml", "llama2"},
                                                   {"pcuenq/Llama-3.2-1B-Instruct-tokenizer", "llama3"}};
    const nlohmann::json suites = read_json_file(folder / "tokenizer_tests.json");
    for (const auto& [suite, name] : files) {
        const Tokenizer tokenizer = Tokenizer::load(data(tokenizers / name / "tokenizer.json"));
        std::size_t equal = 0;
        for (const nlohmann::json& test : suites.at(suite)) {
            const auto text = test.at("input").get<std::string>();
            const Encoding e = tokenizer.encode(text);
            const auto ids = test.at("encoded").at("input_ids").get<std::vector<std::int32_t>>();
            EXPECT_EQ(e.ids, ids) << name << ": " << printable(text);
            equal += e.ids == ids ? 1 : 0;
            expect_spans(e, text, true);
        }
        std::cout << name << ": " << equal << " of " << suites.at(suite).size() << " cases of " << suite
                  << " equal\n";
    }
}

TEST(TokenizerParity, Stories260K) {
    PONDERSCOPE_REQUIRE_TEST_DATA("external/checkpoints/stories260K_hf");
    const fs::path folder = data("external/checkpoints/stories260K_hf");
    const Tokenizer tokenizer = Tokenizer::load_folder(folder);
    const nlohmann::json golden = read_json_file(folder / "golden.json");
    const auto ids = golden.at("ids").get<std::vector<std::int32_t>>();
    ASSERT_GT(ids.size(), 20u);
    EXPECT_EQ(ids[0], 1);
    const std::string text = tokenizer.decode(ids, true);
    EXPECT_TRUE(text.starts_with("Once upon a time")) << text;
    // The model wrote these tokens; encoding its text again gives the same ones.
    EXPECT_EQ(tokenizer.encode(text).ids, ids);
    EXPECT_EQ(tokenizer.size(), 512);
    EXPECT_NO_THROW(tokenizer.require_vocabulary(512));
    EXPECT_THROW(tokenizer.require_vocabulary(511), InputError);
}

TEST(TokenizerParity, OldAndNewSerialisationOfOneTokenizerAgree) {
    PONDERSCOPE_REQUIRE_TEST_DATA(tokenizers / "gpt_neox_20b");
    const Tokenizer old = Tokenizer::load(data(tokenizers / "gpt_neox_20b/20B_tokenizer.json"));
    const Tokenizer pythia = Tokenizer::load(data(tokenizers / "gpt_neox_pythia/tokenizer.json"));
    for (const std::string& text : udhr()) {
        ASSERT_EQ(old.encode(text).ids, pythia.encode(text).ids);
    }
    // From the GPT-NeoX paper: runs of spaces are one token each.
    EXPECT_EQ(pythia.encode("    ").ids.size(), 1u);
    EXPECT_EQ(pythia.size(), 50277);
    EXPECT_TRUE(pythia.is_special(0));
    EXPECT_FALSE(pythia.is_special(50276));
}

TEST(TokenizerParity, VocabularyWithMergesEqualsTokenizerJson) {
    PONDERSCOPE_REQUIRE_TEST_DATA(tokenizers / "gpt2");
    testing::TemporaryFolder folder;
    for (const char* name : {"vocab.json", "merges.txt"}) {
        fs::copy_file(data(tokenizers / "gpt2" / name), folder / name);
    }
    const Tokenizer parts = Tokenizer::load_folder(folder.path());
    const Tokenizer whole = Tokenizer::load_folder(data(tokenizers / "gpt2"));
    EXPECT_EQ(parts.size(), whole.size());
    EXPECT_EQ(parts.content_digest(), whole.content_digest());
    EXPECT_EQ(parts.files().size(), 2u);
    EXPECT_TRUE(parts.is_special(50256));
    std::vector<std::string> texts = udhr();
    const auto edges = edge_strings();
    texts.insert(texts.end(), edges.begin(), edges.end());
    for (const std::string& text : texts) {
        ASSERT_EQ(parts.encode(text).ids, whole.encode(text).ids) << printable(text);
    }
}

class RoundTrip : public ::testing::TestWithParam<const char*> {};

TEST_P(RoundTrip, BytesComeBackAndSpansCover) {
    PONDERSCOPE_REQUIRE_TEST_DATA(tokenizers / GetParam());
    PONDERSCOPE_REQUIRE_TEST_DATA("external/text/udhr");
    const Tokenizer tokenizer = Tokenizer::load_folder(data(tokenizers / GetParam()));
    const std::string name = GetParam();
    const bool normalizes = name == "gpt_neox_pythia" || name == "qwen3";
    const bool sentence_piece = name == "llama2";
    std::vector<std::string> texts = udhr();
    ASSERT_GE(texts.size(), 50u);
    const auto edges = edge_strings();
    texts.insert(texts.end(), edges.begin(), edges.end());
    std::size_t equal = 0;
    for (const std::string& text : texts) {
        const Encoding e = tokenizer.encode(text, false);
        expect_spans(e, text, true);
        const std::string decoded = tokenizer.decode(e.ids);
        equal += decoded == text ? 1 : 0;
        if (normalizes || sentence_piece) {
            // NFC is what comes back; the same text again gives the same tokens. SentencePiece-style decoding
            // takes one space off the front, which encoding had put there unless a token stood first.
            if (!sentence_piece || decoded == text) {
                ASSERT_EQ(tokenizer.encode(decoded, false).ids, e.ids) << printable(text);
            }
        } else {
            ASSERT_EQ(decoded, text) << printable(text);
        }
        // Each token says the bytes of its span, where nothing was normalised.
        std::string joined;
        for (std::size_t i = 0; i < e.ids.size(); ++i) {
            const std::string bytes = tokenizer.token_bytes(e.ids[i]);
            joined += bytes;
            if (!normalizes && !sentence_piece) {
                ASSERT_EQ(bytes, text.substr(e.begin[i], e.end[i] - e.begin[i]));
            }
        }
        if (!sentence_piece) {
            ASSERT_EQ(joined, decoded);
        }
    }
    EXPECT_GT(equal, texts.size() / 2);
    std::cout << name << ": " << equal << " of " << texts.size() << " texts come back byte for byte\n";
}

INSTANTIATE_TEST_SUITE_P(Files, RoundTrip,
                         ::testing::Values("gpt2", "gpt_neox_pythia", "llama2", "llama3", "qwen3"),
                         [](const auto& p) { return std::string(p.param); });

TEST(TokenizerSpans, LeadBackThroughNormalisation) {
    PONDERSCOPE_REQUIRE_TEST_DATA(tokenizers / "gpt_neox_pythia");
    const Tokenizer pythia = Tokenizer::load_folder(data(tokenizers / "gpt_neox_pythia"));
    const std::string text = "cafe\u0301 is open"; // e and an acute accent, which NFC makes one character
    const Encoding e = pythia.encode(text);
    const auto is = std::find(e.ids.begin(), e.ids.end(), *pythia.id_of("Ġis")) - e.ids.begin();
    ASSERT_LT(static_cast<std::size_t>(is), e.ids.size());
    EXPECT_EQ(e.begin[static_cast<std::size_t>(is)], 6u);
    EXPECT_EQ(e.end[static_cast<std::size_t>(is)], 9u);
    EXPECT_EQ(pythia.decode(e.ids), "caf\u00E9 is open");

    const Tokenizer llama = Tokenizer::load_folder(data(tokenizers / "llama2"));
    const Encoding l = llama.encode("Hello world\n");
    ASSERT_EQ(l.ids, (std::vector<std::int32_t>{1, 15043, 3186, 13}));
    EXPECT_EQ(l.begin, (std::vector<std::uint64_t>{0, 0, 5, 11})); // the space belongs to the word behind it
    EXPECT_EQ(l.end, (std::vector<std::uint64_t>{0, 5, 11, 12}));
    EXPECT_EQ(llama.token_bytes(3186), " world");
    EXPECT_EQ(llama.token_bytes(13), "\n");
    EXPECT_EQ(llama.token_text(3186), "▁world");
    // A character that is not in the vocabulary becomes its bytes, each with its own byte of the text.
    const Encoding emoji = llama.encode("a🦙", false);
    EXPECT_EQ(emoji.end.back() - emoji.begin.back(), 1u);
    EXPECT_EQ(emoji.ids.size(), 5u);
}

TEST(Tokenizer, SpecialTokensOnRequest) {
    PONDERSCOPE_REQUIRE_TEST_DATA(tokenizers / "llama3");
    const Tokenizer llama3 = Tokenizer::load_folder(data(tokenizers / "llama3"));
    const Encoding with = llama3.encode("Hi<|eot_id|>", true);
    const Encoding without = llama3.encode("Hi<|eot_id|>", false);
    ASSERT_EQ(with.ids.size(), without.ids.size() + 1);
    EXPECT_EQ(with.ids[0], 128000);
    EXPECT_EQ(with.begin[0], with.end[0]);
    EXPECT_EQ(without.ids.back(), 128009);
    EXPECT_EQ(llama3.decode(with.ids, true), "Hi");
    EXPECT_EQ(llama3.token_bytes(-1), "");
    EXPECT_EQ(llama3.token_bytes(1 << 20), "");
    EXPECT_EQ(llama3.decode(std::vector<std::int32_t>{-5, 1 << 30}), "");
    EXPECT_EQ(llama3.id_of("no such token"), std::nullopt);
    // Added tokens beyond the embedding matter only where a text holds them.
    EXPECT_THROW(llama3.require_vocabulary(128000), InputError); // the start token
    EXPECT_NO_THROW(llama3.require_vocabulary(128001));
    EXPECT_THROW(llama3.require_vocabulary(128001, with), InputError);
    EXPECT_NO_THROW(llama3.require_vocabulary(128256, with));
}

TEST(Tokenizer, InvalidUtf8IsRefusedWithItsPlace) {
    PONDERSCOPE_REQUIRE_TEST_DATA(tokenizers / "gpt2");
    const Tokenizer gpt2 = Tokenizer::load_folder(data(tokenizers / "gpt2"));
    for (const std::string bad :
         {"ab\xFF", "ab\xED\xA0\x80", "ab\xC0\xAF", "ab\xF4\x90\x80\x80", "ab\xE2\x82"}) {
        const std::string refusal = testing::error_of([&] { (void)gpt2.encode(bad); });
        EXPECT_NE(refusal.find("offset 2"), std::string::npos) << refusal;
    }
}

TEST(Tokenizer, LongWordsTakeTimeInProportion) {
    PONDERSCOPE_REQUIRE_TEST_DATA(tokenizers / "gpt2");
    for (const char* name : {"gpt2", "llama2", "llama3"}) {
        const Tokenizer tokenizer = Tokenizer::load_folder(data(tokenizers / name));
        std::string letters(1'000'000, 'a');
        std::string mixed = letters;
        for (std::size_t i = 0; i < mixed.size(); ++i) {
            mixed[i] = static_cast<char>('a' + bounded(splitmix64(7, i), 26));
        }
        std::string han;
        while (han.size() < letters.size()) {
            han += "人權宣言";
        }
        for (const std::string& word :
             {letters, mixed, han, std::string(letters.size(), ' '), std::string(letters.size(), '\n')}) {
            const auto start = std::chrono::steady_clock::now();
            const Encoding e = tokenizer.encode(word, false);
            const double seconds =
                std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
            EXPECT_LT(seconds, 20.0) << name << " "
                                     << printable(word.substr(0, 20)); // quadratic time would be hours
            expect_spans(e, word, true);
            EXPECT_EQ(tokenizer.decode(e.ids), word);
        }
    }
}

TEST(Tokenizer, SeveralThreadsAtOnce) {
    PONDERSCOPE_REQUIRE_TEST_DATA(tokenizers / "gpt2");
    const Tokenizer tokenizer = Tokenizer::load_folder(data(tokenizers / "gpt2"));
    const std::vector<std::string> texts = udhr();
    std::vector<std::vector<std::int32_t>> alone;
    for (const std::string& text : texts) {
        alone.push_back(tokenizer.encode(text).ids);
    }
    std::vector<int> wrong(4, 0);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < wrong.size(); ++t) {
        threads.emplace_back([&, t] {
            for (std::size_t i = 0; i < texts.size(); ++i) {
                const std::size_t k = (i * 7 + t * 13) % texts.size();
                wrong[t] += tokenizer.encode(texts[k]).ids == alone[k] ? 0 : 1;
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

} // namespace
} // namespace ponderscope
