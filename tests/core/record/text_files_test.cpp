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
    std::vector<std::uint64_t> begin;
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

/// The parts make the whole text, each with the tokens that it has alone.
void expect_whole(const fs::path& file, const Tokenizer& tokenizer, std::size_t part_bytes) {
    const std::string text = read_file(file);
    const Parts parts = parts_of(file, tokenizer, part_bytes);
    ASSERT_EQ(parts.text, text) << file;
    std::vector<std::int32_t> ids;
    std::vector<std::uint64_t> begins;
    std::size_t begin = 0;
    for (const std::size_t end : parts.cuts) {
        const Encoding alone = tokenizer.encode(text.substr(begin, end - begin));
        ids.insert(ids.end(), alone.ids.begin(), alone.ids.end());
        for (const std::uint64_t at : alone.begin) {
            begins.push_back(begin + at);
        }
        begin = end;
    }
    EXPECT_EQ(parts.ids, ids) << file;
    EXPECT_EQ(parts.begin, begins) << file;
    EXPECT_EQ(parts.digest, sha256_hex(text));
    EXPECT_GE(parts.cuts.size(), text.size() / (part_bytes + 2048 + part_bytes / 128)) << file;
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
    EXPECT_NE(sentence("").find("a.txt: expected a text, found an empty one"), std::string::npos);
    EXPECT_NE(sentence("x").find("a.txt: expected a text of at least two tokens, found one"),
              std::string::npos);
    EXPECT_NE(sentence("\xFF\xFEx\0y").find("it looks like UTF-16"), std::string::npos);
    const std::string good = lines(200'000); // more than is read at once
    for (const std::string& wrong : {std::string("\xC3("), std::string(1, '\0'), std::string("\xF0\x9F")}) {
        EXPECT_NE(sentence(good + wrong).find("found another byte at byte " + std::to_string(good.size())),
                  std::string::npos)
            << sentence(good + wrong);
    }
    EXPECT_NE(testing::sentence(folder.path(), [&] { (void)parts_of(folder / "none", *tokenizer, 4096); })
                  .find("none"),
              std::string::npos);
    EXPECT_NE(testing::sentence(folder.path(), [&] { (void)parts_of(folder.path(), *tokenizer, 4096); }),
              "(no error)");
}

TEST_F(TextFilesOf, ShortOnesBehindALimitAreSaidBeforeAnythingIsRecorded) {
    const auto said = [&](TextFilesOptions options) {
        return testing::sentence(folder.path(), [&] { TextFiles source(std::move(options), *tokenizer); });
    };
    TextFilesOptions limited{{file("Some words."), file("x", "b.txt")}};
    limited.limit_tokens = 1000;
    EXPECT_NE(said(limited).find("b.txt: expected a text of at least two tokens, found one"),
              std::string::npos)
        << said(limited);
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
        EXPECT_NE(said.find("a.txt: expected the texts that it held when it was read through, found others"),
                  std::string::npos)
            << said;
    }
}

/// A byte-level tokenizer of these letters and a start token.
Tokenizer tokenizer_of(const fs::path& file, const std::string& letters, const std::string& start) {
    nlohmann::json vocabulary;
    for (const char letter : letters) {
        vocabulary.emplace(std::string(1, letter), vocabulary.size());
    }
    const std::size_t id = vocabulary.size();
    const nlohmann::json document = {
        {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}},
        {"decoder", {{"type", "ByteLevel"}}},
        {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", nlohmann::json::array()}}},
        {"added_tokens", {{{"id", id}, {"content", start}, {"special", true}}}},
        {"post_processor", {{"type", "RobertaProcessing"}, {"cls", {start, id}}, {"sep", {start, id}}}}};
    put_file(file, document.dump());
    return Tokenizer::load(file);
}

TEST_F(TextFilesOf, NoticesSayWhatStandsAtTheBeginning) {
    const Tokenizer tokens = tokenizer_of(folder / "tokenizer.json", "ab<s>", "<s>");
    const auto count = [&](const std::vector<std::string>& contents, bool special) {
        TextFilesOptions options;
        for (std::size_t i = 0; i < contents.size(); ++i) {
            options.files.push_back(file(contents[i], std::to_string(i) + ".txt"));
        }
        options.reading.bos = special ? TextReading::Bos::automatic : TextReading::Bos::never;
        options.part_bytes = 4096;
        return TextFiles(options, tokens).notices().sentences().size();
    };
    const std::string mark = "\xEF\xBB\xBF";
    EXPECT_EQ(count({"aab", "abab"}, true), 0U);
    EXPECT_EQ(count({mark + "aab", mark + "abab"}, true), 1U) << "one sentence for all";
    EXPECT_EQ(count({"<s>aab"}, true), 1U);
    EXPECT_EQ(count({"<s>aab"}, false), 0U);
    EXPECT_EQ(count({mark + std::string(20'000, 'a'), "<s>aab"}, true), 2U);
}

} // namespace
} // namespace ponderscope
