// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/record/text_files.h"

#include "core/base/files.h"
#include "core/base/sha256.h"
#include "core/trace/reader.h"
#include "tests/core/checkpoint/support.h"
#include "tests/support/test_data.h"
#include "tests/support/tiny_checkpoint.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <zstd.h>

#include <sys/stat.h>

#include <cstdlib>

namespace ponderscope {
namespace {

namespace fs = std::filesystem;
using testing::put_file;
using testing::TemporaryFolder;

/// What the parts of a file say, one after the other.
struct Parts {
    std::string text;
    std::vector<std::int32_t> ids;
    std::vector<std::uint64_t> begin, end;
    std::vector<std::string> titles;
    std::vector<std::size_t> cuts;
    std::string digest;
};

Parts parts_of(TextSource& source) {
    Parts all;
    while (const auto part = source.next()) {
        const std::uint64_t before = all.text.size();
        for (std::size_t t = 0; t < part->ids.size(); ++t) {
            all.begin.push_back(before + part->begin[t]);
            all.end.push_back(before + part->end[t]);
        }
        all.ids.insert(all.ids.end(), part->ids.begin(), part->ids.end());
        all.text += part->text;
        all.titles.push_back(part->title);
        all.cuts.push_back(all.text.size());
    }
    all.digest = source.text_digest();
    return all;
}

Parts parts_of(const fs::path& file, const Tokenizer& tokenizer, std::size_t part_bytes) {
    TextFilesOptions options{{file}};
    options.part_bytes = part_bytes;
    TextFiles source(options, tokenizer);
    return parts_of(source);
}

void expect_whole(const fs::path& file, const Tokenizer& tokenizer, std::size_t part_bytes) {
    const std::string text = read_file(file);
    const Encoding whole = tokenizer.encode(text);
    const Parts parts = parts_of(file, tokenizer, part_bytes);
    ASSERT_EQ(parts.text, text) << file;
    EXPECT_EQ(parts.ids, whole.ids) << file;
    EXPECT_EQ(parts.begin, whole.begin) << file;
    EXPECT_EQ(parts.end, whole.end) << file;
    EXPECT_EQ(parts.digest, sha256_hex(text));
    EXPECT_GE(parts.cuts.size(), text.size() / (part_bytes + 2048 + part_bytes / 128)) << file;
}

/// In parts far smaller than those of a recording: a thousand cuts and more.
TEST(TextFiles, PartsHaveTheTokensOfTheWholeForEveryTokenizer) {
    PONDERSCOPE_REQUIRE_TEST_DATA("external/tokenizers");
    const fs::path external = testing::test_data() / "external";
    std::vector<fs::path> texts{external / "text/tinyshakespeare.txt", external / "text/enwik8_first100.txt"};
    for (const char* folder : {"text/udhr", "text/edge"}) {
        for (const auto& entry : fs::directory_iterator(external / folder)) {
            if (entry.path().has_extension()) {
                texts.push_back(entry.path());
            }
        }
    }
    ASSERT_GT(texts.size(), 50U);
    for (const char* name : {"gpt_neox_pythia", "gpt2", "qwen3", "llama2", "llama3"}) {
        SCOPED_TRACE(name);
        const Tokenizer tokenizer = Tokenizer::load_folder(external / "tokenizers" / name);
        for (const fs::path& text : texts) {
            expect_whole(text, tokenizer, 4096);
        }
    }
    const Tokenizer ours = Tokenizer::load_folder(testing::source_tree() / "sample_models/tokenizer");
    for (const fs::path& text : texts) {
        expect_whole(text, ours, 2048);
    }
}

class TextFilesOf : public ::testing::Test {
protected:
    void SetUp() override {
        testing::TinyCheckpoint().write(folder / "model");
        checkpoint.emplace(Checkpoint::open(folder / "model"));
        tokenizer.emplace(Tokenizer::load_folder(checkpoint->folder));
    }
    fs::path file(const std::string& content, const std::string& name = "a.txt") const {
        put_file(folder / name, content);
        return folder / name;
    }
    std::string sentence(const std::string& content, std::size_t part_bytes = 4096) const {
        const fs::path path = file(content);
        return testing::sentence(folder.path(), [&] { (void)parts_of(path, *tokenizer, part_bytes); });
    }
    static std::string lines(int count) {
        std::string text;
        for (int i = 0; i < count; ++i) {
            text += "Line " + std::to_string(i) + (i % 7 == 0 ? ":\r\n\r\n" : " of a text.\n");
        }
        return text;
    }
    TemporaryFolder folder;
    std::optional<Checkpoint> checkpoint;
    std::optional<Tokenizer> tokenizer;
};

TEST_F(TextFilesOf, CutsAreWhereLinesEndOrElseWords) {
    const std::string text = lines(2000);
    const Parts parts = parts_of(file(text), *tokenizer, 4096);
    ASSERT_GT(parts.cuts.size(), 8U);
    EXPECT_EQ(parts.titles.front(), "a.txt, part 1");
    EXPECT_EQ(parts.titles[2], "a.txt, part 3");
    for (std::size_t i = 0; i + 1 < parts.cuts.size(); ++i) {
        EXPECT_EQ(text[parts.cuts[i] - 1], '\n');
        EXPECT_EQ(text[parts.cuts[i]], 'L');
        EXPECT_LE(parts.cuts[i] - (i > 0 ? parts.cuts[i - 1] : 0), 4096U);
    }
    std::string words;
    for (int i = 0; i < 3000; ++i) {
        words += "word" + std::to_string(i) + "  ";
    }
    const Parts between = parts_of(file(words), *tokenizer, 4096);
    ASSERT_GT(between.cuts.size(), 3U);
    for (std::size_t i = 0; i + 1 < between.cuts.size(); ++i) {
        EXPECT_EQ(words.substr(between.cuts[i], 2), "  ");
    }
    std::string neither;
    for (int i = 0; i < 4000; ++i) {
        neither += "\xC3\xA9";
    }
    EXPECT_GT(parts_of(file(neither), *tokenizer, 4096).cuts.size(), 1U);
    expect_whole(file(neither), *tokenizer, 4096);

    const Parts small = parts_of(file(lines(20)), *tokenizer, 4096);
    EXPECT_EQ(small.titles, std::vector<std::string>{"a.txt"});
}

TEST_F(TextFilesOf, AreRecordedAsTheirPartsInMemoryAre) {
    const std::vector<fs::path> files{file(lines(700), "a.txt"), file(lines(9), "b.txt"),
                                      file(lines(400), "c.txt")};
    TextFilesOptions options{files};
    options.part_bytes = 4096;
    std::vector<SequenceInput> parts;
    {
        TextFiles source(options, *tokenizer);
        while (const auto part = source.next()) {
            parts.push_back(*part);
        }
        EXPECT_GT(parts.size(), 5U);
    }
    const Engine engine = Engine::load(*checkpoint);
    {
        TraceWriter writer(folder / "a.ponder");
        TextFiles source(options, *tokenizer);
        (void)record(engine, *checkpoint, source, &*tokenizer, writer, {});
    }
    {
        TraceWriter writer(folder / "b.ponder");
        (void)record(engine, *checkpoint, parts, &*tokenizer, writer, {});
    }
    const TraceReader a = TraceReader::open(folder / "a.ponder");
    const TraceReader b = TraceReader::open(folder / "b.ponder");
    EXPECT_EQ(a.runs()[0].text_digest, b.runs()[0].text_digest);
    EXPECT_EQ(a.runs()[0].nll_sum, b.runs()[0].nll_sum);
    ASSERT_EQ(a.sequences(1).size(), parts.size());
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(parts.size()); ++i) {
        EXPECT_EQ(a.text(1, i), b.text(1, i));
        EXPECT_EQ(a.tokens(1, i).id, b.tokens(1, i).id);
    }
}

TEST_F(TextFilesOf, AStreamAndPackedFilesAreWhatAFileIs) {
    const std::string text = lines(2000);
    const Parts plain = parts_of(file(text), *tokenizer, 4096);
    std::string packed(ZSTD_compressBound(text.size()), '\0');
    packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
    const std::string pipe = folder / "pipe";
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    ASSERT_EQ(std::system(("cat '" + (folder / "a.txt").string() + "' > '" + pipe + "' &").c_str()), 0);
    for (const fs::path& other : {file(packed, "a.txt.zst"), fs::path(pipe)}) {
        const Parts found = parts_of(other, *tokenizer, 4096);
        EXPECT_EQ(found.ids, plain.ids) << other;
        EXPECT_EQ(found.cuts, plain.cuts) << other;
        EXPECT_EQ(found.digest, plain.digest) << other;
    }
}

TEST_F(TextFilesOf, ALimitEndsWithTheTextThatReachesIt) {
    std::vector<fs::path> files;
    for (int i = 0; i < 60; ++i) {
        files.push_back(file("Text " + std::to_string(i) + " of some.", "t" + std::to_string(i)));
    }
    TextFilesOptions options{files};
    options.limit_tokens = 100;
    TextFiles source(options, *tokenizer);
    const std::string digest = source.text_digest();
    const Parts limited = parts_of(source);
    EXPECT_GE(limited.ids.size(), 100U);
    EXPECT_LT(limited.ids.size(), 130U);
    EXPECT_EQ(digest, sha256_hex(limited.text));
    EXPECT_EQ(source.amount().total, static_cast<std::int64_t>(limited.text.size()));
}

TEST_F(TextFilesOf, WhatIsWrongIsSaidBeforeAnythingIsRecorded) {
    for (const char* const content : {"", "x"}) {
        const std::string said = sentence(content);
        EXPECT_TRUE(said.starts_with("a.txt: ") && said.ends_with(" [text.empty]")) << said;
    }
    EXPECT_NE(sentence("\xFF\xFEx\0y").find("UTF-16"), std::string::npos);
    const std::string good = lines(200'000); // more than is read at once
    for (const std::string& wrong : {std::string("\xC3("), std::string(1, '\0'), std::string("\xF0\x9F")}) {
        const std::string said = sentence(good + wrong);
        EXPECT_NE(said.find("byte " + std::to_string(good.size())), std::string::npos) << said;
        EXPECT_TRUE(said.ends_with(" [text.bytes]")) << said;
    }
    const auto id_of = [&](const fs::path& path) {
        return testing::error_id([&] { (void)parts_of(path, *tokenizer, 4096); });
    };
    EXPECT_EQ(id_of(folder / "none"), "file.missing");
    EXPECT_EQ(id_of(folder.path()), "file.kind");
}

TEST_F(TextFilesOf, ShortOnesBehindALimitAreSaidBeforeAnythingIsRecorded) {
    TextFilesOptions limited{{file("Some words."), file("x", "b.txt")}};
    limited.limit_tokens = 1000;
    const auto open_all = [&] { TextFiles source(limited, *tokenizer); };
    const std::string said = testing::sentence(folder.path(), open_all);
    EXPECT_TRUE(said.starts_with("b.txt: ") && said.ends_with(" [text.empty]")) << said;
}

TEST_F(TextFilesOf, AFileThatChangesAfterItWasReadThroughIsRefused) {
    const fs::path path = file(lines(20'000));
    for (const std::int64_t limit : {0, 1'000'000}) {
        TextFilesOptions options{{path}};
        options.part_bytes = 4096;
        options.limit_tokens = limit;
        TextFiles source(options, *tokenizer);
        (void)parts_of(source); // as it is
        source.rewind();
        EXPECT_NE(source.next(), nullptr);
        put_file(path, read_file(path) + "One line more.\n");
        const std::string said = testing::sentence(folder.path(), [&] { (void)parts_of(source); });
        EXPECT_TRUE(said.starts_with("a.txt: ") && said.ends_with("[file.changed]")) << said;
    }
}

/// A byte-level tokenizer of these merges, each of two parts; \p pre_tokenizer before ByteLevel.
Tokenizer tokenizer_of(const fs::path& file, const std::string& letters,
                       const std::vector<std::pair<std::string, std::string>>& merges,
                       const nlohmann::json& pre_tokenizer = nullptr, const nlohmann::json& start = nullptr) {
    nlohmann::json vocabulary;
    const auto add = [&](const std::string& token) { vocabulary.emplace(token, vocabulary.size()); };
    for (const char letter : letters) {
        add(std::string(1, letter));
    }
    nlohmann::json pairs = nlohmann::json::array();
    for (const auto& [left, right] : merges) {
        add(left + right);
        pairs.push_back({left, right});
    }
    nlohmann::json steps = nlohmann::json::array();
    if (!pre_tokenizer.is_null()) {
        steps.push_back(pre_tokenizer);
    }
    steps.push_back({{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}});
    nlohmann::json document = {{"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", steps}}},
                               {"decoder", {{"type", "ByteLevel"}}},
                               {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", pairs}}}};
    if (!start.is_null()) {
        document["added_tokens"] = {{{"id", vocabulary.size()}, {"content", start}, {"special", true}}};
        document["post_processor"] = {{"type", "RobertaProcessing"},
                                      {"cls", {start, vocabulary.size()}},
                                      {"sep", {start, vocabulary.size()}}};
    }
    put_file(file, document.dump());
    return Tokenizer::load(file);
}

/// Parts begin at a token of the part before, so that tokens counted from the first of a run stay the same.
TEST_F(TextFilesOf, LongRunsHaveTheTokensOfTheWhole) {
    std::vector<std::pair<std::string, std::string>> doubling{{"a", "b"}, {"ab", "c"}};
    for (std::string word = "abc"; word.size() < 96; word += word) {
        doubling.emplace_back(word, word);
    }
    const Tokenizer tokens = tokenizer_of(folder / "tokenizer.json", "abcx", doubling);
    for (const std::string before : {"", "x", "xxbc"}) {
        std::string text = before;
        for (int i = 0; i < 20'000; ++i) {
            text += "abc";
        }
        expect_whole(file(text), tokens, 4096);
    }
    PONDERSCOPE_REQUIRE_TEST_DATA("external/tokenizers/llama3");
    const Tokenizer threes = Tokenizer::load_folder(testing::test_data() / "external/tokenizers/llama3");
    std::string digits;
    for (int i = 0; i < 20'000; ++i) {
        digits += static_cast<char>('0' + i * 7 % 10);
    }
    expect_whole(file(digits), threes, 4096);
}

/// Digits in threes, counted from the last of them: where reading ends within, they are others.
TEST_F(TextFilesOf, ATextThatDependsOnWhereReadingEndsIsRefused) {
    const Tokenizer threes = tokenizer_of(folder / "tokenizer.json", "1", {{"1", "1"}, {"11", "1"}},
                                          {{"type", "Split"},
                                           {"pattern", {{"Regex", R"(\d{1,3}(?=(?:\d{3})*(?!\d)))"}}},
                                           {"behavior", "Isolated"}});
    const std::string digits(20'000, '1');
    EXPECT_EQ(testing::error_id([&] { (void)parts_of(file(digits), threes, 4096); }), "text.tokenizer");
}

TEST_F(TextFilesOf, NoticesSayWhatStandsAtTheBeginning) {
    const Tokenizer tokens = tokenizer_of(folder / "tokenizer.json", "ab<s>", {}, nullptr, "<s>");
    const auto count = [&](const std::vector<std::string>& contents, bool special) {
        TextFilesOptions options;
        for (std::size_t i = 0; i < contents.size(); ++i) {
            options.files.push_back(file(contents[i], std::to_string(i) + ".txt"));
        }
        options.reading.bos = special ? TextReading::Bos::automatic : TextReading::Bos::never;
        options.part_bytes = 4096;
        return TextFiles(options, tokens).notices().all().size();
    };
    const std::string mark = "\xEF\xBB\xBF";
    EXPECT_EQ(count({"aab", "abab"}, true), 0U);
    EXPECT_EQ(count({mark + "aab", mark + "abab"}, true), 1U) << "one sentence for all";
    EXPECT_EQ(count({"<s>aab"}, true), 1U);
    EXPECT_EQ(count({"<s>aab"}, false), 0U);
    EXPECT_EQ(count({std::string(20'000, 'a')}, true), 1U) << "the second part has no start token";
    EXPECT_EQ(count({std::string(20'000, 'a')}, false), 0U);
    EXPECT_EQ(count({mark + std::string(20'000, 'a'), "<s>aab"}, true), 3U);
}

} // namespace
} // namespace ponderscope
