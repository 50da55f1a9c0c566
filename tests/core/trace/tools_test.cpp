// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/trace/reader.h"
#include "core/trace/recorded_choices.h"
#include "core/trace/schema.h"
#include "core/trace/tools/export_csv.h"
#include "core/trace/tools/merge.h"
#include "core/trace/tools/summary.h"
#include "core/trace/writer.h"
#include "tests/core/trace/sample.h"
#include "tests/core/trace/trace_test.h"
#include "tests/support/errors.h"

#include <charconv>
#include <clocale>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>

namespace ponderscope {
namespace {

namespace fs = std::filesystem;
using testing::error_of;
using testing::names_in;
using FindRun = testing::TraceTest;
using TraceExport = testing::TraceTest;
using TraceMerge = testing::TraceTest;
using TraceSummary = testing::TraceTest;

std::vector<std::string> lines_of(const fs::path& path) {
    std::vector<std::string> lines;
    std::istringstream text(read_file(path));
    for (std::string line; std::getline(text, line);) {
        lines.push_back(line);
    }
    return lines;
}

/// For lines without quotes.
std::vector<std::string> fields_of(const std::string& line) {
    std::vector<std::string> fields(1);
    for (const char c : line) {
        if (c == ',') {
            fields.emplace_back();
        } else {
            fields.back() += c;
        }
    }
    return fields;
}

TEST_F(TraceMerge, AllRunsInOneFile) {
    testing::add_sample_run(path, "same", 1, {5000, 3}, 999);
    testing::write_trace(folder / "b.ponder", [&](TraceWriter& writer) {
        testing::write_sample_run(writer, "same", 2, {700}, 100);
        writer.begin_run(testing::sample_run("cut off"), testing::sample_signals());
        writer.begin_sequence("half", testing::sample_text(50));
        writer.append(testing::sample_tokens(4, 0, 20, 50), testing::sample_chunks(4, 0, 20));
        writer.put_fault("The power went.");
        writer.leave_run(7);
    });
    std::vector<Progress> seen;
    merge_runs({{path, ""}, {folder / "b.ponder", ""}}, folder / "c.ponder",
               [&](const Progress& progress) { seen.push_back(progress); });
    ASSERT_FALSE(seen.empty());
    EXPECT_EQ(seen.back().done, 5723);
    EXPECT_EQ(seen.back().total, 5723);
    EXPECT_EQ(names_in(folder.path()), (std::vector<std::string>{"a.ponder", "b.ponder", "c.ponder"}));
    const TraceReader merged = TraceReader::open(folder / "c.ponder");
    EXPECT_TRUE(testing::is_sound(folder / "c.ponder"));
    const std::vector<RunInfo> runs = merged.runs();
    ASSERT_EQ(runs.size(), 3U);
    EXPECT_EQ(runs[1].name, "same (2)");
    EXPECT_TRUE(runs[1].complete);
    EXPECT_FALSE(runs[2].complete);
    EXPECT_EQ(runs[2].seconds, 7);
    const TraceReader a = TraceReader::open(path);
    testing::expect_same_row(runs[0], a.runs()[0]);
    EXPECT_EQ(merged.text(1, 0), a.text(1, 0));
    EXPECT_EQ(merged.tokens(1, 0).flops, a.tokens(1, 0).flops);
    for (const auto& [name, chunk] : testing::sample_chunks(1, 0, 5000)) {
        EXPECT_TRUE(merged.signal(1, 0, name)->data == chunk.data) << name;
    }
    EXPECT_EQ(merged.tokens(3, 0).size(), 20U);
    EXPECT_EQ(merged.faults(3)[0].message, "The power went.");
    EXPECT_EQ(merged.faults(3)[0].sequence, 0);
    EXPECT_EQ(merged.token_bytes(2, 9), "<9>");
    EXPECT_EQ(testing::sql_value(folder / "c.ponder", "SELECT count(*) FROM vocabulary"), "100");

    // Nothing is overwritten, and nothing half-made stays.
    EXPECT_THROW(merge_runs({{path, ""}}, folder / "b.ponder"), InputError);
    EXPECT_THROW(merge_runs({}, folder / "d.ponder"), InputError);
    EXPECT_THROW(merge_runs({{path, ""}, {folder / "absent.ponder", ""}}, folder / "d.ponder"), InputError);
    std::stop_source stop;
    stop.request_stop();
    EXPECT_THROW(merge_runs({{path, ""}}, folder / "d.ponder", {}, stop.get_token()), Cancelled);
    testing::sql(folder / "b.ponder", "DELETE FROM token_row WHERE row % 7 = 3");
    EXPECT_THROW(merge_runs({{path, ""}, {folder / "b.ponder", ""}}, folder / "d.ponder"), InputError);
    EXPECT_EQ(names_in(folder.path()), (std::vector<std::string>{"a.ponder", "b.ponder", "c.ponder"}));
}

/// What lies in the new file gets new digests: damage that came with it would look sound from then on.
TEST_F(TraceMerge, BytesThatAreNotThoseThatWereRecordedGoNowhere) {
    const fs::path sound = folder / "sound.ponder";
    testing::write_trace(sound, [&](TraceWriter& writer) {
        testing::write_sample_run(writer, "first", 1, {30, 9}, 12);
        testing::write_sample_run(writer, "second", 2, {8}, 8);
    });
    const fs::path from = folder / "damaged.ponder";
    const fs::path to = folder / "to.ponder";
    const std::vector<std::pair<std::string, std::string>> damages{
        {"UPDATE vocabulary SET bytes = CAST('<8>' AS BLOB) WHERE id = 7",
         "token id 7 in the table vocabulary of run first as recorded"},
        {"UPDATE text SET bytes = CAST(replace(CAST(bytes AS TEXT), 'stone', 'stove') AS BLOB) WHERE row = "
         "4294967296",
         "the text of sequence 0 of run first as recorded"},
        {"UPDATE token_row SET entropy = entropy / 2 WHERE row = 2 * 4294967296 + 3",
         "the rows in the table token_row of sequence 1 of run first as recorded"},
        {"UPDATE chunk SET data = CAST(substr(data, 1, 4) || x'01' || substr(data, 6) AS BLOB) WHERE "
         "sequence = 1 AND "
         "signal = (SELECT id FROM signal WHERE run = 1 AND name = 'rank')",
         "the chunk from token 0 of signal rank of sequence 0 of run first as recorded"},
    };
    for (const auto& [damage, named] : damages) {
        fs::copy_file(sound, from, fs::copy_options::overwrite_existing);
        testing::sql(from, damage);
        const auto expect_refusal = [&, what = named](const auto& write) {
            const std::string said = error_of(write);
            EXPECT_TRUE(said.starts_with(from.string() + ": expected " + what)) << said;
            EXPECT_EQ(names_in(folder.path()), (std::vector<std::string>{"damaged.ponder", "sound.ponder"}));
        };
        expect_refusal([&] { merge_runs({{sound, ""}, {from, ""}}, to); });
        expect_refusal([&] { copy_run(from, 1, to); });
        expect_refusal([&] { export_csv(TraceReader::open(from), to); });
    }
    // A run beside the damaged one goes, and so does what was kept without digests.
    EXPECT_EQ(copy_run(from, 2, to), "second");
    testing::sql(from, "UPDATE chunk SET crc32 = NULL");
    merge_runs({{from, ""}}, folder / "bare.ponder");
}

TEST(Names, OfSignalsAreThoseThatEverybodyCanType) {
    for (const char* name : {"A", "Z", "a", "z", "0", "9", "_x", "a.b-c", "kl_previous_current"}) {
        EXPECT_TRUE(schema::is_name(name)) << name;
    }
    EXPECT_TRUE(schema::is_name(std::string(100, 'a')));
    for (const std::string& name :
         {std::string(), std::string(101, 'a'), std::string("a b"), std::string("a/b"), std::string("a:b"),
          std::string("@"), std::string("["), std::string("`"), std::string("{"), std::string("\xC3\xA4")}) {
        EXPECT_FALSE(schema::is_name(name)) << name;
    }
}

TEST_F(FindRun, ListsTwentyRunsAndCountsTheOthers) {
    int added = 0;
    const auto sentence_with = [&](int runs) {
        for (; added < runs; ++added) {
            testing::add_sample_run(path, "r" + std::to_string(added), 1, {3}, 3);
        }
        return error_of([&] { (void)find_run(TraceReader::open(path), "nobody"); });
    };
    EXPECT_NE(sentence_with(20).find("r18, r19"), std::string::npos) << sentence_with(20);
    const std::string more = sentence_with(22);
    EXPECT_NE(more.find("r18, r19 "), std::string::npos) << more;
    EXPECT_EQ(more.find("r20"), std::string::npos) << more;
}

TEST_F(TraceSummary, SaysWhatATraceIs) {
    TraceWriter writer(path);
    testing::write_sample_run(writer, "first", 1, {1500}, 999);
    RunInfo odd = testing::sample_run("odd \x1b[31m\xff name");
    odd.notices = R"(["Computed on cuda:0 a card\u001b.", 7])";
    writer.begin_run(odd, {});
    writer.put_fault("The disk was slow.");
    writer.leave_run(1);
    writer.finish();
    const TraceReader reader = TraceReader::open(path);
    const std::string text = trace_summary(reader);
    EXPECT_NE(text.find("1,500"), std::string::npos) << text;
    EXPECT_NE(text.find("1,499"), std::string::npos) << text;
    EXPECT_NE(text.find("The disk was slow."), std::string::npos) << text;
    EXPECT_NE(text.find("Computed on cuda:0"), std::string::npos) << text;
    EXPECT_EQ(text.find('\x1b'), std::string::npos) << "control characters reach the terminal";
    const RunInfo run = reader.runs()[0];
    const nlohmann::json json = nlohmann::json::parse(trace_summary_json(reader).dump());
    EXPECT_EQ(json["runs"].size(), 2U);
    EXPECT_EQ(json["runs"][1]["complete"], false);
    EXPECT_EQ(json["runs"][0]["perplexity"].get<double>(), std::exp(run.nll_sum / 1499));
    EXPECT_TRUE(json["runs"][1]["perplexity"].is_null());
    EXPECT_EQ(json["runs"][0]["seed"].get<std::uint64_t>(), 0xFFFFFFFFFFFFFFFEULL);
    EXPECT_EQ(json["runs"][1]["faults"][0]["message"], "The disk was slow.");
}

TEST_F(TraceSummary, CountsPatchesWhateverTheFileHolds) {
    const auto summary_of = [&](const std::string& choices) {
        std::filesystem::remove(path);
        TraceWriter writer(path);
        RunInfo run = testing::sample_run("patched");
        run.choices = choices;
        writer.begin_run(run, {});
        writer.leave_run(1);
        writer.finish();
        const TraceReader reader = TraceReader::open(path);
        return std::pair{trace_summary(reader), trace_summary_json(reader)["runs"][0]["choices"]};
    };
    const auto [text, choices] = summary_of(R"({"patches": [{"to": {"token": 1}, "from": "zero"}, 7, {}]})");
    EXPECT_NE(text.find("patches      3 "), std::string::npos) << text;
    EXPECT_EQ(choices["patches"].size(), 3U);
    for (const std::string& damaged :
         {std::string(200'000, '['), std::string("7"), std::string("{\"patches\": 3}"),
          std::string("{\"a\": ") + std::string(100, '[')}) {
        const auto [words, json] = summary_of(damaged);
        EXPECT_EQ(words.find("patches"), std::string::npos);
        EXPECT_TRUE(json.is_null() || json.is_object());
    }
}

TEST_F(TraceExport, TablesReadBackAsTheSameNumbers) {
    testing::add_sample_run(path, "first, with a \"quote\"", 1, {300, 20}, 99);
    // A locale with a decimal comma must not reach the file. Where none is installed the check is the same
    // one twice.
    const char* locale = std::setlocale(LC_ALL, "de_DE.UTF-8");
    export_csv(TraceReader::open(path), folder / "out");
    if (locale != nullptr) {
        std::setlocale(LC_ALL, "C");
    }
    EXPECT_EQ(names_in(folder.path()), (std::vector<std::string>{"a.ponder", "out"}));
    EXPECT_EQ(names_in(folder / "out"),
              (std::vector<std::string>{"runs.csv", "sequences.csv", "signals", "tokens.csv"}));
    EXPECT_EQ(names_in((folder / "out") / "signals"),
              (std::vector<std::string>{"candidate_ids.csv", "candidate_probabilities.csv", "nll.csv",
                                        "rank.csv"}));

    const auto tokens = lines_of((folder / "out") / "tokens.csv");
    ASSERT_EQ(tokens.size(), 321U);
    EXPECT_EQ(
        tokens[0],
        "run,sequence,position,id,text,text_begin,text_end,nll,entropy,max_probability,rank,steps,flops");
    const TokenColumns want = testing::sample_tokens(1, 0, 300, 300);
    for (std::size_t i = 0; i < 300; ++i) {
        const auto fields = fields_of(tokens[i + 1]);
        ASSERT_EQ(fields.size(), 13U);
        EXPECT_EQ(fields[2], std::to_string(i));
        EXPECT_EQ(fields[3], std::to_string(want.id[i]));
        const char* const words[] = {"the ", "stone ", "of ", "r\u00FCbe ", "water ", "and "};
        EXPECT_EQ(fields[4], '"' + std::string(words[i % 6]) + '"');
        if (std::isnan(want.nll[i])) {
            EXPECT_EQ(fields[7], "");
        } else {
            float nll = 0;
            std::from_chars(fields[7].data(), fields[7].data() + fields[7].size(), nll);
            EXPECT_EQ(nll, want.nll[i]) << fields[7];
        }
        EXPECT_EQ(fields[12], std::to_string(want.flops[i]));
    }
    const auto values = lines_of((folder / "out") / "signals" / "candidate_ids.csv");
    ASSERT_EQ(values.size(), 1U + 320 * 40);
    EXPECT_EQ(values[0], "run,sequence,position,step,candidate,value");
    const SignalChunk ids = testing::sample_chunks(1, 0, 300)[2].second;
    const auto numbers = to_integers(ids);
    EXPECT_EQ(values[1 + 137 * 40 + 2 * 10 + 7],
              "1,0,137,2,7," + std::to_string(numbers[137 * 40 + 2 * 10 + 7]));
    EXPECT_NE(
        lines_of((folder / "out") / "runs.csv")[1].find("1,\"first, with a \"\"quote\"\"\",models/small"),
        std::string::npos);

    EXPECT_THROW(export_csv(TraceReader::open(path), folder / "out"), InputError);
    EXPECT_THROW(export_csv(TraceReader::open(path), folder / "other", {5}), InputError);
    std::stop_source stop;
    stop.request_stop();
    EXPECT_THROW(export_csv(TraceReader::open(path), folder / "other", {}, {}, stop.get_token()), Cancelled);
    fs::create_directory(folder / "empty");
    export_csv(TraceReader::open(path), folder / "empty", {1});
    EXPECT_EQ(names_in(folder.path()), (std::vector<std::string>{"a.ponder", "empty", "out"}));
}

TEST(RecordedChoices, OfStrangersAreShallowOrNone) {
    const auto deep = [](std::size_t depth) {
        return "{\"kv\":\"full\",\"patches\":" + std::string(depth, '[') + std::string(depth, ']') + "}";
    };
    EXPECT_EQ(recorded_choices(deep(2)).kv, "full");
    EXPECT_EQ(recorded_choices(deep(2)).patches, "[[]]");
    EXPECT_EQ(recorded_choices(deep(1'000'000)).kv, ""); // whoever writes it down again goes as deep
    EXPECT_TRUE(choices_json(deep(1'000'000)).is_null());
    EXPECT_TRUE(choices_json("[1]").is_null());
    EXPECT_TRUE(choices_json("").is_null());
    RunInfo run;
    run.name = "a";
    EXPECT_EQ(why_no_rerun(run), "");
    run.choices = deep(1);
    EXPECT_NE(why_no_rerun(run).find("--patch"), std::string::npos);
}

TEST_F(TraceExport, NamesAndTextOfStrangersStayData) {
    testing::write_trace(path, [&](TraceWriter& writer) {
        writer.begin_run(testing::sample_run("r"), {{"up", {"token"}, "", "", "", DType::f64}});
        const std::string text =
            "\xE2\x82\xAC,\"\n"; // a three-byte character cut in the middle, then separators
        writer.begin_sequence("t", text);
        TokenColumns tokens = testing::sample_tokens(1, 0, 3, 3);
        tokens.begin = {0, 2, 3};
        tokens.end = {2, 3, 6};
        SignalChunk chunk{0, DType::f64, {3}, std::vector<std::byte>(24)};
        const double values[] = {0.1, std::nan(""), -std::numeric_limits<double>::infinity()};
        std::memcpy(chunk.data.data(), values, 24);
        writer.append(tokens, {{"up", chunk}});
        writer.end_sequence();
        writer.end_run(1);
    });
    testing::sql(path, "UPDATE signal SET name = '../../up'; "
                       "UPDATE sequence SET title = CAST(x'F09F98EDA041E0A0FF' AS TEXT)");
    EXPECT_THROW(export_csv(TraceReader::open(path), folder / "out"), InputError);
    EXPECT_EQ(names_in(folder.path()), (std::vector<std::string>{"a.ponder"}));
    testing::sql(path, "UPDATE signal SET name = 'up'");
    export_csv(TraceReader::open(path), folder / "out");
    EXPECT_EQ(read_file((folder / "out") / "signals" / "up.csv"),
              "run,sequence,position,value\n1,0,0,0.1\n1,0,1,\n1,0,2,-inf\n");
    const std::string half = "\xEF\xBF\xBD";
    const std::string titles = read_file((folder / "out") / "sequences.csv");
    EXPECT_NE(titles.find("," + half + half + half + "A" + half + half + ","), std::string::npos) << titles;
    const std::string table = read_file((folder / "out") / "tokens.csv");
    EXPECT_NE(table.find("," + half + ",0,2,"), std::string::npos) << table;
    EXPECT_NE(table.find(",\",\"\"\n\",3,6,"), std::string::npos) << table;
}

} // namespace
} // namespace ponderscope
