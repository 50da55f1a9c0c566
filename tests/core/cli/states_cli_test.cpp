// SPDX-License-Identifier: GPL-3.0-or-later
// --record states and --patch as a user runs them: what it takes is said first, the trace keeps its promises,
// and a state put in the place of another moves what comes after it.
#include "core/base/files.h"
#include "core/trace/reader.h"
#include "tests/core/cli/run_program.h"
#include "tests/support/test_data.h"
#include "tests/support/tiny_checkpoint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <sys/wait.h>

namespace ponderscope {
namespace {

using namespace testing;

class StatesCli : public ::testing::Test {
protected:
    void SetUp() override {
        TinyCheckpoint model{.pondering_steps = 2};
        model.write(folder_ / "model");
        TinyCheckpoint{}.write(folder_ / "plain");
        write_file_atomically(folder_ / "text.txt",
                              "One gull, two gulls, three gulls and a lamp by the sea.");
    }

    [[nodiscard]] std::string at(const std::string& name) const { return (folder_ / name).string(); }

    [[nodiscard]] ProgramResult record(const std::string& trace, std::vector<std::string> more,
                                       const std::string& model = "model") const {
        return run_ponderscope(Words{"record", at(model), "--text", at("text.txt"), "-o", at(trace)} + more);
    }

    void write_patches(const std::string& name, const nlohmann::json& patches) const {
        write_file_atomically(folder_ / name, nlohmann::json{{"patches", patches}}.dump());
    }

    static std::vector<float> nll_of(const TraceReader& reader, const std::string& run) {
        return reader.tokens(find_run(reader, run).id, 0).nll;
    }

    TemporaryFolder folder_;
};

TEST_F(StatesCli, ThePriceIsSaidAndTheTraceIsSound) {
    const ProgramResult result = record("t.ponder", {"--record", "steps,states:0-1,layers"});
    ASSERT_EQ(result.code, 0) << result.err;
    const TraceReader reader = TraceReader::open(folder_ / "t.ponder");
    const RunInfo run = find_run(reader, "");
    const auto state = reader.signal(run.id, 0, signal::state);
    ASSERT_TRUE(state.has_value());
    EXPECT_EQ(state->dtype, DType::f16);
    ASSERT_EQ(state->shape.size(), 4U);
    EXPECT_EQ(state->shape[1], 3);
    EXPECT_EQ(state->shape[2], 2);
    const auto lens = reader.signal(run.id, 0, signal::layer_nll);
    ASSERT_TRUE(lens.has_value());
    EXPECT_EQ(lens->shape, (std::vector<std::int64_t>{run.tokens, 3, run.layers}));
    EXPECT_NE(result.err.find("--record steps,states:0-1,layers  "), std::string::npos) << result.err;
    succeed({"check", at("t.ponder")});
}

TEST_F(StatesCli, ALevelThatIsNoneIsRefused) {
    const std::vector<std::string> wrong[]{{"stepz", "'stepz'", "value"},
                                           {"steps,basic", "", "value"},
                                           {"states,states", "'states'", "value"},
                                           {"states:", "'states:'", "value"},
                                           {"steps,", "''", "value"},
                                           {"states:9", " 9", "value"},
                                           {"states:x", "'x'", "value"},
                                           {"layers", "", "unsuited"}};
    for (const std::vector<std::string>& one : wrong) {
        const std::string& level = one[0];
        const ProgramResult result = record("never.ponder", {"--record", level});
        EXPECT_EQ(result.code, 2) << level;
        EXPECT_NE(result.err.find(one[1]), std::string::npos) << level << ": " << result.err;
        EXPECT_TRUE(result.err.ends_with("[usage." + one[2] + "]\n")) << level << ": " << result.err;
        EXPECT_FALSE(std::filesystem::exists(folder_ / "never.ponder")) << level;
    }
}

TEST_F(StatesCli, AStateOfTheSamePlaceChangesNothing) {
    write_patches("own.json", {{{"to", {{"token", 6}, {"step", 1}, {"layer", 0}}}, {"from", {{"token", 6}}}},
                               {{"to", {{"token", 9}, {"step", 2}}}, {"from", {{"token", 9}}}}});
    ASSERT_EQ(record("t.ponder", {"--patch", at("own.json"), "--name", "own"}).code, 0);
    const TraceReader reader = TraceReader::open(folder_ / "t.ponder");
    const auto plain = nll_of(reader, "own");
    const auto own = nll_of(reader, "own patched");
    for (std::size_t t = 0; t + 1 < plain.size(); ++t) {
        EXPECT_NEAR(own[t], plain[t], 1e-6) << t;
    }
    EXPECT_EQ(reader.runs().size(), 2U) << "own, own patched";
    succeed({"check", at("t.ponder")});
}

TEST_F(StatesCli, AnotherStateMovesWhatComesAfterAndIsWrittenDown) {
    write_patches("p.json", {{{"to", {{"token", 7}, {"step", 1}, {"layer", 0}}}, {"from", {{"token", 2}}}},
                             {{"to", {{"token", 8}, {"step", 0}}}, {"from", "zero"}},
                             {{"to", {{"token", 9}, {"step", 0}}}, {"from", "zero"}}});
    const ProgramResult result = record("t.ponder", {"--patch", at("p.json"), "--name", "a"});
    ASSERT_EQ(result.code, 0) << result.err;
    EXPECT_NE(result.out.find("t.ponder#a patched'"), std::string::npos) << result.out;
    const TraceReader reader = TraceReader::open(folder_ / "t.ponder");
    const auto before = nll_of(reader, "a");
    const auto after = nll_of(reader, "a patched");
    double moved = 0;
    for (std::size_t t = 0; t + 1 < before.size(); ++t) {
        if (t < 7) {
            EXPECT_NEAR(after[t], before[t], 1e-6) << t;
        } else {
            moved = std::max(moved, std::abs(static_cast<double>(after[t]) - before[t]));
        }
    }
    EXPECT_GT(moved, 1e-4);

    const ProgramResult shown = run_ponderscope({"inspect", at("t.ponder")});
    EXPECT_NE(shown.out.find("patches      3 "), std::string::npos) << shown.out;
    const nlohmann::json json =
        nlohmann::json::parse(run_ponderscope({"inspect", at("t.ponder"), "--json"}).out);
    EXPECT_EQ(json["runs"][1]["choices"]["patches"].size(), 3U);
    succeed({"compare", at("t.ponder") + "#a", at("t.ponder") + "#a patched"});
    expect_refused({"policy", at("t.ponder") + "#a patched", "--policy", "fixed:n=1", "--rerun", at("model")},
                   {"--patch FILE --policy"});
}

TEST_F(StatesCli, APatchOfAStepThatDidNotRunSaysSo) {
    write_patches("p.json", {{{"to", {{"token", 7}, {"step", 2}}}, {"from", "zero"}}});
    const ProgramResult result =
        record("t.ponder", {"--patch", at("p.json"), "--policy", "fixed:n=1", "--progress", "none"});
    ASSERT_EQ(result.code, 0) << result.err;
    EXPECT_NE(result.err.find("1 of 1 "), std::string::npos) << result.err;
    EXPECT_NE(result.err.find(" step 1"), std::string::npos) << result.err;
}

TEST_F(StatesCli, StatesAreTheSameInAllBatches) {
    nlohmann::json patches;
    for (int token = 1; token < 20; ++token) {
        patches.push_back({{"to", {{"token", token}, {"step", 1}}}, {"from", {{"token", 20 - token}}}});
    }
    write_patches("swap.json", patches);
    // Windows of 16 tokens, one at a time and all together.
    std::vector<std::vector<float>> moved;
    for (const char* const batch : {"1", "16"}) {
        ASSERT_EQ(record("t.ponder", {"--patch", at("swap.json"), "--patched-only", "--context", "16",
                                      "--batch", batch, "--name", batch, "--record", "states"})
                      .code,
                  0);
        moved.push_back(nll_of(TraceReader::open(folder_ / "t.ponder"), batch));
    }
    ASSERT_GT(moved[0].size(), 20U);
    for (std::size_t t = 0; t + 1 < moved[0].size(); ++t) {
        EXPECT_NEAR(moved[0][t], moved[1][t], 1e-5) << t;
    }
    const ProgramResult none =
        record("never.ponder", {"--patch", at("swap.json"), "--policy", "fixed:n=0", "--progress", "none"});
    EXPECT_EQ(none.code, 2) << "no token runs the step";
    EXPECT_NE(none.err.find("[patch.place]"), std::string::npos) << none.err;
    EXPECT_FALSE(std::filesystem::exists(folder_ / "never.ponder"));
}

TEST_F(StatesCli, WrongPatchesAreOneSentenceAndNoTrace) {
    const nlohmann::json to{{"token", 5}, {"step", 1}};
    const std::vector<std::pair<nlohmann::json, std::string>> cases{
        {nlohmann::json::array(), "patches"},
        {{{{"to", to}}}, "\"zero\""},
        {{{{"to", to}, {"from", "nothing"}}}, "\"zero\""},
        {{{{"to", to}, {"from", "zero"}, {"scale", 2}}}, "scale"},
        {{{{"to", {{"token", 5}}}, {"from", "zero"}}}, "step"},
        {{{{"to", {{"token", -5}, {"step", 1}}}, {"from", "zero"}}}, "token"},
        {{{{"to", {{"token", 5000}, {"step", 1}}}, {"from", "zero"}}}, "5000"},
        {{{{"to", {{"sequence", 1}, {"token", 5}, {"step", 1}}}, {"from", "zero"}}}, "[patch.place]"},
        {{{{"to", {{"token", 5}, {"step", 3}}}, {"from", "zero"}}}, "[patch.place]"},
        {{{{"to", {{"token", 5}, {"step", 1}, {"layer", 77}}}, {"from", "zero"}}}, "[patch.place]"},
        {{{{"to", to}, {"from", "zero"}}, {{"to", to}, {"from", "zero"}}}, "[patch.place]"},
        {{{{"to", to}, {"from", {{"trace", "other.ponder"}}}}}, "trace"}};
    for (const auto& [patches, words] : cases) {
        write_patches("wrong.json", patches);
        const ProgramResult result =
            record("never.ponder", {"--patch", at("wrong.json"), "--progress", "none"});
        EXPECT_EQ(result.code, 2) << patches.dump();
        EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
        EXPECT_NE(result.err.find(words), std::string::npos) << words << "\n" << result.err;
        EXPECT_FALSE(std::filesystem::exists(folder_ / "never.ponder")) << patches.dump();
    }
    write_file_atomically(folder_ / "wrong.json", "{\"patches\": [");
    EXPECT_EQ(record("never.ponder", {"--patch", at("wrong.json")}).code, 2);
    EXPECT_EQ(record("never.ponder", {"--patched-only"}).code, 2);
}

/// What `record --patch` says when it is done: of the right runs, in a line that a shell runs, and nothing of
/// what was cancelled.
class PatchedCli : public StatesCli {
protected:
    void SetUp() override {
        StatesCli::SetUp();
        patch(0);
    }
    void patch(int sequence) const {
        const nlohmann::json one{{"to", {{"sequence", sequence}, {"token", 7}, {"step", 1}}},
                                 {"from", "zero"}};
        write_patches("p.json", nlohmann::json::array({one}));
    }
    [[nodiscard]] ProgramResult record(const std::string& trace, std::vector<std::string> more) const {
        more.insert(more.end(), {"--patch", at("p.json"), "--progress", "none"});
        return StatesCli::record(trace, more);
    }
    /// The command that \p said ends with, run by a shell.
    [[nodiscard]] int run_said(const std::string& said) const {
        const std::size_t begin = said.rfind("\nponderscope compare ") + 1;
        const std::size_t end = said.find("  # ", begin);
        if (begin == 0 || end == std::string::npos) {
            return -1;
        }
        const std::string arguments =
            said.substr(begin + std::string("ponderscope").size(), end - begin - 11);
        const int status = std::system(("'" + std::string(PONDERSCOPE_PROGRAM) + "'" + arguments +
                                        " --replicates 100 >'" + at("compared") + "' 2>&1 </dev/null")
                                           .c_str());
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
    }
};

TEST_F(PatchedCli, RunsAreFoundByTheirNumbersNotByNamesThatAreNumbers) {
    // The first run is named "2", and the second one has that number.
    const ProgramResult made = record("u.ponder", {"--name", "2"});
    EXPECT_NE(made.out.find("u.ponder#2  "), std::string::npos) << made.out;
    EXPECT_NE(made.out.find("u.ponder#2 patched  "), std::string::npos) << made.out;
    const nlohmann::json said = nlohmann::json::parse(record("v.ponder", {"--name", "2", "--json"}).out);
    EXPECT_EQ(said["run"], "2 patched");
    EXPECT_EQ(said["without_patches"], "2");
    EXPECT_EQ(said["patches"], 1);
}

TEST_F(PatchedCli, TheCommandRunsWhateverTheNames) {
    for (const auto& [trace, name] : std::vector<std::pair<std::string, std::string>>{
             {"it's.ponder", "a b"}, {"plain.ponder", "a#b"}, {"$HOME `x`.ponder", "it's \"quoted\""}}) {
        const ProgramResult made = record(trace, {"--name", name});
        ASSERT_EQ(made.code, 0) << made.err;
        EXPECT_EQ(run_said(made.out), 0) << made.out << read_file(folder_ / "compared");
    }
    EXPECT_EQ(record("never.ponder", {"--name", "red\x1B[31m"}).code, 2);
    EXPECT_FALSE(std::filesystem::exists(folder_ / "never.ponder"));
    const ProgramResult strange = record("s.ponder", {"--name", "red\xE2\x80\xAEgnp"});
    EXPECT_EQ(strange.out.find("\xE2\x80\xAE"), std::string::npos) << "to the terminal";
    EXPECT_EQ(run_said(strange.out), 0) << strange.out << read_file(folder_ / "compared");
}

TEST_F(PatchedCli, WhatIsCancelledSaysSoAndNothingOfPatches) {
    std::string text;
    for (int i = 0; i < 12'000; ++i) {
        text += "One gull, two gulls, three. ";
    }
    write_file_atomically(folder_ / "long.txt", text);
    patch(1);
    // Stopped while the first sequence is computed, which comes before that of the patch.
    const auto cancelled = [&](const std::string& trace, const std::string& more) {
        std::filesystem::remove(folder_ / "err"); // what the loop waits for is said by this run
        const std::string command =
            "'" + std::string(PONDERSCOPE_PROGRAM) + "' record '" + at("model") + "' --text '" +
            at("long.txt") + "' '" + at("text.txt") + "' --patch '" + at("p.json") + "' -o '" + at(trace) +
            "' " + more + " --progress json >'" + at("out") + "' 2>'" + at("err") +
            "' </dev/null & pid=$!; while kill -0 $pid 2>/dev/null && ! grep -qs '\"recording\"' '" +
            at("err") + "'; do sleep 0.05; done; kill -TERM $pid; wait $pid";
        const int status = std::system(command.c_str());
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
    };
    EXPECT_EQ(cancelled("only.ponder", "--patched-only"), 130) << read_file(folder_ / "err");
    EXPECT_EQ(read_file(folder_ / "err").find("expected sequence 1"), std::string::npos);
    EXPECT_EQ(nlohmann::json::parse(read_file(folder_ / "out"))["patches"], 1);
    EXPECT_EQ(TraceReader::open(folder_ / "only.ponder").runs().front().name, "model patched");

    EXPECT_EQ(cancelled("both.ponder", ""), 130) << read_file(folder_ / "err");
    const nlohmann::json said = nlohmann::json::parse(read_file(folder_ / "out"));
    EXPECT_EQ(said["complete"], false);
    EXPECT_EQ(said["patches"], 0) << "of the run without them";
    EXPECT_TRUE(said["without_patches"].is_null());
    EXPECT_EQ(TraceReader::open(folder_ / "both.ponder").runs().size(), 1U);
}

} // namespace
} // namespace ponderscope
