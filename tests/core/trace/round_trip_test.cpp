// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/trace/column_labels.h"
#include "core/trace/reader.h"
#include "core/trace/tools/export_csv.h"
#include "core/trace/tools/merge.h"
#include "core/trace/writer.h"
#include "tests/core/trace/sample.h"
#include "tests/core/trace/trace_test.h"
#include "tests/support/errors.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <thread>
#include <tuple>

namespace ponderscope {
namespace {

using TraceRoundTrip = testing::TraceTest;

bool same(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() &&
           (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

void expect_same_tokens(const TokenColumns& got, const TokenColumns& want) {
    EXPECT_EQ(got.first, want.first);
    EXPECT_EQ(got.id, want.id);
    EXPECT_EQ(got.begin, want.begin);
    EXPECT_EQ(got.end, want.end);
    EXPECT_TRUE(same(got.nll, want.nll));
    EXPECT_TRUE(same(got.entropy, want.entropy));
    EXPECT_TRUE(same(got.max_probability, want.max_probability));
    EXPECT_EQ(got.rank, want.rank);
    EXPECT_EQ(got.steps, want.steps);
    EXPECT_EQ(got.flops, want.flops);
}

/// Thousands of files are named in one text; other lines of a run are short.
TEST_F(TraceRoundTrip, ARunNamesEveryFileOfItsCorpus) {
    RunInfo run = testing::sample_run("first");
    run.text_source = std::string(1'000'000, 'x');
    testing::write_trace(path, [&](TraceWriter& writer) {
        writer.begin_run(run, testing::sample_signals());
        writer.end_run(1);
    });
    EXPECT_EQ(TraceReader::open(path).runs().at(0).text_source, run.text_source);
}

TEST_F(TraceRoundTrip, EverythingComesBackAsItWasGiven) {
    // 10,007 tokens make several chunks of the candidates and end in the middle of one; pieces of 100 have to
    // be merged.
    const std::vector<std::int64_t> lengths{10'007, 1, 300};
    testing::add_sample_run(path, "first", 17, lengths, 100);
    EXPECT_FALSE(std::filesystem::exists(path.string() + "-wal"));
    EXPECT_FALSE(std::filesystem::exists(path.string() + "-shm"));
    EXPECT_FALSE(std::filesystem::exists(path.string() + "-lock"));

    const TraceReader reader = TraceReader::open(path);
    EXPECT_TRUE(testing::is_sound(path));
    EXPECT_TRUE(reader.notices().empty());
    const std::vector<RunInfo> runs = reader.runs();
    ASSERT_EQ(runs.size(), 1U);
    const RunInfo& run = runs[0];
    RunInfo want = testing::sample_run("first");
    want.id = want.tokenizer = 1;
    want.seconds = 12.5;
    want.complete = true;
    want.sequences = 3;
    static_cast<TokenTotals&>(want) = run; // compared below
    testing::expect_same_row(run, want);

    const std::vector<SequenceInfo> sequences = reader.sequences(1);
    ASSERT_EQ(sequences.size(), lengths.size());
    std::int64_t tokens = 0;
    std::int64_t scored = 0;
    double nll = 0;
    double steps = 0;
    double flops = 0;
    std::int64_t bytes = 0;
    for (std::size_t s = 0; s < lengths.size(); ++s) {
        const auto number = static_cast<std::int64_t>(s);
        EXPECT_EQ(sequences[s].number, number);
        EXPECT_EQ(sequences[s].title, "text " + std::to_string(s));
        EXPECT_EQ(sequences[s].tokens, lengths[s]);
        EXPECT_EQ(sequences[s].scored_tokens, lengths[s] - 1);
        EXPECT_TRUE(sequences[s].complete);
        EXPECT_EQ(reader.text(1, number), testing::sample_text(lengths[s]));
        const TokenColumns all = testing::sample_tokens(17 + s, 0, lengths[s], lengths[s]);
        expect_same_tokens(reader.tokens(1, number), all);
        for (const auto& [name, chunk] : testing::sample_chunks(17 + s, 0, lengths[s])) {
            const std::optional<SignalChunk> got = reader.signal(1, number, name);
            ASSERT_TRUE(got) << name;
            EXPECT_EQ(got->first, 0);
            EXPECT_EQ(got->dtype, chunk.dtype);
            EXPECT_EQ(got->shape, chunk.shape);
            EXPECT_TRUE(got->data == chunk.data) << name;
        }
        double nll_here = 0;
        for (std::size_t t = 0; t < all.size(); ++t) {
            flops += static_cast<double>(all.flops[t]);
            if (!std::isnan(all.nll[t])) {
                nll_here += all.nll[t];
                steps += all.steps[t];
                bytes += static_cast<std::int64_t>(all.end[t + 1] - all.begin[t + 1]);
                ++scored;
            }
        }
        nll += nll_here;
        EXPECT_NEAR(sequences[s].nll_sum, nll_here, 1e-9 * nll_here);
        tokens += lengths[s];
    }
    EXPECT_EQ(run.tokens, tokens);
    EXPECT_EQ(run.scored_tokens, scored);
    EXPECT_NEAR(run.nll_sum, nll, 1e-9 * nll);
    EXPECT_EQ(run.steps_sum, steps);
    EXPECT_EQ(run.flops_sum, flops);
    EXPECT_EQ(run.scored_bytes, bytes);

    EXPECT_EQ(reader.token_bytes(1, 42), "<42>");
    EXPECT_EQ(reader.token_bytes(1, 4242), "");
    EXPECT_EQ(reader.vocabulary(1).size(), 100U);
    const std::vector<SignalInfo> signals = reader.signal_infos(1);
    ASSERT_EQ(signals.size(), testing::sample_signals().size());
    for (std::size_t i = 0; i < signals.size(); ++i) {
        testing::expect_same_row(signals[i], testing::sample_signals()[i]);
    }
    EXPECT_FALSE(reader.signal(1, 0, "unused"));
    EXPECT_FALSE(reader.signal(1, 0, "nothing of that name"));
}

TEST_F(TraceRoundTrip, RangesAreTheSlicesOfTheWhole) {
    const std::int64_t n = 5000;
    testing::add_sample_run(path, "first", 3, {n}, 777);
    const TraceReader reader = TraceReader::open(path);
    const auto whole = testing::sample_chunks(3, 0, n);
    const std::pair<std::int64_t, std::int64_t> ranges[]{{0, 1},       {4999, 5000}, {1637, 1639},
                                                         {1000, 4000}, {4990, 9999}, {-5, 3},
                                                         {70, 60},     {6000, 7000}, {20, 20}};
    for (const auto& [begin, end] : ranges) {
        const std::int64_t from = std::clamp<std::int64_t>(begin, 0, n);
        const std::int64_t to = std::clamp<std::int64_t>(end, from, n);
        expect_same_tokens(reader.tokens(1, 0, begin, end), testing::sample_tokens(3, from, to - from, n));
        for (const auto& [name, chunk] : whole) {
            const std::optional<SignalChunk> got = reader.signal(1, 0, name, begin, end);
            if (from == n) {
                continue; // behind the end there is no chunk to ask
            }
            ASSERT_TRUE(got) << name << " " << begin;
            EXPECT_EQ(got->first, from);
            EXPECT_EQ(got->shape.front(), to - from);
            const auto row = static_cast<std::ptrdiff_t>(chunk.data.size() / static_cast<std::size_t>(n));
            const std::vector<std::byte> slice(chunk.data.begin() + from * row,
                                               chunk.data.begin() + to * row);
            EXPECT_TRUE(got->data == slice) << name << " " << begin << " " << end;
        }
    }
    EXPECT_THROW((void)reader.tokens(2, 0), InputError);
    EXPECT_THROW((void)reader.tokens(1, 1), InputError);
    EXPECT_THROW((void)reader.text(1, -1), InputError);
}

TEST_F(TraceRoundTrip, SmallAppendsBecomeLargeChunks) {
    testing::add_sample_run(path, "first", 3, {20'000}, 10);
    // 20,000 tokens x 4 steps x 10 candidates x 4 bytes in chunks of 256 KiB, whole tokens each.
    EXPECT_EQ(testing::sql_value(path, "SELECT count(*) FROM signal_chunk WHERE signal = 'candidate_ids'"),
              std::to_string((20'000 + 1637) / 1638));
    EXPECT_EQ(testing::sql_value(path, "SELECT max(bytes) <= 1048576 FROM signal_chunk"), "1");
}

TEST_F(TraceRoundTrip, AReaderFollowsAWriter) {
    TraceWriter writer(path);
    writer.begin_run(testing::sample_run("live"), testing::sample_signals());
    writer.begin_sequence("t", testing::sample_text(1000));
    const TraceReader reader = TraceReader::open(path);
    std::int64_t given = 0;
    std::int64_t seen = 0;
    const auto begin = std::chrono::steady_clock::now();
    while (seen < 1000 && std::chrono::steady_clock::now() - begin < std::chrono::seconds(20)) {
        if (given < 1000) {
            writer.append(testing::sample_tokens(9, given, 50, 1000), testing::sample_chunks(9, given, 50));
            given += 50;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(60));
        const std::vector<RunInfo> runs = reader.runs();
        if (runs.empty() || runs[0].sequences == 0) {
            continue;
        }
        EXPECT_FALSE(runs[0].complete);
        const TokenColumns tokens = reader.tokens(1, 0);
        EXPECT_GE(static_cast<std::int64_t>(tokens.size()), seen);
        seen = static_cast<std::int64_t>(tokens.size());
        if (seen > 0) {
            expect_same_tokens(tokens, testing::sample_tokens(9, 0, seen, 1000));
            const auto chunk = reader.signal(1, 0, signal::nll, 0, seen);
            ASSERT_TRUE(chunk);
            EXPECT_TRUE(chunk->data == testing::sample_chunks(9, 0, seen)[0].second.data);
        }
    }
    EXPECT_EQ(seen, 1000);
    writer.end_sequence();
    writer.end_run(1);
    writer.finish();
    EXPECT_TRUE(reader.runs()[0].complete);
    EXPECT_TRUE(reader.sequences(1)[0].complete);
    // Tails that were written many times are still one chunk in the end.
    EXPECT_EQ(testing::sql_value(path, "SELECT count(*) FROM signal_chunk WHERE signal = 'nll'"), "1");
}

TEST_F(TraceRoundTrip, RunsAreAddedAndNamesStayUnique) {
    for (int i = 0; i < 3; ++i) {
        TraceWriter writer(path);
        testing::write_sample_run(writer, "same", 5 + static_cast<std::uint64_t>(i), {20}, 7);
        if (i == 2) {
            RunInfo other = testing::sample_run("other");
            other.tokenizer_digest.clear();
            EXPECT_EQ(writer.begin_run(other, {}), 4);
            TokenColumns ids = testing::sample_tokens(1, 0, 5, 5);
            ids.begin.clear();
            ids.end.clear();
            testing::add_sequence(writer, "ids only", "", ids);
            writer.end_run(0.5);
        }
        writer.finish();
    }
    const TraceReader reader = TraceReader::open(path);
    const std::vector<RunInfo> runs = reader.runs();
    ASSERT_EQ(runs.size(), 4U);
    EXPECT_EQ(runs[1].name, "same (2)");
    EXPECT_EQ(runs[2].name, "same (3)");
    EXPECT_EQ(runs[3].scored_bytes, 0);
    EXPECT_EQ(reader.text(4, 0), "");
    EXPECT_EQ(reader.tokens(4, 0).end, std::vector<std::uint64_t>(5, 0));
    // One tokenizer, one vocabulary; without a digest a run keeps its own, and this one has none.
    EXPECT_EQ(testing::sql_value(path, "SELECT count(*) FROM vocabulary"), "100");
    EXPECT_EQ(reader.token_bytes(3, 7), "<7>");
    EXPECT_EQ(reader.token_bytes(4, 7), "");

    EXPECT_EQ(find_run(reader, "same (3)").id, 3);
    EXPECT_EQ(find_run(reader, "4").name, "other");
    const std::string refusal = testing::error_of([&] { (void)find_run(reader, ""); });
    EXPECT_NE(refusal.find("same, same (2), same (3), other"), std::string::npos) << refusal;
    const RunReference reference = parse_run_reference("dir/t.ponder#same (2)");
    EXPECT_EQ(reference.trace, "dir/t.ponder");
    EXPECT_EQ(reference.run, "same (2)");
    EXPECT_EQ(parse_run_reference("t.ponder").run, "");
}

TEST_F(TraceRoundTrip, SequencesKnowTheirGroup) {
    testing::write_trace(path, [&](TraceWriter& writer) {
        writer.begin_run(testing::sample_run("grouped"), {});
        for (const char* group : {"Austen, \"Jane\"", "", "Poe"}) {
            writer.begin_sequence("t", testing::sample_text(5), group);
            writer.append(testing::sample_tokens(1, 0, 5, 5), {});
            writer.end_sequence();
        }
        writer.end_run(1);
    });
    merge_runs({{path, ""}}, folder / "b.ponder");
    for (const char* name : {"a.ponder", "b.ponder"}) {
        const std::vector<SequenceInfo> sequences = TraceReader::open(folder / name).sequences(1);
        ASSERT_EQ(sequences.size(), 3U);
        EXPECT_EQ(sequences[0].group, "Austen, \"Jane\"");
        EXPECT_EQ(sequences[1].group, "");
        EXPECT_EQ(sequences[2].group, "Poe");
    }
    EXPECT_EQ(testing::sql_value(path, "SELECT count(*) FROM sequence_summary WHERE \"group\" IS NULL"), "1");
    const TraceReader reader = TraceReader::open(path);
    export_csv(reader, folder / "tables");
    EXPECT_NE(read_file(folder / "tables/sequences.csv").find(",\"Austen, \"\"Jane\"\"\","),
              std::string::npos)
        << read_file(folder / "tables/sequences.csv");
}

TEST_F(TraceRoundTrip, ARunThatHasOnlyBegunHasNothingYet) {
    {
        TraceWriter writer(path);
        writer.begin_run(testing::sample_run("begun"), testing::sample_signals());
    }
    const RunInfo run = TraceReader::open(path).runs().at(0);
    EXPECT_EQ(std::tuple(run.sequences, run.tokens, run.scored_tokens, run.scored_bytes),
              std::tuple(0, 0, 0, 0));
    EXPECT_EQ(std::tuple(run.nll_sum, run.steps_sum, run.flops_sum), std::tuple(0.0, 0.0, 0.0));
    EXPECT_FALSE(run.complete);
}

TEST(ColumnLabels, AreReadBackFromTheDescription) {
    const std::vector<std::string> labels{"embedding", "layer 1", "layer 2"};
    EXPECT_EQ(with_column_labels("Weights.", labels), "Weights. Sources: embedding, layer 1, layer 2.");
    EXPECT_EQ(column_labels(with_column_labels("Weights.", labels), 3), labels);
    EXPECT_EQ(with_column_labels("Weights.", {}), "Weights.");
    const std::vector<std::string> numbers{"0", "1"};
    EXPECT_EQ(column_labels("Weights.", 2), numbers);
    EXPECT_EQ(column_labels(with_column_labels("Weights.", labels), 2), numbers) << "of another width";
    EXPECT_EQ(column_labels("", 2), numbers);
}

TEST_F(TraceRoundTrip, WhatIsLeftUnfinishedIsPartial) {
    {
        TraceWriter writer(path);
        writer.begin_run(testing::sample_run("cancelled"), testing::sample_signals());
        testing::add_sample_sequence(writer, 1, 10);
        writer.begin_sequence("half", testing::sample_text(10));
        writer.append(testing::sample_tokens(2, 0, 4, 10), testing::sample_chunks(2, 0, 4));
        writer.put_fault("The device ran out of memory.");
    }
    const TraceReader reader = TraceReader::open(path);
    ASSERT_EQ(reader.runs().size(), 1U);
    EXPECT_FALSE(reader.runs()[0].complete);
    EXPECT_EQ(reader.runs()[0].tokens, 14);
    ASSERT_EQ(reader.sequences(1).size(), 2U);
    EXPECT_TRUE(reader.sequences(1)[0].complete);
    EXPECT_FALSE(reader.sequences(1)[1].complete);
    EXPECT_EQ(reader.tokens(1, 1).size(), 4U);
    ASSERT_EQ(reader.faults(1).size(), 1U);
    EXPECT_EQ(reader.faults(1)[0].sequence, 1);
    EXPECT_EQ(reader.faults(1)[0].message, "The device ran out of memory.");
    EXPECT_FALSE(std::filesystem::exists(path.string() + "-wal"));
}

TEST_F(TraceRoundTrip, MisuseIsNamedAndChangesNothing) {
    TraceWriter writer(path);
    EXPECT_THROW(writer.begin_sequence("t", ""), InputError);
    EXPECT_THROW(writer.begin_run(testing::sample_run("r"), {{"a/b", {"token"}, "", "", ""}}), InputError);
    EXPECT_THROW(writer.begin_run(testing::sample_run("r"), {{"a", {"step"}, "", "", ""}}), InputError);
    EXPECT_THROW(writer.begin_run(testing::sample_run("r"),
                                  {{"a", {"token"}, "", "", ""}, {"a", {"token"}, "", "", ""}}),
                 InputError);
    writer.begin_run(testing::sample_run("r"), testing::sample_signals());
    EXPECT_THROW(writer.append({}, {}), InputError);
    EXPECT_THROW(writer.end_sequence(), InputError);
    writer.begin_sequence("t", testing::sample_text(20));
    const TokenColumns good = testing::sample_tokens(1, 0, 10, 20);
    const auto chunks = testing::sample_chunks(1, 0, 10);
    TokenColumns bad = good;
    bad.nll.pop_back();
    EXPECT_THROW(writer.append(bad, chunks), InputError);
    bad = good;
    bad.end[3] = 1'000'000;
    EXPECT_THROW(writer.append(bad, chunks), InputError);
    EXPECT_THROW(writer.append(testing::sample_tokens(1, 10, 10, 20), testing::sample_chunks(1, 10, 10)),
                 InputError);
    auto wrong = chunks;
    wrong[0].first = "other";
    EXPECT_THROW(writer.append(good, wrong), InputError);
    wrong = chunks;
    wrong[1].second.data.pop_back();
    EXPECT_THROW(writer.append(good, wrong), InputError);
    wrong = chunks;
    wrong[1].second.shape[1] = std::int64_t{1} << 62;
    EXPECT_THROW(writer.append(good, wrong), InputError);
    wrong = chunks;
    wrong.push_back(wrong[0]);
    EXPECT_THROW(writer.append(good, wrong), InputError);
    writer.append(good, chunks);
    // From the second append on, the signals are those of the first.
    EXPECT_THROW(writer.append(testing::sample_tokens(1, 10, 10, 20), {}), InputError);
    writer.append(testing::sample_tokens(1, 10, 10, 20), testing::sample_chunks(1, 10, 10));
    writer.end_sequence();
    writer.end_run(1);
    EXPECT_THROW(writer.end_run(1), InputError);
    writer.finish();
    EXPECT_THROW(writer.begin_run(testing::sample_run("late"), {}), InputError);
    const TraceReader reader = TraceReader::open(path);
    EXPECT_EQ(reader.tokens(1, 0).size(), 20U);
    EXPECT_TRUE(reader.runs()[0].complete);
}

/// Tokens [first, first + count) of \p width entries, of which the first min(token + 1, width) are not 0.
SignalChunk triangle(std::int64_t first, std::int64_t count, std::int64_t width) {
    SignalChunk chunk{first, DType::i16, {count, 2, width}, {}};
    chunk.data.resize(static_cast<std::size_t>(count * 2 * width) * 2);
    for (std::int64_t t = 0; t < count; ++t) {
        for (std::int64_t row = 0; row < 2; ++row) {
            for (std::int64_t back = 0; back <= first + t && back < width; ++back) {
                // Low bytes that are 0 too: an element ends where its last byte does.
                const auto value = static_cast<std::int16_t>((1 + (first + t + row + back) % 100) << 8);
                std::memcpy(chunk.data.data() + 2 * ((t * 2 + row) * width + back), &value, sizeof value);
            }
        }
    }
    return chunk;
}

TEST_F(TraceRoundTrip, WhatEndsInZerosIsStoredWithoutThem) {
    constexpr std::int64_t tokens = 500;
    const SignalInfo info{"triangle", {"token", "row", "back"}, "", "", "",
                          DType::i16, SignalStorage::trimmed};
    testing::write_trace(path, [&](TraceWriter& writer) {
        writer.begin_run(testing::sample_run("r"), {info});
        writer.begin_sequence("t", testing::sample_text(tokens));
        // As windows of a text come: any number of tokens, and each as wide as it likes.
        for (const auto& [first, count, width] :
             {std::tuple{0, 1, 500}, {1, 199, 200}, {200, 250, 600}, {450, 50, 500}}) {
            writer.append(testing::sample_tokens(1, first, count, tokens),
                          {{"triangle", triangle(first, count, width)}});
        }
        writer.end_sequence();
        writer.end_run(1);
    });
    const TraceReader reader = TraceReader::open(path);
    EXPECT_TRUE(testing::is_sound(path));
    const SignalChunk all = reader.signal(1, 0, "triangle").value();
    const SignalChunk expected = triangle(0, tokens, tokens);
    EXPECT_EQ(all.shape, expected.shape);
    EXPECT_TRUE(all.data == expected.data);
    // A part is as wide as it must be.
    const SignalChunk part = reader.signal(1, 0, "triangle", 10, 30).value();
    ASSERT_EQ(part.shape.size(), 3U);
    EXPECT_EQ(part.first, 10);
    EXPECT_LT(part.shape[2], 70);
    const SignalChunk expected_part = triangle(10, 20, part.shape[2]);
    EXPECT_TRUE(part.data == expected_part.data);
    const auto bytes = std::stoll(testing::sql_value(path, "SELECT sum(length(data)) FROM chunk"));
    EXPECT_LT(bytes, static_cast<std::int64_t>(expected.data.size()) * 6 / 10);

    merge_runs({{path, ""}}, folder / "b.ponder");
    const TraceReader merged = TraceReader::open(folder / "b.ponder");
    EXPECT_TRUE(merged.signal(1, 0, "triangle").value().data == expected.data);

    // One wide token must not make thousands of others take as much memory.
    testing::write_trace(folder / "c.ponder", [&](TraceWriter& writer) {
        writer.begin_run(testing::sample_run("r"), {info});
        writer.begin_sequence("t", testing::sample_text(4000));
        SignalChunk wide_token = triangle(50'000, 1, 50'001);
        wide_token.first = 0;
        writer.append(testing::sample_tokens(1, 0, 1, 4000), {{"triangle", wide_token}});
        writer.append(testing::sample_tokens(1, 1, 3999, 4000), {{"triangle", triangle(1, 3999, 1)}});
        writer.end_sequence();
        writer.end_run(1);
    });
    const TraceReader wide = TraceReader::open(folder / "c.ponder");
    EXPECT_THROW((void)wide.signal(1, 0, "triangle"), InputError);
    EXPECT_EQ(wide.signal(1, 0, "triangle", 1, 4000).value().shape[2], 1);
}

TEST_F(TraceRoundTrip, ChunksOfEveryTypeBecomeNumbers) {
    const auto bytes = [](std::initializer_list<int> values) {
        std::vector<std::byte> data;
        for (const int value : values) {
            data.push_back(static_cast<std::byte>(value));
        }
        return data;
    };
    EXPECT_EQ(to_floats({0, DType::f16, {2}, bytes({0x00, 0x3C, 0x00, 0xC0})}), (std::vector<float>{1, -2}));
    EXPECT_EQ(to_floats({0, DType::bf16, {1}, bytes({0x80, 0x3F})}), (std::vector<float>{1}));
    EXPECT_EQ(to_floats({0, DType::i8, {2}, bytes({0xFF, 0x02})}), (std::vector<float>{-1, 2}));
    EXPECT_EQ(to_floats({0, DType::f64, {1}, bytes({0, 0, 0, 0, 0, 0, 0xF0, 0x3F})}),
              (std::vector<float>{1}));
    EXPECT_EQ(to_integers({0, DType::i16, {1}, bytes({0xFE, 0xFF})}), (std::vector<std::int64_t>{-2}));
    EXPECT_EQ(to_integers({0, DType::u32, {1}, bytes({0xFF, 0xFF, 0xFF, 0xFF})}),
              (std::vector<std::int64_t>{4294967295}));
    EXPECT_EQ(to_integers({0, DType::i64, {1}, bytes({1, 0, 0, 0, 0, 0, 0, 0x80})}),
              (std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::min() + 1}));
    EXPECT_EQ(to_integers({0, DType::boolean, {2}, bytes({1, 0})}), (std::vector<std::int64_t>{1, 0}));
    EXPECT_THROW((void)to_integers({0, DType::f32, {1}, bytes({0, 0, 0, 0})}), InputError);
}

} // namespace
} // namespace ponderscope
