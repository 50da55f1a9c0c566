// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/files.h"
#include "core/checkpoint/safetensors.h"
#include "tests/core/cli/run_program.h"
#include "tests/support/test_data.h"
#include "tests/support/tiny_checkpoint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <span>
#include <sstream>

#include <sys/wait.h>

namespace ponderscope {
namespace {

using namespace testing;

constexpr const char* short_story =
    "The lamp was lit, the lamp was out, and the lamp was lit again before the tide had turned.";

class CommandLine : public ::testing::Test {
protected:
    void SetUp() override {
        TinyCheckpoint vanilla;
        vanilla.write(folder_ / "vanilla");
        TinyCheckpoint pondering{.pondering_steps = 3, .seed = 2};
        pondering.write(folder_ / "ponderlm");
        write_file_atomically(folder_ / "text.txt", short_story);
    }

    std::string at(const std::string& name) const { return (folder_ / name).string(); }

    ProgramResult record(const std::string& model, const std::string& trace,
                         std::vector<std::string> more = {}) const {
        return run_ponderscope(
            Words{"record", at(model), "--text", at("text.txt"), "-o", at(trace), "--json"} + more);
    }

    TemporaryFolder folder_;
};

nlohmann::json parse(const std::string& out) {
    return nlohmann::json::parse(out);
}

TEST_F(CommandLine, EveryVerbHasHelpWithAnExample) {
    for (const char* verb :
         {"record", "generate", "logits",   "inspect", "tokenize", "compare", "policy", "referee",
          "stats",  "lineage",  "annotate", "check",   "train",    "merge",   "rename", "remove",
          "export", "figure",   "page",     "open",    "score",    "tasks"}) {
        const std::string result = succeed({verb, "--help"});
        EXPECT_NE(result.find("Example:\n  ponderscope " + std::string(verb)), std::string::npos)
            << verb << "\n"
            << result;
        std::istringstream lines(result);
        int count = 0;
        for (std::string line; std::getline(lines, line); ++count) {
            EXPECT_LE(line.size(), 80U) << verb << ": " << line;
        }
        EXPECT_LE(count, 50) << verb << ": a screen\n" << result;
        const std::string all = succeed({verb, "--help-all"});
        EXPECT_GE(all.size(), result.size()) << verb;
        EXPECT_EQ(all.find("\n  referee"), std::string::npos) << "of this verb alone";
    }
}

TEST_F(CommandLine, ErrorsHaveIdsThatThePageLists) {
    const ProgramResult result = run_ponderscope({"inspect", at("nowhere.ponder"), "--json"});
    EXPECT_EQ(result.code, 2);
    EXPECT_TRUE(result.err.ends_with(" [file.missing]\n")) << result.err;
    EXPECT_EQ(parse(result.out).at("error"), "file.missing");
    EXPECT_EQ(parse(result.out).at("message").get<std::string>() + " [file.missing]\n",
              result.err.substr(result.err.find(' ') + 1));
    std::string list = "```text\n";
    const auto add = [&](std::string id, const char* meaning) {
        id.resize(24, ' ');
        list += id + meaning + '\n';
    };
#define PONDERSCOPE_ERROR(area, name, meaning) add(#area "." #name, meaning);
#include "core/base/error_ids.def"
#undef PONDERSCOPE_ERROR
    EXPECT_TRUE(read_file(source_tree() / "resources/docs/errors.md").ends_with(list + "```\n")) << list;
}

TEST_F(CommandLine, HelpSaysWhatIsTakenWhereNothingIsGiven) {
    const std::string out = run_ponderscope({"policy", "--help-all"}).out;
    for (const char* usage : {"  learned[:theta=...]  ", "  fixed:n=...  ", "  kl[:theta=5e-04]  ",
                              "  uniform[:rate=...,seed=20261122]  ", "  second_order:theta=...[,hits=1]  ",
                              "--progress TEXT:{auto,json,none}=auto"}) {
        EXPECT_NE(out.find(usage), std::string::npos) << usage << "\n" << out;
    }
}

TEST_F(CommandLine, RecordInspectCompareExportMerge) {
    const ProgramResult first = record("vanilla", "both.ponder");
    ASSERT_EQ(first.code, 0) << first.err;
    const nlohmann::json run = parse(first.out);
    EXPECT_EQ(run.at("run"), "vanilla");
    EXPECT_EQ(run.at("tokens"), std::strlen(short_story));
    EXPECT_EQ(run.at("scored_tokens"), std::strlen(short_story) - 1);
    EXPECT_TRUE(run.at("complete"));
    ASSERT_EQ(record("ponderlm", "both.ponder").code, 0);

    const nlohmann::json about = json_of({"inspect", at("both.ponder")});
    ASSERT_EQ(about.at("runs").size(), 2U);
    EXPECT_EQ(about.at("runs")[1].at("method"), "ponderlm");
    EXPECT_DOUBLE_EQ(about.at("runs")[1].at("mean_steps").get<double>(), 3.0);
    EXPECT_NEAR(about.at("runs")[0].at("mean_nll").get<double>(), run.at("mean_nll").get<double>(), 1e-6);

    const nlohmann::json comparison =
        json_of({"compare", at("both.ponder#vanilla"), at("both.ponder#ponderlm")});
    EXPECT_EQ(comparison.at("pairs").at(0).at("tokens"), std::strlen(short_story) - 1);

    succeed({"export", at("both.ponder"), "-o", at("tables")});
    EXPECT_TRUE(std::filesystem::exists(folder_ / "tables" / "tokens.csv"));

    ASSERT_EQ(record("vanilla", "other.ponder").code, 0);
    succeed({"merge", at("both.ponder"), at("other.ponder"), "-o", at("all.ponder")});
    EXPECT_EQ(parse(run_ponderscope({"inspect", at("all.ponder"), "--json"}).out).at("runs").size(), 3U);
}

TEST_F(CommandLine, LayersAsStepsSayThatTheyKeepNoDepthWeights) {
    const std::string model = source_tree() / "sample_models/cabinet/depth_attention-llama";
    const auto said = [&](const std::vector<std::string>& more) {
        const ProgramResult result = run_ponderscope(
            Words{"record", model, "--prompt", "The stone of the water.", "-o", at("depth.ponder")} + more);
        EXPECT_EQ(result.code, 0) << result.err;
        return result.err.find("--policy") != std::string::npos;
    };
    EXPECT_TRUE(said({"--policy", "full"}));
    EXPECT_TRUE(said({"--record", "layers"}));
    EXPECT_FALSE(said({}));
}

TEST_F(CommandLine, ProgressAsJsonIsOneObjectALine) {
    const ProgramResult result =
        record("ponderlm", "progress.ponder", {"--progress", "json", "--context", "16", "--batch", "1"});
    ASSERT_EQ(result.code, 0) << result.err;
    std::size_t lines = 0;
    std::int64_t last = 0;
    for (std::size_t begin = 0; begin < result.err.size();) {
        const std::size_t end = result.err.find('\n', begin);
        ASSERT_NE(end, std::string::npos);
        const nlohmann::json line = parse(result.err.substr(begin, end - begin));
        if (line.at("activity") == "recording") {
            EXPECT_EQ(line.at("total"), std::strlen(short_story));
            last = line.at("done").get<std::int64_t>();
        }
        ++lines;
        begin = end + 1;
    }
    EXPECT_GT(lines, 0U);
    EXPECT_EQ(last, static_cast<std::int64_t>(std::strlen(short_story)));
}

/// A result that is lost is no success: of a verb that reads, of one that computes, and of help.
TEST_F(CommandLine, WhatCannotBePrintedIsSaid) {
    const std::string program = std::string("'") + PONDERSCOPE_PROGRAM + "'";
    for (const std::string& verb : {std::string("--help"), "inspect '" + at("vanilla") + "'"}) {
        const int status =
            std::system((program + " " + verb + " >/dev/full 2>'" + at("err") + "' </dev/null").c_str());
        EXPECT_EQ(WEXITSTATUS(status), 2) << verb;
        EXPECT_NE(read_file(folder_ / "err").find("[file.space]"), std::string::npos) << verb;
        const int closed = std::system((program + " " + verb + " >&- 2>/dev/null </dev/null").c_str());
        EXPECT_EQ(WEXITSTATUS(closed), 0) << verb;
    }
}

TEST_F(CommandLine, ALimitOnTheSizeOfFilesIsAFullDisk) {
    const std::string long_text = at("long.txt");
    write_file_atomically(long_text, std::string(5000, 'a'));
    const std::vector<std::string> recording{"record", at("vanilla"), "--text", long_text, "-o"};
    const auto with = [](std::vector<std::string> words, const std::string& last) {
        words.push_back(last);
        return words;
    };
    ASSERT_EQ(run_ponderscope(with(recording, at("a.ponder"))).code, 0);
    std::filesystem::create_directory(folder_ / "out");
    for (const std::vector<std::string>& verb : {recording,
                                                 {"merge", at("a.ponder"), "-o"},
                                                 {"export", at("a.ponder"), "-o"},
                                                 {"page", at("a.ponder"), "-o"}}) {
        const ProgramResult result = run_ponderscope(with(verb, at("out/x")), "-f 4");
        EXPECT_EQ(result.code, 2) << verb.front() << ": " << result.err;
        EXPECT_NE(result.err.find("out/x"), std::string::npos) << result.err;
        EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
        EXPECT_TRUE(std::filesystem::is_empty(folder_ / "out")) << verb.front();
    }
}

/// nohup has SIGHUP ignored: a recording goes on when its terminal is gone. Without it the hang-up ends it.
TEST_F(CommandLine, UnderNohupTheTerminalMayGo) {
    write_file_atomically(folder_ / "long.txt", std::string(100'000, 'a'));
    const auto hung_up = [&](const std::string& how) {
        const std::string command = how + " '" + PONDERSCOPE_PROGRAM + "' record '" + at("vanilla") +
                                    "' --text '" + at("long.txt") + "' -o '" + at("hung_up.ponder") +
                                    "' >/dev/null 2>&1 </dev/null & p=$!; sleep 0.2; : >'" + at("times") +
                                    "'; while kill -HUP $p 2>/dev/null; do echo >>'" + at("times") +
                                    "'; sleep 0.05; done; wait $p; exit $?";
        const int status = std::system(command.c_str());
        EXPECT_FALSE(read_file(folder_ / "times").empty())
            << how << ": it had ended before the terminal was gone";
        std::filesystem::remove(folder_ / "hung_up.ponder");
        return WEXITSTATUS(status);
    };
    EXPECT_EQ(hung_up("nohup"), 0);
    const int ended = hung_up("");
    EXPECT_TRUE(ended == 130 || ended == 128 + SIGHUP) << ended; // the latter where it had hardly begun
}

TEST_F(CommandLine, AModelWithoutNumbersIsSaidToBeOne) {
    std::filesystem::copy(folder_ / "ponderlm", folder_ / "nan");
    const SafetensorsFile good = SafetensorsFile::open(folder_ / "ponderlm" / "model.safetensors");
    std::vector<TensorView> tensors(good.tensors().begin(), good.tensors().end());
    std::vector<float> values;
    const auto spoil = [&](const std::string& name, std::size_t from) {
        for (TensorView& tensor : tensors) {
            if (tensor.name == name) {
                values.assign(tensor.bytes.size() / sizeof(float), 0.5F);
                std::fill(values.begin() + static_cast<std::ptrdiff_t>(from), values.end(), NAN);
                tensor.bytes = std::as_bytes(std::span(values));
            }
        }
        write_safetensors(folder_ / "nan" / "model.safetensors", tensors, {});
    };
    // All of it: nothing is predicted.
    spoil("gpt_neox.final_layer_norm.weight", 0);
    for (const std::vector<std::string>& verb :
         {std::vector<std::string>{"record", at("nan"), "--text", at("text.txt"), "-o", at("nan.ponder")},
          {"generate", at("nan"), "--prompt", "the lamp", "--tokens", "3"}}) {
        expect_refused(verb, {"[checkpoint.numbers]"});
    }
    // Of some words: other texts are predicted all the same, and the trace keeps its promises.
    const SafetensorsFile again = SafetensorsFile::open(folder_ / "vanilla" / "model.safetensors");
    tensors.assign(again.tensors().begin(), again.tensors().end());
    std::filesystem::copy(folder_ / "vanilla" / "config.json", folder_ / "nan" / "config.json",
                          std::filesystem::copy_options::overwrite_existing);
    const nlohmann::json ids = parse(run_ponderscope({"tokenize", at("vanilla"), "--prompt", "t"}).out);
    spoil("gpt_neox.embed_in.weight", (ids.at(0).at(0).get<std::size_t>() + 1) * 16); // and a blank is
    write_file_atomically(folder_ / "plain.txt", "abcdefghijklmnopqrst");
    // Whichever comes first.
    for (const auto& [first, second] : {std::pair{"plain.txt", "text.txt"}, {"text.txt", "plain.txt"}}) {
        std::filesystem::remove(folder_ / "nan.ponder");
        const nlohmann::json part = json_of({"record", at("nan"), "--text", at(first), "--text", at(second),
                                             "--batch", "1", "-o", at("nan.ponder")});
        EXPECT_EQ(part.at("scored_tokens"), 19);
        EXPECT_EQ(part.at("lost_tokens"), std::strlen(short_story) - 1);
        const nlohmann::json about = json_of({"inspect", at("nan.ponder")});
        EXPECT_FALSE(about.at("runs").at(0).at("faults").empty()) << about;
        succeed({"check", at("nan.ponder")});
    }
}

TEST_F(CommandLine, TokenizeAndBack) {
    const std::string ids = succeed({"tokenize", at("vanilla"), "--text", at("text.txt")});
    EXPECT_EQ(parse(ids).at(0).size(), std::strlen(short_story));
    write_file_atomically(folder_ / "ids.json", ids);
    const std::string back = succeed({"tokenize", at("vanilla"), "--decode", at("ids.json")});
    EXPECT_EQ(back, std::string(short_story) + "\n");
}

} // namespace
} // namespace ponderscope
