// SPDX-License-Identifier: GPL-3.0-or-later
// record --jsonl, and check on what it recorded.
#include "core/base/files.h"
#include "core/trace/reader.h"
#include "tests/core/cli/run_program.h"
#include "tests/core/trace/sample.h"
#include "tests/support/test_data.h"
#include "tests/support/tiny_checkpoint.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

namespace ponderscope {
namespace {

using namespace testing;

class JsonlVerb : public ::testing::Test {
protected:
    TemporaryFolder folder;
    std::string model = folder / "model";
    std::string trace = folder / "a.ponder";
    std::string corpus = folder / "corpus.jsonl";

    void SetUp() override {
        TinyCheckpoint().write(model);
        std::string lines;
        for (int i = 0; i < 12; ++i) {
            lines += nlohmann::json{{"text", "Line " + std::to_string(i) + " of a small corpus."},
                                    {"author", i % 2 == 0 ? "Ann" : "Bo"},
                                    {"kind", i % 3 == 0 ? "hard" : "easy"}}
                         .dump() +
                     "\n";
        }
        write_file_atomically(corpus, lines);
    }
    /// A pipe into which \p file is written, as another program would.
    std::string pipe_of(const std::string& file) const {
        const std::string pipe = folder / ("pipe" + std::to_string(std::rand()));
        EXPECT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
        EXPECT_EQ(std::system(("cat '" + file + "' > '" + pipe + "' &").c_str()), 0);
        return pipe;
    }
};

TEST_F(JsonlVerb, RecordsGroupsAndLabelsThatStatsCompares) {
    const nlohmann::json result = json_of({"record", model, "--jsonl", corpus, "--group-field", "author",
                                           "--label-field", "kind", "-o", trace});
    EXPECT_EQ(result.at("sequences"), 12);
    EXPECT_EQ(result.at("lines_left_out"), 0);
    EXPECT_EQ(TraceReader::open(trace).sequences(1).at(1).group, "Bo");

    const std::string stats = succeed({"stats", trace, "--json"});
    const auto labels = nlohmann::json::parse(stats).at("labels");
    ASSERT_EQ(labels.size(), 2U) << labels;

    // A model of one step a token: nothing of steps, and no policy.
    const std::string text = succeed({"stats", trace});
    EXPECT_EQ(text.find("NaN"), std::string::npos) << text;
    EXPECT_EQ(text.find("Spearman"), std::string::npos) << text;
    EXPECT_EQ(text.find("drops last"), std::string::npos) << text;
    EXPECT_TRUE(nlohmann::json::parse(stats).at("steps_correlations").empty());
    const std::string about = succeed({"inspect", trace});
    EXPECT_EQ(json_of({"inspect", trace}).at("runs").at(0).at("max_steps"), 0);
    EXPECT_EQ(about.find("policy"), std::string::npos) << about;

    const nlohmann::json check = json_of({"check", trace});
    EXPECT_EQ(check.at("sequences"), 12);
    EXPECT_EQ(check.at("sound"), true);
}

TEST_F(JsonlVerb, AStreamIsWhatAFileIs) {
    succeed({"record", model, "--jsonl", corpus, "-o", trace, "--name", "file"});
    succeed({"record", model, "--jsonl", pipe_of(corpus), "-o", trace, "--name", "pipe"});
    const TraceReader reader = TraceReader::open(trace);
    const std::vector<RunInfo> runs = reader.runs();
    ASSERT_EQ(runs.size(), 2U);
    EXPECT_EQ(runs[0].text_digest, runs[1].text_digest);
    EXPECT_EQ(runs[0].nll_sum, runs[1].nll_sum);
    succeed({"compare", trace + "#file", trace + "#pipe"});
}

TEST_F(JsonlVerb, AStreamThatBreaksKeepsWhatCameBefore) {
    const std::string broken = folder / "broken.jsonl";
    write_file_atomically(broken, read_file(corpus) + "{\"text\": 3}\n" + read_file(corpus));
    // A file is read through before: nothing is recorded.
    expect_refused({"record", model, "--jsonl", broken, "-o", trace},
                   {"broken.jsonl: line 13: ", "[text.line]"});
    EXPECT_FALSE(std::filesystem::exists(trace));

    const auto cut = run_ponderscope({"record", model, "--jsonl", pipe_of(broken), "-o", trace});
    EXPECT_EQ(cut.code, 2);
    EXPECT_TRUE(cut.err.find(": line 13: ") < cut.err.find("[text.line]")) << cut.err;
    EXPECT_FALSE(TraceReader::open(trace).runs().at(0).complete);
    succeed({"check", trace});

    const std::string skipped =
        succeed({"record", model, "--jsonl", pipe_of(broken), "--skip-bad", "-o", trace, "--json"});
    EXPECT_EQ(nlohmann::json::parse(skipped).at("lines_left_out"), 1);
    EXPECT_EQ(nlohmann::json::parse(skipped).at("sequences"), 24);
}

TEST_F(JsonlVerb, AStreamWithNothingToRecordLeavesNoTrace) {
    const std::string one = folder / "one.txt";
    write_file_atomically(one, "x");
    expect_refused({"record", model, "--text", pipe_of(one), "-o", trace}, {"[text.empty]"});
    EXPECT_FALSE(std::filesystem::exists(trace));
}

TEST_F(JsonlVerb, WrongUseIsASentence) {
    const std::string text = folder / "text.txt.gz";
    write_file_atomically(folder / "text.txt", "Some words of a text.");
    ASSERT_EQ(std::system(("gzip '" + (folder / "text.txt").string() + "'").c_str()), 0);
    for (const auto& [options, says] : std::vector<std::pair<std::vector<std::string>, std::string>>{
             {{"--jsonl", corpus, "--prompt", "x"}, "[usage.conflict]"},
             {{"--prompt", "some words", "--group-field", "x"}, "[usage.missing]"},
             {{"--prompt", "some words", "--limit-tokens", "9"}, "[usage.missing]"},
             {{"--jsonl", corpus, "--text-field", "body"}, "line 1: "},
             {{"--jsonl", folder / "absent"}, "absent"},
             {{"--jsonl", "-"}, "[text.empty]"},
             {{"--text", "-"}, "[text.empty]"},
             {{"--text", text, "--force-steps", "0:1"}, "[usage.conflict]"}}) {
        expect_refused(Words{"record", model, "-o", trace} + options, {says});
        EXPECT_FALSE(std::filesystem::exists(trace));
    }
}

TEST_F(JsonlVerb, CheckEndsWithOneWhereAPromiseIsBroken) {
    succeed({"record", model, "--jsonl", corpus, "-o", trace});
    sql(trace, "UPDATE token_row SET rank = 0 WHERE row = 4294967297");
    EXPECT_EQ(run_ponderscope({"check", trace}).code, 1);
    const auto as_json = run_ponderscope({"check", trace, "--json"});
    EXPECT_EQ(as_json.code, 1);
    const auto report = nlohmann::json::parse(as_json.out);
    EXPECT_EQ(report.at("sound"), false);
    EXPECT_EQ(report.at("faults").size(), 2U) << as_json.out; // and the rows' CRC-32
    EXPECT_EQ(run_ponderscope({"check", corpus}).code, 2);
}

} // namespace
} // namespace ponderscope
