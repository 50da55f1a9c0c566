// SPDX-License-Identifier: GPL-3.0-or-later
// Start tokens and special tokens as choices: what a text becomes, and what a run keeps of it.
#include "core/text/text_reading.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/record/session.h"
#include "core/trace/reader.h"
#include "tests/support/test_data.h"
#include "tests/support/tiny_checkpoint.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace ponderscope {
namespace {

using Bos = TextReading::Bos;

TEST(TextReading, StartTokenAndSpecialTokensAsChosen) {
    // GPT-NeoX's class names <|endoftext|> as the start token and adds none.
    const Tokenizer tokenizer =
        Tokenizer::load_folder(testing::source_tree() / "sample_models/vanilla-neox-1m");
    const std::int32_t start = tokenizer.id_of("<|endoftext|>").value();
    EXPECT_EQ(tokenizer.bos_token(), start);
    EXPECT_EQ(tokenizer.eos_token(), start);
    const auto ids = [&](const std::string& text, Bos bos, bool parse = true) {
        return TextReading{bos, parse}.encode(tokenizer, text).ids;
    };
    const std::vector<std::int32_t> plain = ids("The ferry", Bos::automatic);
    EXPECT_EQ(ids("The ferry", Bos::never), plain);
    std::vector<std::int32_t> started = plain;
    started.insert(started.begin(), start);
    EXPECT_EQ(ids("The ferry", Bos::always), started);
    EXPECT_EQ(ids("The ferry", Bos::every_window), started);
    EXPECT_EQ(ids("<|endoftext|>The ferry", Bos::always), started); // not twice
    const std::vector<std::int32_t> read = ids("<|endoftext|>The ferry", Bos::automatic, false);
    EXPECT_EQ(std::count(read.begin(), read.end(), start), 0);
    EXPECT_EQ(tokenizer.decode(read), "<|endoftext|>The ferry");
    EXPECT_THROW(TextReading::parse_bos("sometimes"), InputError);
}

TEST(TextReading, EveryWindowBeginsWithTheStartToken) {
    const testing::TemporaryFolder folder;
    testing::TinyCheckpoint().write(folder / "model");
    write_file_atomically(folder / "model/tokenizer_config.json", R"({"bos_token": "~"})");
    const Checkpoint checkpoint = Checkpoint::open(folder / "model");
    const Engine engine = Engine::load(checkpoint);
    const Tokenizer tokenizer = Tokenizer::load_folder(checkpoint.folder);
    RecordOptions options{.level = RecordLevel::basic, .context = 16, .stride = 8};
    options.reading.bos = Bos::every_window;
    const SequenceInput sequence =
        sequence_from_prompt("One gull, two gulls, three gulls.", tokenizer, options.reading);
    const std::int32_t start = tokenizer.id_of("~").value();
    EXPECT_EQ(sequence.ids.front(), start);
    {
        TraceWriter writer(folder / "a.ponder");
        record(engine, checkpoint, {sequence}, &tokenizer, writer, options);
    }
    const TraceReader reader = TraceReader::open(folder / "a.ponder");
    const RunInfo run = reader.runs().at(0);
    EXPECT_EQ(nlohmann::json::parse(run.choices).at("bos"), "every-window");
    const TokenColumns tokens = reader.tokens(run.id, 0);
    EXPECT_EQ(tokens.id, sequence.ids); // the trace has the text's tokens
    std::vector<std::int32_t> second(sequence.ids.begin() + 8, sequence.ids.begin() + 24);
    second.front() = start;
    const Window window{second, 0, 16};
    const WindowResult expected = engine.score({&window, 1}, RecordLevel::basic).front();
    for (std::size_t row = 16; row < 23; ++row) {
        EXPECT_NEAR(tokens.nll[row], expected.tokens.nll[row - 8], 1e-5) << row;
    }
    options.stride = 16; // the row that would give way is read out
    TraceWriter writer(folder / "b.ponder");
    EXPECT_THROW(record(engine, checkpoint, {sequence}, &tokenizer, writer, options), InputError);
}

} // namespace
} // namespace ponderscope
