// SPDX-License-Identifier: GPL-3.0-or-later
// What record --resume goes on with, and what it refuses.
#include "core/base/files.h"
#include "core/trace/reader.h"
#include "tests/core/cli/run_program.h"
#include "tests/core/trace/sample.h"
#include "tests/support/test_data.h"
#include "tests/support/tiny_checkpoint.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace ponderscope {
namespace {

using testing::ProgramResult;
using testing::run_ponderscope;

class Resume : public ::testing::Test {
protected:
    testing::TemporaryFolder folder;
    std::string model = folder / "model";
    std::string corpus = folder / "corpus.jsonl";
    std::string trace = folder / "a.ponder";

    void SetUp() override {
        testing::TinyCheckpoint tiny{.max_positions = 96, .pondering_steps = 2};
        tiny.write(model);
        std::string lines;
        for (int i = 0; i < 3; ++i) {
            lines += nlohmann::json{{"text", "Line " + std::to_string(i) + " of a corpus."},
                                    {"body", "Other."},
                                    {"class", "a"}}
                         .dump() +
                     "\n";
        }
        write_file_atomically(corpus, lines);
    }
    [[nodiscard]] ProgramResult record(std::vector<std::string> more) const {
        more.insert(more.begin(), {"record", model, "--jsonl", corpus, "-o", trace, "--name", "x"});
        return run_ponderscope(more);
    }
    /// The newest run as a kill leaves it, with one of its sequences finished.
    void cut_off() const {
        const std::string run = "(SELECT max(id) FROM run)";
        const std::string behind = " (SELECT id FROM sequence WHERE run = " + run + " AND number > 0)";
        testing::sql(trace, "DELETE FROM chunk WHERE sequence IN" + behind +
                                "; DELETE FROM token_row WHERE row / 4294967296 IN" + behind +
                                "; DELETE FROM text WHERE row / 4294967296 IN" + behind +
                                "; DELETE FROM sequence WHERE id IN" + behind +
                                "; UPDATE run SET complete = 0 WHERE id = " + run);
    }
    void expect_refused(const std::vector<std::string>& first, std::vector<std::string> then,
                        const std::string& why) const {
        std::filesystem::remove(trace);
        const ProgramResult recorded = record(first);
        ASSERT_EQ(recorded.code, 0) << recorded.err;
        cut_off();
        then.emplace_back("--resume");
        const ProgramResult refused = record(then);
        EXPECT_EQ(refused.code, 2) << refused.out;
        EXPECT_NE(refused.err.find(why), std::string::npos) << refused.err;
        EXPECT_TRUE(refused.err.ends_with("[resume.differs]\n")) << refused.err;
        EXPECT_FALSE(TraceReader::open(trace).runs().front().complete);
    }
};

TEST_F(Resume, WhatIsReadAndKeptMustBeTheSame) {
    expect_refused({"--record", "basic,states:0"}, {"--record", "basic,states:1"}, " state");
    expect_refused({"--attention", "0:0"}, {"--attention", "1:0"}, " attention");
    expect_refused({"--record", "basic"}, {"--record", "basic", "--no-candidates"}, "candidate_ids");
    expect_refused({}, {"--bos", "never"}, "--bos never");
    expect_refused({"--label-field", "class"}, {}, "--label-field class");
    expect_refused({"--group-field", "class"}, {"--group-field", "text"}, "--group-field text");
    expect_refused({}, {"--text-field", "body"}, "--text-field");
    expect_refused({"--limit-tokens", "20"}, {"--limit-tokens", "40"}, "--limit-tokens 20");
    expect_refused({}, {"--policy", "fixed:n=1"}, "--policy learned");
}

TEST_F(Resume, WhatWasChangedInTheModelMustBeTheSame) {
    model = testing::source_tree() / "sample_models/cabinet/depth_attention-llama";
    expect_refused({"--ablate-source", "0"}, {}, "layer 0");
    expect_refused({}, {"--ablate-source", "0"}, "layer 0");
}

TEST_F(Resume, ARunThatTheWriterRenamedIsFound) {
    ASSERT_EQ(record({}).code, 0);
    ASSERT_EQ(record({}).code, 0); // "x (2)"
    const double nll = TraceReader::open(trace).runs().at(0).nll_sum;
    cut_off();
    const ProgramResult resumed = record({"--resume"});
    ASSERT_EQ(resumed.code, 0) << resumed.err;
    EXPECT_NE(resumed.out.find("#x (2)"), std::string::npos) << resumed.out;
    std::vector<RunInfo> runs = TraceReader::open(trace).runs();
    ASSERT_EQ(runs.size(), 2U);
    EXPECT_TRUE(runs[1].complete);
    EXPECT_EQ(runs[1].nll_sum, nll);
    const ProgramResult again = record({"--resume"});
    EXPECT_EQ(again.code, 0) << again.err;
    EXPECT_EQ(TraceReader::open(trace).runs().size(), 2U);
}

TEST_F(Resume, OfTwoThatWereCutOffTheOneThatFitsIsFound) {
    ASSERT_EQ(record({}).code, 0);
    cut_off();
    ASSERT_EQ(record({"--no-candidates"}).code, 0); // "x (2)"
    cut_off();
    const ProgramResult first = record({"--resume"});
    ASSERT_EQ(first.code, 0) << first.err;
    EXPECT_EQ(first.out.find("#x (2)"), std::string::npos) << first.out;
    const ProgramResult second = record({"--no-candidates", "--resume"});
    ASSERT_EQ(second.code, 0) << second.err;
    const std::vector<RunInfo> runs = TraceReader::open(trace).runs();
    ASSERT_EQ(runs.size(), 2U);
    EXPECT_TRUE(runs[0].complete && runs[1].complete);
}

TEST_F(Resume, ProgressGoesOnWhereItWas) {
    ASSERT_EQ(record({}).code, 0);
    cut_off();
    const ProgramResult resumed = record({"--resume", "--batch", "8", "--progress", "json"});
    ASSERT_EQ(resumed.code, 0) << resumed.err;
    const std::size_t line = resumed.err.rfind("\"recording\"");
    ASSERT_NE(line, std::string::npos) << resumed.err;
    const std::size_t begin = resumed.err.rfind('\n', line) + 1;
    const auto last = nlohmann::json::parse(resumed.err.substr(begin, resumed.err.find('\n', line) - begin));
    // Of three sequences of equal length one was there; bytes under scored targets lack the first token.
    EXPECT_GT(last.at("done").get<double>(), 0.9 * last.at("total").get<double>()) << last;
}

TEST_F(Resume, RanksThatKeepOtherThingsAreRefused) {
    ::setenv("WORLD_SIZE", "2", 1);
    ::setenv("RANK", "0", 1);
    EXPECT_EQ(record({}).code, 0);
    ::setenv("RANK", "1", 1);
    const ProgramResult other = record({"--no-candidates"});
    ::unsetenv("WORLD_SIZE");
    ::unsetenv("RANK");
    EXPECT_EQ(other.code, 2) << other.out;
    EXPECT_NE(other.err.find("candidate_ids"), std::string::npos) << other.err;
    EXPECT_TRUE(other.err.ends_with("[shard.mixed]\n")) << other.err;
    EXPECT_FALSE(std::filesystem::exists(folder / "a.r0001-of-0002.ponder"));
}

TEST_F(Resume, ANameWithBracketsIsAName) {
    std::filesystem::create_directory(folder / "run[1]");
    trace = folder / "run[1]/a.ponder";
    const ProgramResult fresh = record({"--resume"});
    ASSERT_EQ(fresh.code, 0) << fresh.err;
    cut_off();
    const ProgramResult resumed = record({"--resume"});
    EXPECT_EQ(resumed.code, 0) << resumed.err;
    EXPECT_TRUE(TraceReader::open(trace).runs().front().complete);
}

} // namespace
} // namespace ponderscope
