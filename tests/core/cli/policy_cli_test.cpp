// SPDX-License-Identifier: GPL-3.0-or-later
// `ponderscope policy` on traces that no model made.
#include "core/base/files.h"
#include "tests/core/cli/run_program.h"
#include "tests/core/trace/sample.h"
#include "tests/support/test_data.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>

namespace ponderscope {
namespace {

using namespace testing;

class PolicyVerb : public ::testing::Test {
protected:
    void SetUp() override {
        add_sample_run(folder_ / "t.ponder", "first", 1, {300, 200}, 100);
        add_sample_run(folder_ / "t.ponder", "second", 2, {300}, 100);
    }

    ProgramResult policy(const std::string& run, std::vector<std::string> more) const {
        more.insert(more.begin(), {"policy", (folder_ / "t.ponder").string() + run, "--replicates", "200"});
        return run_ponderscope(more);
    }

    TemporaryFolder folder_;
};

TEST_F(PolicyVerb, MakesThePointsOfAFront) {
    const ProgramResult result =
        policy("#first", {"--policy", "fixed", "--policy", "oracle", "--sweep", "n=0:3:4", "--json", "--csv",
                          (folder_ / "f.csv").string()});
    ASSERT_EQ(result.code, 0) << result.err;
    const nlohmann::json report = nlohmann::json::parse(result.out);
    const nlohmann::json& points = report["points"];
    ASSERT_EQ(points.size(), 6U);
    EXPECT_EQ(report["scored_tokens"], 498);
    EXPECT_EQ(report["halted"], true);
    EXPECT_EQ(report["notice_ids"].front(), "policy.halted");
    EXPECT_EQ(report["notice_ids"].back(), "policy.replay");
    EXPECT_EQ(report["notices"].size(), report["notice_ids"].size());
    std::vector<std::string> names;
    for (const nlohmann::json& point : points) {
        names.push_back(point["policy"]);
        EXPECT_EQ(point["kind"], "replay");
        EXPECT_LE(points[5]["mean_nll"], point["mean_nll"]);
    }
    EXPECT_EQ(names, (std::vector<std::string>{"full", "fixed:n=0", "fixed:n=1", "fixed:n=2", "fixed:n=3",
                                               "oracle"}));
    EXPECT_EQ(points[1]["mean_steps"], 0.0);
    // The run's own steps cannot be left behind: full and the last step are the same thing.
    EXPECT_EQ(points[4]["mean_nll"], points[0]["mean_nll"]);
    EXPECT_EQ(points[4]["difference_to_full"]["high"], 0.0);
    EXPECT_LT(points[1]["difference_to_full"]["low"], points[1]["difference_to_full"]["high"]);
    EXPECT_EQ(points[5]["on_front"], false); // a bound is on no front
    EXPECT_EQ(points[1]["on_front"], true);  // nothing is cheaper
    const std::string table = read_file(folder_ / "f.csv");
    EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 7);
    EXPECT_NE(table.find("fixed:n=2,fixed,2,replay,"), std::string::npos) << table;
}

TEST_F(PolicyVerb, SaysThatItIsAReplay) {
    const ProgramResult result = policy("#first", {"--policy", "uniform:rate=1", "--policy",
                                                   "geometric:rate=1", "--sweep", "threshold=0.5,1.5"});
    ASSERT_EQ(result.code, 0) << result.err;
    for (const char* part : {"replay from recorded signals, 498 scored tokens",
                             "uniform:rate=0.5,seed=20261122", "geometric:rate=1.5"}) {
        EXPECT_NE(result.out.find(part), std::string::npos) << part << " in:\n" << result.out;
    }
    const ProgramResult one = policy("#second", {"--policy", "fixed:n=0", "--json"});
    EXPECT_EQ(nlohmann::json::parse(one.out, nullptr, false)["notice_ids"],
              nlohmann::json({"policy.halted", "stats.same_texts", "policy.replay"}))
        << one.out;
}

std::vector<std::string> policies_of(const ProgramResult& result) {
    std::vector<std::string> names;
    const nlohmann::json report = nlohmann::json::parse(result.out, nullptr, false);
    for (const nlohmann::json& point : report.is_object() ? report["points"] : nlohmann::json::array()) {
        names.push_back(point["policy"]);
    }
    return names;
}

TEST_F(PolicyVerb, SweepsSeveralPoliciesAndDropsNone) {
    // What is named with its number stays a row beside the swept ones.
    const ProgramResult named = policy("#first", {"--policy", "fixed:n=3", "--policy", "uniform", "--sweep",
                                                  "fixed:n=0:1:2", "--sweep", "rate=0.5,1.5", "--json"});
    EXPECT_EQ(policies_of(named),
              (std::vector<std::string>{"full", "fixed:n=3", "fixed:n=0", "fixed:n=1",
                                        "uniform:rate=0.5,seed=20261122", "uniform:rate=1.5,seed=20261122"}))
        << named.err;
    // A policy that the numbers do not fit does not refuse the others.
    const ProgramResult some = policy(
        "#first", {"--policy", "fixed", "--policy", "uniform", "--sweep", "threshold=0.5,1.5", "--json"});
    EXPECT_EQ(policies_of(some), (std::vector<std::string>{"full", "uniform:rate=0.5,seed=20261122",
                                                           "uniform:rate=1.5,seed=20261122"}))
        << some.err;
    EXPECT_EQ(nlohmann::json::parse(some.out)["notice_ids"][0], "policy.not_swept");
    // A key that no policy has is what is wrong, not a number that is missing.
    const ProgramResult wrong = policy("#first", {"--policy", "entropy", "--sweep", "foo=1:2:3"});
    EXPECT_EQ(wrong.code, 2);
    EXPECT_NE(wrong.err.find("foo"), std::string::npos) << wrong.err;
    EXPECT_NE(wrong.err.find("entropy: theta"), std::string::npos) << wrong.err;
}

TEST_F(PolicyVerb, AnIntervalDoesNotDependOnWhichOtherRowsAreAskedFor) {
    const nlohmann::json alone =
        nlohmann::json::parse(policy("#first", {"--policy", "fixed:n=1", "--json"}).out);
    const nlohmann::json among =
        nlohmann::json::parse(policy("#first", {"--policy", "uniform:rate=1", "--policy", "fixed", "--policy",
                                                "oracle", "--sweep", "n=0:3:4", "--json"})
                                  .out);
    const auto point = [](const nlohmann::json& report) {
        for (const nlohmann::json& one : report["points"]) {
            if (one["policy"] == "fixed:n=1") {
                return one["difference_to_full"];
            }
        }
        return nlohmann::json();
    };
    EXPECT_FALSE(point(alone).is_null());
    EXPECT_EQ(point(alone), point(among));
    EXPECT_EQ(alone["block"], among["block"]);
    EXPECT_EQ(alone["block_from_data"], true);
    EXPECT_EQ(among["block_from_data"], true);
}

TEST_F(PolicyVerb, EveryMistakeHasItsSentence) {
    const struct {
        const char* run;
        std::vector<std::string> arguments;
        std::vector<const char*> says;
    } cases[] = {
        {"#first", {}, {"--policy"}},
        {"", {"--policy", "full"}, {"[trace.run]", "#first"}},
        {"#third", {"--policy", "full"}, {"third", "first, second"}},
        {"#first", {"--policy", "ful"}, {"mean full?", "[policy.unknown]"}},
        {"#first", {"--policy", "calm_margin:lambda=9"}, {"0 to 2", "[policy.value]"}},
        {"#first", {"--policy", "calm_margin:lambda=0.9"}, {"margin", "--record steps"}},
        {"#first", {"--policy", "learned"}, {"[policy.unsuited]"}},
        {"#first", {"--policy", "fixed", "--sweep", "n=0:9:10"}, {"0 to 3", "[policy.value]"}},
        {"#first", {"--policy", "fixed:n=1", "--sweep", "theta=0:1:3"}, {"[policy.value]"}},
        {"#first", {"--policy", "full", "--sweep", "threshold=0:1:3"}, {"[policy.value]"}},
        {"#first", {"--policy", "fixed:n=1", "--sweep", "n=0:1"}, {"--sweep"}},
        {"#first", {"--policy", "full", "--csv", "/nowhere/f.csv"}, {"/nowhere"}},
    };
    for (const auto& [run, arguments, says] : cases) {
        const ProgramResult result = policy(run, arguments);
        EXPECT_EQ(result.code, 2) << result.out;
        EXPECT_TRUE(result.out.empty()) << result.out;
        EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
        for (const char* part : says) {
            EXPECT_NE(result.err.find(part), std::string::npos) << part << " in: " << result.err;
        }
    }
}

TEST_F(PolicyVerb, RefereesRulesAtEqualCost) {
    const std::string tex = (folder_ / "rules.tex").string();
    const nlohmann::json report =
        json_of({"referee", (folder_ / "t.ponder").string() + "#first", "--replicates", "200", "--policy",
                 "fixed", "--policy", "oracle", "--steps", "0.5", "--tex", tex});
    EXPECT_EQ(report["against"], "blind");
    ASSERT_EQ(report["matched"].size(), 3U); // one cost, by steps: this trace does not say what steps cost
    for (const nlohmann::json& cell : report["matched"]) {
        EXPECT_EQ(cell["kind"], "replay");
        EXPECT_EQ(cell["cost"], 0.5);
        EXPECT_EQ(cell["band"]["low"].is_null(), cell["policy"] == "oracle");
    }
    EXPECT_TRUE(report["own"].is_null()); // this model has no rule of its own
    const std::string latex = read_file(tex);
    for (const nlohmann::json& cell : report["matched"]) {
        EXPECT_EQ(cell["thinks_better"], false); // blind itself, a blind rule, a bound
        char nll[32];
        std::snprintf(nll, sizeof(nll), "%.4f", cell["nll"]["value"].get<double>());
        EXPECT_NE(latex.find(nll), std::string::npos) << nll;
    }
    expect_refused({"referee", (folder_ / "t.ponder").string() + "#first", "--policy", "entropy:theta=1"},
                   {"[policy.unsuited]"});
}

} // namespace
} // namespace ponderscope
