// SPDX-License-Identifier: GPL-3.0-or-later
// Runs by their names: which one a verb takes, `rename`, `remove`, `merge TRACE#RUN`, `record --overwrite`;
// and recordings that are interrupted or lose their file.
#include "core/base/files.h"
#include "core/trace/reader.h"
#include "tests/core/cli/run_program.h"
#include "tests/core/trace/sample.h"
#include "tests/support/test_data.h"
#include "tests/support/tiny_checkpoint.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <csignal>
#include <sstream>

namespace ponderscope {
namespace {

namespace fs = std::filesystem;
using namespace testing;

class Runs : public ::testing::Test {
protected:
    void SetUp() override { TinyCheckpoint{.pondering_steps = 2}.write(model); }
    std::string record(const std::string& name, const std::string& file,
                       const std::vector<std::string>& more = {}, const std::string& prompt = "a brown fox") {
        return succeed(Words{"record", model, "--prompt", prompt, "--name", name, "-o", file} + more);
    }
    [[nodiscard]] static std::vector<std::string> names(const std::string& file) {
        std::vector<std::string> all;
        for (const RunInfo& run : TraceReader::open(file).runs()) {
            all.push_back(run.name);
        }
        return all;
    }
    using Names = std::vector<std::string>;

    TemporaryFolder folder;
    std::string model = (folder / "model").string();
    std::string trace = (folder / "t.ponder").string();
};

TEST_F(Runs, SignsInNamesAreNames) {
    for (const char* file : {"a#b.ponder", "c?d.ponder", "50%25.ponder", "e[1].ponder", "file:x.ponder"}) {
        SCOPED_TRACE(file);
        const std::string path = (folder / file).string();
        record("x#y?z", path);
        record("second#", path);
        EXPECT_NE(succeed({"stats", path + "#x#y?z"}).find("x#y?z"), std::string::npos);
        succeed({"rename", path + "#second#", "#"});
        EXPECT_EQ(names(path), (Names{"x#y?z", "#"}));
        succeed({"remove", path + "##"});
        EXPECT_EQ(names(path), Names{"x#y?z"});
        succeed({"stats", path});
    }
    const RunReference split = parse_run_reference("absent.ponder#a#b");
    EXPECT_EQ(split.trace, "absent.ponder");
    EXPECT_EQ(split.run, "a#b");
}

TEST_F(Runs, WithoutANameTheRunThatIsNoRerunIsMeant) {
    record("full", trace, {"--policy", "full"});
    const std::vector<std::string> policy{"policy", trace, "--policy", "fixed:n=1", "--rerun", model};
    succeed(policy);
    ASSERT_EQ(names(trace), (Names{"full", "full fixed:n=1"}));
    succeed(policy);
    EXPECT_EQ(names(trace).size(), 2U) << "the rerun was found again";
    record("other", trace);
    refused(policy); // two that could be meant
}

TEST_F(Runs, ARunIsReplacedWhereThatIsAskedFor) {
    record("x", trace);
    record("x", trace);
    EXPECT_EQ(names(trace), (Names{"x", "x (2)"}));
    const std::string said = record("x", trace, {"--overwrite"}, "another text");
    EXPECT_NE(said.find("#x "), std::string::npos) << said;
    EXPECT_EQ(names(trace), (Names{"x (2)", "x"}));
    const TraceReader reader = TraceReader::open(trace);
    EXPECT_EQ(reader.text(find_run(reader, "x").id, 0), "another text");
    EXPECT_TRUE(is_sound(trace));
    succeed({"check", trace});
    record("new", trace, {"--overwrite"}); // nothing to replace
    refused({"record", model, "--prompt", "a b", "--name", "x", "-o", trace, "--overwrite", "--resume"});
    EXPECT_EQ(names(trace), (Names{"x (2)", "x", "new"}));
}

TEST_F(Runs, AreRenamedRemovedAndTakenAlone) {
    record("a", trace);
    record("b", trace, {}, "another text");
    const std::string alone = (folder / "alone.ponder").string();
    succeed({"merge", trace + "#b", "-o", alone});
    EXPECT_EQ(names(alone), Names{"b"});
    EXPECT_EQ(TraceReader::open(alone).text(1, 0), "another text");
    const std::string both = (folder / "both.ponder").string();
    succeed({"merge", trace + "#b", trace, "-o", both});
    EXPECT_EQ(names(both), (Names{"b", "a", "b (2)"}));
    refused({"merge", trace + "#c", "-o", (folder / "none.ponder").string()});
    EXPECT_FALSE(fs::exists(folder / "none.ponder"));
    succeed({"rename", trace + "#a", "first"});
    refused({"rename", trace + "#first", "b"});
    refused({"rename", trace + "#a", "x"});
    refused({"rename", trace, "x"}); // no run is named
    EXPECT_EQ(names(trace), (Names{"first", "b"}));
    succeed({"remove", trace + "#first"});
    refused({"remove", trace});
    EXPECT_EQ(names(trace), Names{"b"});
    EXPECT_FALSE(fs::exists(trace + "-wal"));
}

TEST_F(Runs, SayTheirMeanStepsAndFlops) {
    const nlohmann::json result = nlohmann::json::parse(record("x", trace, {"--json"}));
    const RunInfo run = TraceReader::open(trace).runs().front();
    EXPECT_DOUBLE_EQ(result["mean_steps"], run.steps_sum / static_cast<double>(run.scored_tokens));
    EXPECT_DOUBLE_EQ(result["mean_flops"], run.flops_sum / static_cast<double>(run.tokens));
    EXPECT_NE(record("y", trace).find("2.00 of 2"), std::string::npos);
}

TEST_F(Runs, AMissingFileIsSaidBeforeAMissingDisplay) {
    expect_refused({"open", (folder / "absent.ponder").string()}, {"absent.ponder"});
}

class Interrupted : public Runs {
protected:
    static void interrupt(int process) { ::kill(process, SIGINT); }
    /// Of some seconds.
    [[nodiscard]] std::string corpus() const {
        std::string lines;
        for (int i = 0; i < 5000; ++i) {
            lines += nlohmann::json{{"text", "Line " + std::to_string(i) + " of a corpus."}}.dump() + "\n";
        }
        const std::string file = (folder / "c.jsonl").string();
        write_file_atomically(file, lines);
        return file;
    }
};

TEST_F(Interrupted, AGenerationStopsWithinATokenAndIsRecordedAsPartial) {
    const std::string sample = (source_tree() / "sample_models/adaponderlm-neox-1m").string();
    fs::remove(trace);
    const ProgramResult result = run_ponderscope_until(
        {"generate", sample, "--tokens", "200", "--json", "--prompt", "The ferry", "-o", trace},
        "\"given\":false", interrupt, STDOUT_FILENO);
    EXPECT_EQ(result.code, 130) << result.err;
    const TraceReader reader = TraceReader::open(trace);
    const RunInfo run = reader.runs().at(0);
    EXPECT_FALSE(run.complete);
    EXPECT_EQ(reader.faults(run.id).size(), 1U);
    EXPECT_TRUE(reader.sequences(run.id).at(0).complete);
    EXPECT_GT(run.tokens, 2);
}

TEST_F(Interrupted, AVerbSaysOneLine) {
    const ProgramResult result = run_ponderscope_until(
        {"record", model, "--jsonl", corpus(), "-o", trace, "--batch", "1", "--progress", "json"},
        "\"recording\"", interrupt);
    EXPECT_EQ(result.code, 130) << result.err;
    std::istringstream stream(result.err);
    std::int64_t said = 0;
    for (std::string line; std::getline(stream, line);) {
        said += line.starts_with("{") ? 0 : 1; // progress
    }
    EXPECT_EQ(said, 1) << result.err;
    EXPECT_FALSE(TraceReader::open(trace).runs().at(0).complete);
}

TEST_F(Interrupted, ARecordingWhoseTraceIsRemovedFailsAndItsTokensAreSaved) {
    const ProgramResult result = run_ponderscope_until(
        {"record", model, "--jsonl", corpus(), "-o", trace, "--batch", "1", "--progress", "json"},
        "\"recording\"", [&](int) {
            for (const char* suffix : {"", "-wal", "-shm", "-lock"}) {
                fs::remove(trace + suffix);
            }
        });
    EXPECT_EQ(result.code, 2) << result.err;
    const TraceReader reader = TraceReader::open(trace);
    EXPECT_TRUE(is_sound(trace));
    EXPECT_FALSE(reader.runs().at(0).complete);
}

} // namespace
} // namespace ponderscope
