// SPDX-License-Identifier: GPL-3.0-or-later
// What `record --patch` says when it is done: of the right runs, in a line that a shell runs, and nothing of
// what was cancelled.
#include "core/base/files.h"
#include "core/trace/reader.h"
#include "tests/core/cli/run_program.h"
#include "tests/support/test_data.h"
#include "tests/support/tiny_checkpoint.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <sys/wait.h>

namespace ponderscope {
namespace {

using testing::ProgramResult;
using testing::run_ponderscope;

class PatchedCli : public ::testing::Test {
protected:
    void SetUp() override {
        testing::TinyCheckpoint model;
        model.pondering_steps = 2;
        model.write(folder_ / "model");
        write_file_atomically(folder_ / "text.txt", "One gull, two gulls, three gulls and a lamp.");
        patch(0);
    }
    [[nodiscard]] std::string at(const std::string& name) const { return (folder_ / name).string(); }
    void patch(int sequence) const {
        const nlohmann::json one{{"to", {{"sequence", sequence}, {"token", 7}, {"step", 1}}},
                                 {"from", "zero"}};
        write_file_atomically(folder_ / "p.json", nlohmann::json{{"patches", {one}}}.dump());
    }
    [[nodiscard]] ProgramResult record(const std::string& trace, std::vector<std::string> more) const {
        std::vector<std::string> arguments{"record",  at("model"), "--text",     at("text.txt"), "-o",
                                           at(trace), "--patch",   at("p.json"), "--progress",   "none"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        return run_ponderscope(arguments);
    }
    /// The command that \p said ends with, run by a shell.
    [[nodiscard]] int run_said(const std::string& said) const {
        const std::size_t begin = said.rfind("\nponderscope compare ") + 1;
        const std::size_t end = said.find(" shows what changed", begin);
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
    testing::TemporaryFolder folder_;
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
