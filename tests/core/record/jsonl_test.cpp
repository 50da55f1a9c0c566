// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/record/jsonl.h"

#include "core/base/error.h"
#include "core/base/sha256.h"
#include "core/trace/reader.h"
#include "tests/core/checkpoint/support.h"
#include "tests/support/test_data.h"
#include "tests/support/tiny_checkpoint.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <zlib.h>
#include <zstd.h>

#include <fcntl.h>
#include <random>
#include <sys/stat.h>
#include <unistd.h>

namespace ponderscope {
namespace {

using namespace testing;

std::string gzip_of(const std::string& text) {
    z_stream stream{};
    EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    std::string packed(deflateBound(&stream, text.size()) + 64, '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream.avail_in = static_cast<uInt>(text.size());
    stream.next_out = reinterpret_cast<Bytef*>(packed.data());
    stream.avail_out = static_cast<uInt>(packed.size());
    EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
    packed.resize(packed.size() - stream.avail_out);
    deflateEnd(&stream);
    return packed;
}

std::string zstd_of(const std::string& text) {
    std::string packed(ZSTD_compressBound(text.size()), '\0');
    packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
    return packed;
}

std::vector<std::string> lines_of(const std::filesystem::path& path) {
    LineReader reader(path);
    std::vector<std::string> lines;
    for (std::string line; reader.next(line);) {
        EXPECT_EQ(reader.number(), static_cast<std::int64_t>(lines.size()) + 1);
        lines.push_back(line);
    }
    return lines;
}

TEST(LineReader, ReadsPlainAndPackedAlike) {
    const TemporaryFolder folder;
    std::mt19937 random(3);
    std::vector<std::string> lines;
    std::string text;
    for (int i = 0; i < 3000; ++i) {
        std::string line;
        for (std::size_t n = random() % (i % 500 == 0 ? 400'000 : 300); n > 0; --n) {
            line += static_cast<char>('a' + random() % 26);
        }
        lines.push_back(line);
        text += line + (i % 3 == 0 ? "\r\n" : "\n");
    }
    put_file(folder / "plain", text);
    EXPECT_EQ(lines_of(folder / "plain"), lines);
    const std::size_t half = text.size() / 2;
    // Also of two members and two frames.
    put_file(folder / "one.gz", gzip_of(text));
    put_file(folder / "two.gz", gzip_of(text.substr(0, half)) + gzip_of(text.substr(half)));
    put_file(folder / "one.zst", zstd_of(text));
    put_file(folder / "two.zst", zstd_of(text.substr(0, half)) + zstd_of(text.substr(half)));
    for (const char* name : {"one.gz", "two.gz", "one.zst", "two.zst"}) {
        EXPECT_EQ(lines_of(folder / name), lines) << name;
    }
    put_file(folder / "open end", "a\n\nb");
    EXPECT_EQ(lines_of(folder / "open end"), (std::vector<std::string>{"a", "", "b"}));
    put_file(folder / "empty", "");
    EXPECT_EQ(lines_of(folder / "empty"), std::vector<std::string>());
}

TEST(LineReader, DamageIsASentence) {
    const TemporaryFolder folder;
    std::string text;
    for (int i = 0; i < 20'000; ++i) {
        text += std::to_string(i * 7919) + "\n";
    }
    for (const auto& [name, packed] : {std::pair{"a.gz", gzip_of(text)}, std::pair{"a.zst", zstd_of(text)}}) {
        put_file(folder / name, packed.substr(0, packed.size() / 2));
        const std::string cut = sentence(folder.path(), [&] { (void)lines_of(folder / name); });
        EXPECT_TRUE(cut.starts_with(name + std::string(": ")) && cut.ends_with("[text.compressed]")) << cut;
        std::string broken = packed;
        for (std::size_t i = broken.size() / 3; i < broken.size() / 3 + 200; ++i) {
            broken[i] = static_cast<char>(~broken[i]);
        }
        put_file(folder / name, broken);
        const std::string wrong = sentence(folder.path(), [&] { (void)lines_of(folder / name); });
        EXPECT_TRUE(wrong.ends_with("[text.compressed]")) << wrong;
    }
    EXPECT_EQ(error_id([&] { LineReader reader(folder / "absent"); }), "file.missing");
    EXPECT_EQ(error_id([&] { LineReader reader(folder.path()); }), "file.kind");
}

TEST(LineReader, AnEndlessLineIsPassedByWithoutBeingKept) {
    const TemporaryFolder folder;
    const std::string endless(LineReader::max_line_bytes + 10, 'x');
    put_file(folder / "long.zst", zstd_of("before\n" + endless + "\nbehind\n"));
    LineReader reader(folder / "long.zst");
    std::string line;
    ASSERT_TRUE(reader.next(line));
    EXPECT_EQ(line, "before");
    ASSERT_TRUE(reader.next(line));
    EXPECT_TRUE(reader.too_long());
    EXPECT_EQ(line, "");
    ASSERT_TRUE(reader.next(line));
    EXPECT_FALSE(reader.too_long());
    EXPECT_EQ(line, "behind");
    EXPECT_FALSE(reader.next(line));
}

class Jsonl : public ::testing::Test {
protected:
    void SetUp() override {
        TinyCheckpoint().write(folder / "model");
        checkpoint.emplace(Checkpoint::open(folder / "model"));
        tokenizer.emplace(Tokenizer::load_folder(checkpoint->folder));
    }
    std::filesystem::path file(const std::string& content) const {
        put_file(folder / "corpus.jsonl", content);
        return folder / "corpus.jsonl";
    }
    RecordReport record_to(const std::string& trace, JsonlOptions options) const {
        JsonlSource source(std::move(options), *tokenizer, 256);
        TraceWriter writer(folder / trace);
        const Engine engine = Engine::load(*checkpoint);
        return record(engine, *checkpoint, source, &*tokenizer, writer, {});
    }
    std::string sentence(const std::string& content, JsonlOptions options = {}) const {
        options.file = file(content);
        return testing::sentence(folder.path(), [&] { JsonlSource source(options, *tokenizer, 256); });
    }
    TemporaryFolder folder;
    std::optional<Checkpoint> checkpoint;
    std::optional<Tokenizer> tokenizer;
};

TEST_F(Jsonl, GivesWhatTheSameTextsGiveInMemory) {
    std::string content;
    std::vector<SequenceInput> texts;
    std::string all;
    for (int i = 0; i < 30; ++i) {
        std::string text = "Text " + std::to_string(i) + ": gulls over the \xC3\xA9tang, ";
        for (int k = 0; k < i; ++k) {
            text += "again and again, "; // some longer than a window of 64 tokens
        }
        content += nlohmann::json{{"text", text}}.dump() + "\n" + (i % 7 == 0 ? "\n" : "");
        texts.push_back(sequence_from_prompt(text, *tokenizer));
        all += text;
    }
    const RecordReport streamed = record_to("a.ponder", {file(content)});
    RecordReport whole;
    {
        TraceWriter writer(folder / "b.ponder");
        whole = record(Engine::load(*checkpoint), *checkpoint, texts, &*tokenizer, writer, {});
    }
    EXPECT_EQ(streamed.sequences, 30);
    EXPECT_EQ(streamed.tokens, whole.tokens);
    EXPECT_EQ(streamed.mean_nll, whole.mean_nll);
    EXPECT_FALSE(streamed.cancelled);
    const TraceReader a = TraceReader::open(folder / "a.ponder");
    const TraceReader b = TraceReader::open(folder / "b.ponder");
    EXPECT_EQ(a.runs()[0].text_digest, sha256_hex(all));
    EXPECT_EQ(b.runs()[0].text_digest, sha256_hex(all));
    EXPECT_TRUE(a.runs()[0].complete);
    EXPECT_EQ(a.sequences(1)[0].title, "corpus.jsonl:1");
    EXPECT_EQ(a.sequences(1)[1].title, "corpus.jsonl:3"); // a blank line is a line
    for (std::int64_t i = 0; i < 30; ++i) {
        EXPECT_EQ(a.text(1, i), b.text(1, i));
        EXPECT_EQ(a.tokens(1, i).id, b.tokens(1, i).id);
        EXPECT_EQ(a.signal(1, i, signal::nll)->data, b.signal(1, i, signal::nll)->data);
    }
}

TEST_F(Jsonl, GroupsAndLabelsLandInTheTrace) {
    JsonlOptions options{file(
        R"({"body": "easy words", "meta": {"author": "Poe"}, "kind": "easy"})"
        "\n"
        R"({"body": "names: Ann, Bo", "meta": {"author": 7}, "kind": [{"begin": 12, "end": 14, "class": "name"}, {"begin": 7, "end": 10, "class": "name"}]})"
        "\n"
        R"({"body": "nothing known", "meta": {"author": null}, "kind": null})"
        "\n")};
    options.text_field = "body";
    options.group_field = "meta.author";
    options.label_field = "kind";
    (void)record_to("a.ponder", options);
    const TraceReader reader = TraceReader::open(folder / "a.ponder");
    const std::vector<SequenceInfo> sequences = reader.sequences(1);
    ASSERT_EQ(sequences.size(), 3U);
    EXPECT_EQ(sequences[0].group, "Poe");
    EXPECT_EQ(sequences[1].group, "7");
    EXPECT_EQ(sequences[2].group, "");
    const auto labels = reader.labels(1);
    ASSERT_EQ(labels.size(), 3U);
    EXPECT_EQ(labels[0].first, 0);
    EXPECT_EQ(labels[0].second.name, "easy");
    EXPECT_EQ(labels[0].second.end, 10U);
    EXPECT_EQ(labels[1].first, 1);
    EXPECT_EQ(labels[1].second.begin, 7U); // in the order of the text
    EXPECT_EQ(labels[2].second.begin, 12U);
}

TEST_F(Jsonl, WrongLinesAreNamedBeforeAnythingIsRecorded) {
    const std::string good = R"({"text": "good words", "group": "g"})"
                             "\n";
    const std::string broken = sentence(good + "{\"text\": \"broken\n");
    EXPECT_TRUE(broken.starts_with("corpus.jsonl: line 2: ")) << broken;
    EXPECT_NE(broken.find("byte 17"), std::string::npos) << broken;
    const auto expect_error = [&](const std::string& line, const std::string& part,
                                  JsonlOptions options = {}) {
        const std::string said = sentence(good + "\n" + line + "\n" + good, std::move(options));
        EXPECT_TRUE(said.starts_with("corpus.jsonl: line 3: ") && said.ends_with(" [text.line]")) << said;
        EXPECT_NE(said.find(part), std::string::npos) << said;
    };
    expect_error("[1, 2]", "");
    expect_error(R"({"body": "x", "id": 3})", "body, id");
    expect_error("{}", "--text-field");
    expect_error(R"({"text": 17})", "\"text\"");
    expect_error(R"({"text": "a"})", "");
    const JsonlOptions grouped{.file = {}, .group_field = "group"};
    expect_error(R"({"text": "no group here"})", "--group-field", grouped);
    expect_error(R"({"text": "words", "group": [1]})", "\"group\"", grouped);
    const JsonlOptions labelled{.file = {}, .label_field = "group"};
    expect_error(R"({"text": "words", "group": [{"begin": 2, "end": 9, "class": "x"}]})", " 9", labelled);
    expect_error(
        R"({"text": "words", "group": [{"begin": 0, "end": 3, "class": "x"}, {"begin": 2, "end": 4, "class": "y"}]})",
        "byte 2 ", labelled);
    for (const std::string& line : {std::string(R"({"text": ""})"), std::string(R"({"text": "a\u0000b"})"),
                                    std::string("{\"text\": \"\xFF\xFE bytes\"}")}) {
        const std::string said = sentence(good + line + "\n");
        EXPECT_TRUE(said.starts_with("corpus.jsonl: line 2: ")) << said;
    }
    EXPECT_TRUE(sentence("").ends_with(" [text.empty]")) << sentence("");
}

TEST_F(Jsonl, BadLinesCanBeLeftOutAndAreCounted) {
    JsonlOptions options{file(
        "{\"text\": \"first good line\"}\nnot JSON\n{\"text\": \"a\"}\n{\"text\": \"last good line\"}\n")};
    options.skip_bad = true;
    JsonlSource source(options, *tokenizer, 256);
    EXPECT_EQ(source.amount().total, 29);
    EXPECT_EQ(source.text_digest(), sha256_hex("first good linelast good line"));
    EXPECT_EQ(source.next()->title, "corpus.jsonl:1");
    EXPECT_EQ(source.next()->title, "corpus.jsonl:4");
    EXPECT_EQ(source.next(), nullptr);
    EXPECT_EQ(source.skipped(), 2);
    EXPECT_NE(source.left_out().find("2 lines "), std::string::npos) << source.left_out();
    EXPECT_NE(source.left_out().find("corpus.jsonl: line 2: "), std::string::npos);
    (void)record_to("a.ponder", options);
    const TraceReader reader = TraceReader::open(folder / "a.ponder");
    EXPECT_EQ(reader.runs()[0].sequences, 2);
    ASSERT_EQ(reader.faults(1).size(), 1U);
    EXPECT_NE(reader.faults(1)[0].message.find("2 lines "), std::string::npos);

    const std::string hopeless = sentence("not JSON\n", options);
    EXPECT_NE(hopeless.find("corpus.jsonl: line 1: "), std::string::npos) << hopeless;
    EXPECT_TRUE(hopeless.ends_with("[text.empty]")) << hopeless;
}

TEST_F(Jsonl, AFileThatChangesAfterItWasReadThroughIsRefused) {
    const std::string lines = "{\"text\": \"first line\"}\nno JSON\n{\"text\": \"last line\"}\n";
    JsonlOptions options{file(lines)};
    options.skip_bad = true;
    JsonlSource source(options, *tokenizer, 256);
    EXPECT_NE(source.next(), nullptr);
    EXPECT_NE(source.next(), nullptr);
    EXPECT_EQ(source.next(), nullptr); // as it is
    EXPECT_EQ(source.next(), nullptr);
    for (const char* more : {"{\"text\": \"one line more\"}\n", "another that is no JSON\n"}) {
        source.rewind();
        EXPECT_NE(source.next(), nullptr);
        (void)file(lines + more);
        const std::string said = testing::sentence(folder.path(), [&] {
            while (source.next() != nullptr) {
            }
        });
        EXPECT_TRUE(said.starts_with("corpus.jsonl: ") && said.ends_with("[file.changed]")) << said;
        EXPECT_EQ(source.next(), nullptr);
        (void)file(lines);
    }
}

TEST_F(Jsonl, AStopEndsTheWaitForAPipeThatSaysNothing) {
    const std::string pipe = folder / "pipe";
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    const int writer = ::open(pipe.c_str(), O_RDWR);
    ASSERT_GE(writer, 0);
    const std::string lines = "{\"text\": \"one line\"}\n{\"text\": \"another\"}\n";
    ASSERT_EQ(::write(writer, lines.data(), lines.size()), static_cast<ssize_t>(lines.size()));
    JsonlOptions options{pipe};
    std::stop_source stop;
    JsonlSource source(options, *tokenizer, 256, {}, stop.get_token());
    EXPECT_EQ(source.next()->text, "one line");
    EXPECT_EQ(source.next()->text, "another");
    stop.request_stop(); // nobody will ever write a third line
    EXPECT_EQ(source.next(), nullptr);
    ::close(writer);
}

/// A source that fails in its middle, as a stream does.
class Failing final : public SequenceSource {
public:
    explicit Failing(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}
    std::shared_ptr<const SequenceInput> next() override {
        if (++asked_ > 20) {
            throw InputError(ErrorId::text_line, "standard input: line 21: expected a JSON object, found 3.");
        }
        return std::make_shared<SequenceInput>(sequence_from_prompt("a text of some words", tokenizer_));
    }
    [[nodiscard]] Amount amount() const override { return {}; }
    [[nodiscard]] std::string text_digest() const override { return {}; }

private:
    const Tokenizer& tokenizer_;
    int asked_ = 0;
};

TEST_F(Jsonl, WhatCameBeforeAFailureStays) {
    Failing source(*tokenizer);
    std::string said;
    {
        TraceWriter writer(folder / "a.ponder");
        said = testing::sentence(folder.path(), [&] {
            (void)record(Engine::load(*checkpoint), *checkpoint, source, &*tokenizer, writer, {});
        });
    }
    EXPECT_TRUE(said.starts_with("standard input: line 21: ") && said.ends_with(" [text.line]")) << said;
    const TraceReader reader = TraceReader::open(folder / "a.ponder");
    const RunInfo run = reader.runs()[0];
    EXPECT_FALSE(run.complete);
    EXPECT_GE(run.sequences, 8);
    EXPECT_TRUE(reader.faults(1).at(0).message.starts_with("standard input: line 21: "));
}

} // namespace
} // namespace ponderscope
