// SPDX-License-Identifier: GPL-3.0-or-later
// `generate`: what is shown while a model goes on is what is recorded of it; and `record --from`.
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/trace/reader.h"
#include "core/trace/recorded_choices.h"
#include "tests/core/cli/run_program.h"
#include "tests/support/test_data.h"
#include "tests/support/tiny_checkpoint.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <sstream>

namespace ponderscope {
namespace {

using namespace testing;

class Generate : public ::testing::Test {
protected:
    void SetUp() override {
        TinyCheckpoint{.pondering_steps = 2}.write(folder_ / "model");
        model_ = (folder_ / "model").string();
        trace_ = (folder_ / "out.ponder").string();
    }
    [[nodiscard]] static std::vector<nlohmann::json> lines(const std::string& text) {
        std::vector<nlohmann::json> all;
        std::istringstream stream(text);
        for (std::string line; std::getline(stream, line);) {
            all.push_back(nlohmann::json::parse(line));
        }
        return all;
    }

    TemporaryFolder folder_;
    std::string model_;
    std::string trace_;
};

/// A draw belongs to the sequence and the position: batches of any size give the same.
TEST_F(Generate, RecordedTogetherPromptsGoOnAsInBatches) {
    const std::string first = "[10,50,30,70,12]", second = "[99,50,31,44,80,77,3]";
    write_file_atomically(folder_ / "ids.json", "[" + first + "," + second + "," + first + "]");
    const auto recorded = [&](const std::string& batch) {
        succeed({"record", model_, "--ids", (folder_ / "ids.json").string(), "--generate", "12",
                 "--temperature", "1", "--seed", "3", "--batch", batch, "-o", trace_, "--name", "b" + batch});
        const TraceReader reader = TraceReader::open(trace_);
        std::vector<std::vector<std::int32_t>> all;
        for (std::int64_t number = 0; number < 3; ++number) {
            all.push_back(reader.tokens(find_run(reader, "b" + batch).id, number).id);
        }
        return all;
    };
    const auto whole = recorded("8");
    EXPECT_EQ(recorded("1"), whole);
    EXPECT_EQ(recorded("2"), whole);
    EXPECT_NE(whole[0], whole[2]) << "sequences draw for themselves";
}

/// The bound of calm_margin decays with the tokens that a generation may come to, not with those it came to.
TEST_F(Generate, WhatEndsEarlyIsDecidedAsItWasPlanned) {
    const std::filesystem::path model = folder_ / "ending";
    std::filesystem::copy(source_tree() / "sample_models/adaponderlm-neox-1m", model,
                          std::filesystem::copy_options::recursive);
    nlohmann::json config = read_json_file(model / "config.json");
    config["eos_token_id"] = 66;
    std::filesystem::remove(model / "config.json");
    write_file_atomically(model / "config.json", config.dump());
    const std::string policy = "calm_margin:lambda=0.18";
    const std::vector<nlohmann::json> said =
        lines(succeed({"generate", model.string(), "--prompt", "The ferry was", "--tokens", "200", "--policy",
                       policy, "-o", trace_, "--name", "said", "--json"}));
    succeed({"record", model.string(), "--prompt", "The ferry was", "--generate", "200", "--policy", policy,
             "-o", trace_, "--name", "recorded"});
    succeed({"record", model.string(), "--from", trace_ + "#said", "--policy", "full", "-o", trace_, "--name",
             "all"});
    const std::string reruns = (folder_ / "reruns.ponder").string();
    succeed({"policy", trace_ + "#all", "--policy", policy, "--rerun", model.string(), "-o", reruns,
             "--replicates", "100"});
    const TraceReader reader = TraceReader::open(trace_);
    const TokenColumns tokens = reader.tokens(find_run(reader, "said").id, 0);
    ASSERT_LT(tokens.size(), 150U);
    for (std::size_t row = 0; row + 1 < tokens.size(); ++row) {
        EXPECT_EQ(said[row + 1]["steps"], tokens.steps[row]) << row;
    }
    const TraceReader rerun = TraceReader::open(reruns);
    for (const TokenColumns& same : {reader.tokens(find_run(reader, "recorded").id, 0),
                                     rerun.tokens(find_run(rerun, "all calm_margin:lambda=0.18").id, 0)}) {
        EXPECT_EQ(same.id, tokens.id);
        EXPECT_EQ(same.steps, tokens.steps);
    }
    EXPECT_EQ(recorded_choices(find_run(reader, "all")).planned_length(0),
              said.front()["prompt_tokens"].get<std::int64_t>() + 200);
}

TEST_F(Generate, EveryLineIsWhatTheTraceHolds) {
    const std::string result = succeed({"generate", model_, "--prompt", "The ferry", "--tokens", "6", "-o",
                                        trace_, "--name", "said", "--json", "--progress", "none"});
    const std::vector<nlohmann::json> said = lines(result);
    ASSERT_EQ(said.size(), 1 + 8 + 6 + 1U); // start, the prompt's later tokens, new ones, recorded
    EXPECT_EQ(said.front()["event"], "start");
    EXPECT_EQ(said.front()["prompt_tokens"], 9);
    EXPECT_EQ(said.front()["max_steps"], 2);
    EXPECT_EQ(said.back()["event"], "recorded");
    EXPECT_EQ(said.back()["run"], "said");
    EXPECT_TRUE(said.back()["complete"]);

    const TraceReader reader = TraceReader::open(trace_);
    const RunInfo run = find_run(reader, "said");
    EXPECT_EQ(run.scoring, "exact");
    const TokenColumns tokens = reader.tokens(run.id, 0);
    ASSERT_EQ(tokens.size(), 15U);
    EXPECT_EQ(reader.text(run.id, 0).substr(0, 9), "The ferry");
    const std::optional<SignalChunk> nll = reader.signal(run.id, 0, "nll");
    const std::optional<SignalChunk> candidates = reader.signal(run.id, 0, "candidate_ids");
    ASSERT_TRUE(nll && candidates);
    const std::vector<float> by_step = to_floats(*nll);
    const std::vector<std::int64_t> ids = to_integers(*candidates);
    for (std::size_t token = 1; token < 15; ++token) {
        const nlohmann::json& line = said[token];
        const std::size_t row = token - 1;
        SCOPED_TRACE(token);
        EXPECT_EQ(line["event"], "token");
        EXPECT_EQ(line["position"], token);
        EXPECT_EQ(line["given"], token < 9);
        EXPECT_EQ(line["token"]["id"], tokens.id[token]);
        EXPECT_EQ(line["steps"], tokens.steps[row]);
        EXPECT_EQ(line["flops"], tokens.flops[row]);
        EXPECT_EQ(line["rank"], tokens.rank[row]);
        EXPECT_NEAR(line["nll"].get<double>(), static_cast<double>(tokens.nll[row]), 1e-4);
        EXPECT_NEAR(line["entropy"].get<double>(), static_cast<double>(tokens.entropy[row]), 1e-4);
        const nlohmann::json& values = line["signals"]["nll"]["values"];
        ASSERT_EQ(values.size(), 3U);
        for (std::size_t step = 0; step < 3; ++step) {
            if (token < 9) { // the target was known before the steps ran
                EXPECT_NEAR(values[step].get<double>(), static_cast<double>(by_step[row * 3 + step]), 1e-4);
            } else {
                EXPECT_TRUE(values[step].is_null());
            }
        }
        EXPECT_EQ(line["signals"]["candidate_ids"]["values"][0], ids[row * 30]);
    }
}

TEST_F(Generate, GreedyIsTheMostProbableAndSamplingBelongsToItsSeed) {
    const auto ids = [&](const std::vector<std::string>& more) {
        const std::string result =
            succeed(Words{"generate", model_, "--prompt", "ab", "--tokens", "12", "--json"} + more);
        std::vector<int> all;
        for (const nlohmann::json& line : lines(result)) {
            if (line["event"] == "token" && line["given"] == false) {
                all.push_back(line["token"]["id"]);
                if (more.empty()) {
                    EXPECT_EQ(line["rank"], 1);
                }
            }
        }
        return all;
    };
    const std::vector<int> greedy = ids({});
    EXPECT_EQ(greedy, ids({"--temperature", "1", "--top-p", "0.000001", "--seed", "9"}));
    EXPECT_EQ(greedy, ids({"--temperature", "1", "--top-k", "1", "--seed", "9"}));
    const std::vector<int> drawn = ids({"--temperature", "2", "--seed", "7"});
    EXPECT_EQ(drawn, ids({"--temperature", "2", "--seed", "7"}));
    EXPECT_NE(drawn, ids({"--temperature", "2", "--seed", "8"}));
}

TEST_F(Generate, ADrawnTokenHasTheNllOfTheTrace) {
    const std::vector<nlohmann::json> said =
        lines(succeed({"generate", model_, "--prompt", "The ferry", "--tokens", "20", "--temperature", "2",
                       "--seed", "7", "-o", trace_, "--json"}));
    const TokenColumns tokens = TraceReader::open(trace_).tokens(1, 0);
    for (std::size_t row = 0; row + 1 < tokens.size(); ++row) {
        const nlohmann::json& line = said[row + 1];
        EXPECT_NEAR(line["nll"].get<double>(), static_cast<double>(tokens.nll[row]), 1e-5) << row;
        EXPECT_EQ(line["rank"], tokens.rank[row]) << row;
    }
}

TEST_F(Generate, ABranchBeginsWithTheIdsOfItsParent) {
    const std::vector<std::string> drawn{"--temperature", "2", "--seed", "7"};
    const auto generate = [&](const std::string& name, std::vector<std::string> more,
                              const std::vector<std::string>& rules) {
        std::vector<std::string> arguments{"generate", model_, "-o", trace_, "--name", name};
        arguments.insert(arguments.end(), more.begin(), more.end());
        arguments.insert(arguments.end(), rules.begin(), rules.end());
        succeed(arguments);
        const TraceReader reader = TraceReader::open(trace_);
        return reader.tokens(find_run(reader, name).id, 0).id;
    };
    for (const std::vector<std::string>& rules : {std::vector<std::string>(), drawn}) {
        const std::string root = rules.empty() ? "greedy" : "drawn";
        const std::vector<std::int32_t> ids =
            generate(root, {"--prompt", "The ferry", "--tokens", "12"}, rules);
        ASSERT_EQ(ids.size(), 21U);
        // Nothing forced: the same tokens are chosen again.
        EXPECT_EQ(
            generate(root + " again", {"--from", trace_ + "#" + root, "--at", "13", "--tokens", "8"}, rules),
            ids);
        // Half a character has no text of its own, and stays the id that it is.
        const std::vector<std::int32_t> forced =
            generate(root + " forced",
                     {"--from", trace_ + "#" + root, "--at", "13", "--force", "226", "--tokens", "5"}, rules);
        const std::vector<std::int32_t> later =
            generate(root + " later", {"--from", trace_ + "#" + root + " forced", "--tokens", "3"}, rules);
        ASSERT_EQ(forced.size(), 19U);
        ASSERT_EQ(later.size(), 22U);
        EXPECT_TRUE(std::equal(ids.begin(), ids.begin() + 13, forced.begin()));
        EXPECT_EQ(forced[13], 226);
        EXPECT_TRUE(std::equal(forced.begin(), forced.end(), later.begin()));
        const TraceReader reader = TraceReader::open(trace_);
        const std::string digest = find_run(reader, root).text_digest;
        EXPECT_EQ(recorded_choices(find_run(reader, root + " again")).branch,
                  (Branch{root, digest, 0, 13, std::nullopt}));
        EXPECT_EQ(recorded_choices(find_run(reader, root + " forced")).branch,
                  (Branch{root, digest, 0, 13, 226}));
        EXPECT_FALSE(recorded_choices(find_run(reader, root)).branch);
    }
    EXPECT_NE(json_of({"inspect", trace_}).dump().find(R"("at":13,"forced":226,"of":"drawn","sequence":0)"),
              std::string::npos);
}

TEST_F(Generate, SamplingIsRecordedAsItIsPrinted) {
    const std::vector<nlohmann::json> said =
        lines(succeed({"generate", model_, "--prompt", "The ferry", "--tokens", "6", "--temperature", "2",
                       "--top-k", "3", "-o", trace_, "--json"}));
    const TraceReader reader = TraceReader::open(trace_);
    const std::vector<std::int64_t> ids = to_integers(*reader.signal(1, 0, signal::sampling_ids));
    const std::vector<float> after = to_floats(*reader.signal(1, 0, signal::sampling_after));
    ASSERT_EQ(ids.size(), 150U);
    ASSERT_EQ(after.size(), 150U);
    for (std::size_t row = 0; row < 15; ++row) {
        const bool generated = row >= 8 && row < 14;
        double sum = 0;
        for (std::size_t i = row * 10; i < row * 10 + 10; ++i) {
            EXPECT_EQ(ids[i] < 0, !generated) << row;
            EXPECT_EQ(std::isnan(after[i]), !generated) << row;
            sum += static_cast<double>(after[i]);
            if (generated) {
                EXPECT_EQ(said[row + 1]["signals"]["sampling_ids"]["values"][i - row * 10], ids[i]);
            }
        }
        if (generated) {
            EXPECT_NEAR(sum, 1, 1e-5) << "three tokens were left to draw from";
        }
    }
    succeed({"check", trace_});
}

TEST_F(Generate, BranchesThatCannotBeAreRefused) {
    succeed({"generate", model_, "--prompt", "The ferry", "--tokens", "4", "-o", trace_});
    TinyCheckpoint{.pondering_steps = 2, .seed = 5}.write(folder_ / "other");
    for (const auto& [wrong, id] : std::vector<std::pair<std::vector<std::string>, std::string>>{
             {{model_, "--at", "0"}, "usage.value"},
             {{model_, "--at", "14"}, "usage.value"},
             {{model_, "--force", "100000"}, "usage.value"},
             {{model_, "--force", "-1"}, "usage.value"},
             {{model_, "--sequence", "1"}, "usage.value"},
             {{model_, "--prompt", "x"}, "usage.conflict"},
             {{model_, "--tokens", "64"}, ""},
             {{(folder_ / "other").string()}, "resume.differs"}}) {
        expect_refused(Words{"generate", "--from", trace_, "-o", (folder_ / "new.ponder").string()} + wrong,
                       {id});
        EXPECT_FALSE(std::filesystem::exists(folder_ / "new.ponder"));
    }
    refused({"generate", model_, "--prompt", "x", "--at", "1"});
    refused({"generate", model_, "--from", trace_ + "#9"});
}

TEST_F(Generate, WithoutJsonItWritesTheText) {
    const std::string result = succeed({"generate", model_, "--prompt", "Once", "--tokens", "4"});
    EXPECT_EQ(result.substr(0, 4), "Once");
}

TEST_F(Generate, ZeroTokensReadThePrompt) {
    const std::string result = succeed({"generate", model_, "--prompt", "Once", "--tokens", "0", "--json"});
    EXPECT_EQ(lines(result).size(), 4U); // start and three more tokens
}

TEST_F(Generate, WrongInputIsOneSentenceAndLeavesNoTrace) {
    for (const std::vector<std::string>& wrong : std::vector<std::vector<std::string>>{
             {"generate", model_, "--prompt", "x", "--tokens", "0", "-o", trace_},
             {"generate", model_, "--prompt", "some words", "--tokens", "64", "-o", trace_}, // 64 positions
             {"generate", model_, "--prompt", "x", "--tokens", "-1"},
             {"generate", model_, "--prompt", "x", "--top-p", "2"},
             {"generate", model_, "--prompt", "x", "--temperature", "1", "--top-p", "0"},
             {"generate", model_, "--prompt", "x", "--kv", "shared", "--policy", "fixed:n=1", "--attention",
              "0", "-o", trace_},
             {"generate", model_, "--prompt", "some words", "-o", model_ + "/config.json"},
             {"generate", (folder_ / "nowhere").string(), "--prompt", "x"},
             {"generate", model_}}) {
        const ProgramResult result = run_ponderscope(wrong);
        EXPECT_EQ(result.code, 2);
        EXPECT_EQ(result.out, "");
        EXPECT_EQ(result.err.rfind("ponderscope: ", 0), 0U) << result.err;
        EXPECT_FALSE(std::filesystem::exists(trace_));
    }
}

TEST_F(Generate, FromARunComputesTheSameTokensAgain) {
    succeed({"generate", model_, "--prompt", "The river", "--tokens", "8", "-o", trace_});
    succeed({"record", model_, "--from", trace_ + "#1", "-o", trace_, "--name", "again"});
    succeed({"record", model_, "--from", trace_ + "#1", "--force-steps", "5:0", "-o", trace_, "--name",
             "changed"});
    const TraceReader reader = TraceReader::open(trace_);
    const std::vector<RunInfo> runs = reader.runs();
    ASSERT_EQ(runs.size(), 3U);
    EXPECT_EQ(runs[0].text_digest, runs[1].text_digest); // so they are compared as one text
    EXPECT_EQ(runs[0].text_digest, runs[2].text_digest);
    const TokenColumns first = reader.tokens(runs[0].id, 0);
    const TokenColumns second = reader.tokens(runs[1].id, 0);
    const TokenColumns third = reader.tokens(runs[2].id, 0);
    EXPECT_EQ(first.id, second.id);
    EXPECT_EQ(first.begin, second.begin);
    EXPECT_EQ(first.steps, second.steps);
    EXPECT_EQ(third.steps[5], 0);
    EXPECT_EQ(third.nll[3], first.nll[3]); // what stands before does not change
    EXPECT_NE(third.nll[5], first.nll[5]);

    refused({"record", model_, "--from", trace_ + "#9", "-o", trace_});
    expect_refused({"record", model_, "--from", trace_, "--prompt", "x", "-o", trace_}, {"[usage.conflict]"});
}

} // namespace
} // namespace ponderscope
