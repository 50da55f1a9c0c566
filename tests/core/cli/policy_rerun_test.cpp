// SPDX-License-Identifier: GPL-3.0-or-later
// `ponderscope policy --rerun` and `ponderscope stats` on the reference cases: what replay and rerun differ
// in is what the independent implementation found.
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/trace/reader.h"
#include "core/trace/recorded_choices.h"
#include "tests/core/cli/run_program.h"
#include "tests/support/correlation.h"
#include "tests/support/golden_policy.h"
#include "tests/support/test_data.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace ponderscope {
namespace {

using namespace testing;

/// A reference case, and a trace in which its ids are recorded.
struct Recording {
    explicit Recording(const std::string& name) : golden(golden_case(name)), model(golden.string()) {}
    void record(const std::vector<std::string>& more) const {
        succeed(Words{"record", model, "--ids", golden / "golden.safetensors", "-o", trace} + more);
    }

    TemporaryFolder folder;
    std::filesystem::path golden;
    std::string model;
    std::string trace = folder / "t.ponder";
};

class PolicyRerun : public ::testing::TestWithParam<std::string>, protected Recording {
protected:
    PolicyRerun() : Recording(GetParam()) {}
    void SetUp() override {
        PONDERSCOPE_REQUIRE_GOLDEN(GetParam());
        record({"--policy", "full", "--name", "all"});
    }
    nlohmann::json policy(std::vector<std::string> more) const {
        more.insert(more.begin(), {"policy", trace + "#all", "--replicates", "200", "--json"});
        return nlohmann::json::parse(succeed(more));
    }
};

TEST_P(PolicyRerun, TheDifferenceToTheReplayIsThatOfTheReference) {
    const nlohmann::json description = read_json_file(golden / "case.json");
    std::vector<std::string> arguments{"--rerun",     model,
                                       "--per-token", (folder / "tokens.csv").string(),
                                       "--csv",       (folder / "points.csv").string()};
    for (const nlohmann::json& entry : description["rerun"]) {
        arguments.insert(arguments.end(), {"--policy", golden_policy_named(description, entry["name"])});
    }
    const nlohmann::json report = policy(arguments);
    ASSERT_EQ(report["points"].size(), 1 + description["rerun"].size()) << report.dump(1);
    for (std::size_t i = 0; i < description["rerun"].size(); ++i) {
        const nlohmann::json& entry = description["rerun"][i];
        const nlohmann::json& rerun = report["points"][i + 1]["rerun"];
        SCOPED_TRACE(entry["name"]);
        EXPECT_NEAR(rerun["mean_nll"], entry["mean_nll"].get<double>(), 1e-4);
        EXPECT_NEAR(rerun["mean_steps"], entry["mean_steps"].get<double>(), 1e-12);
        const nlohmann::json& difference = rerun["minus_replay"];
        EXPECT_NEAR(difference["largest"], entry["max_abs_nll_difference_to_replay"].get<double>(), 2e-4);
        EXPECT_EQ(difference["tokens_with_other_steps"], entry["tokens_with_other_steps_than_replay"]);
        EXPECT_GT(rerun["flops_per_token"], 0);
        EXPECT_GT(report["points"][i + 1]["flops_per_token"], 0);
    }
    // `full` is the run itself: nothing to run again, nothing to differ.
    EXPECT_EQ(report["points"][0]["rerun"]["minus_replay"]["largest"], 0.0);
    EXPECT_EQ(report["points"][0]["rerun"]["flops_per_token"], report["points"][0]["flops_per_token"]);
    // Every token of every policy, and a head.
    const std::string tokens = read_file(folder / "tokens.csv");
    const auto scored = report["scored_tokens"].get<std::int64_t>();
    EXPECT_GT(std::count(tokens.begin(), tokens.end(), '\n'),
              static_cast<std::int64_t>(report["points"].size()) * scored);
    EXPECT_NE(read_file(folder / "points.csv").find(",rerun,"), std::string::npos);

    // The reruns are runs of the trace that name their policy, and are not made twice.
    const std::vector<RunInfo> runs = TraceReader::open(trace).runs();
    ASSERT_EQ(runs.size(), 1 + description["rerun"].size());
    EXPECT_EQ(report["points"][1]["policy"], runs[1].policy);
    EXPECT_EQ(runs[1].name, "all " + runs[1].policy);
    EXPECT_EQ(policy(arguments)["points"], report["points"]);
    EXPECT_EQ(TraceReader::open(trace).runs().size(), runs.size());
}

TEST_P(PolicyRerun, TheOracleRunsToTheStepsOfItsReplay) {
    const nlohmann::json report =
        policy({"--policy", "oracle", "--rerun", model, "--output", (folder / "reruns.ponder").string()});
    const nlohmann::json& point = report["points"][1];
    EXPECT_EQ(point["rerun"]["minus_replay"]["tokens_with_other_steps"], 0);
    EXPECT_EQ(point["rerun"]["mean_steps"], point["mean_steps"]);
    EXPECT_EQ(point["rerun"]["on_front"], false);
    EXPECT_EQ(TraceReader::open(trace).runs().size(), 1U);
    EXPECT_EQ(TraceReader::open(folder / "reruns.ponder").runs().at(1).policy, "oracle");
}

/// Replays and reruns of all rules, at equal steps and equal FLOPs: everywhere the same numbers.
TEST_P(PolicyRerun, TheRefereeSetsRerunsBesideReplays) {
    const std::filesystem::path csv = folder / "rules.csv";
    const std::filesystem::path tex = folder / "rules.tex";
    const auto referee = [&](const std::string& replicates) {
        return json_of({"referee", trace + "#all", "--replicates", replicates, "--against", "uniform",
                        "--policy", "fixed", "--rerun", model, "--csv", csv.string(), "--tex", tex.string()});
    };
    const nlohmann::json report = referee("200");
    int reruns = 0;
    int costs = 0;
    for (const nlohmann::json& cell : report["matched"]) {
        if (cell["kind"] != "rerun") {
            costs += cell["policy"] == "uniform" && cell["at_equal"] == "steps" ? 1 : 0;
            continue;
        }
        ++reruns;
        EXPECT_FALSE(cell["nll"]["value"].is_null()) << cell;
        if (cell["policy"] != "uniform") {
            EXPECT_LE(cell["band"]["low"], cell["difference"]["low"]) << cell;
            EXPECT_GE(cell["band"]["high"], cell["difference"]["high"]) << cell;
            EXPECT_LT(cell["band"]["low"], cell["band"]["high"]) << cell;
        } else {
            EXPECT_EQ(cell["difference"]["value"], 0.0);
        }
    }
    EXPECT_GE(costs, 3);
    EXPECT_EQ(reruns, 3 * costs * 2) << "two rules and the best blind one, two axes";
    const std::string table = read_file(csv);
    EXPECT_EQ(std::count(table.begin(), table.end(), '\n'),
              1 + static_cast<std::int64_t>(report["matched"].size()));
    std::size_t rows = 0;
    for (std::size_t at = 0; (at = table.find("rerun,", at)) != std::string::npos; ++at) {
        ++rows;
    }
    EXPECT_EQ(rows, static_cast<std::size_t>(reruns)) << table;
    const std::string latex = read_file(tex);
    for (const char* part : {"mean steps (replay)", "mean steps (rerun)", "FLOPs (rerun)", "\\toprule"}) {
        EXPECT_NE(latex.find(part), std::string::npos) << part << " in\n" << latex;
    }
    // What ran once is read again.
    const std::size_t runs = TraceReader::open(trace).runs().size();
    EXPECT_GT(runs, 1U);
    (void)referee("100");
    EXPECT_EQ(TraceReader::open(trace).runs().size(), runs);
}

INSTANTIATE_TEST_SUITE_P(Cases, PolicyRerun,
                         ::testing::Values("adaponderlm_llama_tau_03", "adaptive_latent_cot_gpt_neox_tau_01",
                                           "ponderlm3_llama_tau_1e4", "vanilla_gpt_neox_layers"),
                         [](const auto& one) { return one.param; });

TEST(RefereeVerb, LeavesOutRulesThatOneFurtherStepCannotJudge) {
    PONDERSCOPE_REQUIRE_GOLDEN("ponderlm_gpt2_s1_scaled_tied");
    const Recording made("ponderlm_gpt2_s1_scaled_tied");
    made.record({"--policy", "full"});
    const nlohmann::json report = json_of({"referee", made.trace, "--replicates", "100"});
    std::set<std::string> rules;
    for (const nlohmann::json& cell : report["matched"]) {
        rules.insert(cell["policy"]);
    }
    EXPECT_EQ(rules, (std::set<std::string>{"blind", "fixed", "uniform", "geometric", "oracle", "calm_margin",
                                            "entropy"}));
}

TEST(LearnedReplayed, TakesTheExitThatTheConfigNames) {
    PONDERSCOPE_REQUIRE_GOLDEN("ouro_r3_gqa_tied_threshold");
    const std::filesystem::path golden = golden_case("ouro_r3_gqa_tied_threshold");
    const TemporaryFolder folder;
    const std::filesystem::path model = folder / "model";
    std::filesystem::copy(golden, model);
    for (const nlohmann::json& threshold : {nlohmann::json(0.5), nlohmann::json()}) {
        nlohmann::json config = read_json_file(golden / "config.json");
        config["early_exit_step"] = 1;
        config["early_exit_threshold"] = threshold;
        std::filesystem::remove(model / "config.json");
        write_file_atomically(model / "config.json", config.dump());
        const std::string trace = (folder / ("t" + threshold.dump() + ".ponder")).string();
        succeed({"record", model.string(), "--ids", (golden / "golden.safetensors").string(), "-o", trace});
        const nlohmann::json report =
            json_of({"policy", trace, "--policy", "learned", "--replicates", "100"});
        const RunInfo run = TraceReader::open(trace).runs().at(0);
        EXPECT_EQ(report["points"][1]["mean_steps"], 1.0);
        EXPECT_NEAR(report["points"][1]["mean_nll"].get<double>(),
                    run.nll_sum / static_cast<double>(run.scored_tokens), 1e-6);
    }
}

TEST(PausesRerun, KeepTheRefreshesOfTheRun) {
    PONDERSCOPE_REQUIRE_GOLDEN("pause_llama_k2");
    const Recording made("pause_llama_k2");
    made.record({"--method", "pause", "--jacobi", "2", "--policy", "fixed:n=1", "--name", "first"});
    succeed({"policy", made.trace + "#first", "--policy", "fixed:n=1", "--rerun", made.model, "--replicates",
             "100"});
    for (const RunInfo& run : TraceReader::open(made.trace).runs()) {
        EXPECT_EQ(run.scoring, "jacobi:2") << run.name;
    }
}

TEST(PolicyRerunKeeps, StepsStartStateAndWhatIsSeen) {
    PONDERSCOPE_REQUIRE_GOLDEN("huginn_1_2_1_r3_untied_nobias");
    const Recording made("huginn_1_2_1_r3_untied_nobias");
    const std::string& trace = made.trace;
    const auto record = [&](const std::string& name, const std::vector<std::string>& more,
                            const std::string& policy = "full") {
        made.record(
            Words{"--policy", policy, "--initial-state", "random:7", "--context", "16", "--name", name} +
            more);
    };
    record("five", {"--steps", "5"});
    record("shared", {"--steps", "5", "--kv", "shared"});
    for (const char* const source : {"five", "shared"}) {
        succeed({"policy", trace + "#" + source, "--policy", "fixed:n=2", "--rerun", made.model,
                 "--replicates", "200"});
    }
    const TraceReader reader = TraceReader::open(trace);
    const RunInfo five = find_run(reader, "five fixed:n=2");
    const RunInfo shared = find_run(reader, "shared fixed:n=2");
    for (const RunInfo& run : {five, shared}) {
        EXPECT_EQ(run.max_steps, 4) << run.name;
        EXPECT_EQ(recorded_choices(run).initial_state, "random:7") << run.name;
    }
    EXPECT_EQ(recorded_choices(five).kv, "per_step");
    EXPECT_EQ(recorded_choices(shared).kv, "shared");
    // The same again by hand.
    record("by hand", {"--steps", "5", "--kv", "shared"}, "fixed:n=2");
    const RunInfo by_hand = find_run(TraceReader::open(trace), "by hand");
    EXPECT_NEAR(by_hand.nll_sum, shared.nll_sum, 1e-5);
    EXPECT_GT(std::abs(by_hand.nll_sum - five.nll_sum), 1e-3);
}

TEST(PolicyRerunRefuses, OtherWeightsAndOtherMistakes) {
    PONDERSCOPE_REQUIRE_GOLDEN("adaponderlm_llama_tau_03");
    const Recording made("adaponderlm_llama_tau_03");
    made.record({"--policy", "full"});
    // The same model with one weight that is another.
    const std::filesystem::path other = made.folder / "other";
    std::filesystem::copy(made.golden, other);
    std::string weights = read_file(other / "model.safetensors");
    weights.back() = static_cast<char>(weights.back() ^ 1);
    write_file_atomically(other / "model.safetensors", weights);
    const struct {
        std::vector<std::string> arguments;
        const char* says;
    } cases[] = {
        {{"--policy", "fixed:n=1", "--rerun", other.string()}, "[resume.differs]"},
        {{"--policy", "fixed:n=1", "--rerun", (made.folder / "nowhere").string()}, "nowhere"},
        {{"--policy", "fixed:n=1", "--output", (made.folder / "o.ponder").string()}, "[usage.missing]"},
        {{"--policy", "fixed:n=1", "--kv", "skip"}, "[usage.missing]"},
        {{"--policy", "fixed:n=1", "--rerun", made.model, "--kv", "some"}, "'some'"},
    };
    for (const auto& [arguments, says] : cases) {
        expect_refused(Words{"policy", made.trace} + arguments, {says});
        EXPECT_FALSE(std::filesystem::exists(made.folder / "o.ponder"));
    }
    EXPECT_EQ(TraceReader::open(made.trace).runs().size(), 1U);
}

TEST(RerunRefuses, WhatDoesNotFitTheModel) {
    const struct {
        const char* folder;
        const char* policy;
        const char* says;
    } cases[] = {
        {"adaponderlm_llama_tau_03", "oracle", "[policy.unsuited]"},
        {"adaponderlm_llama_tau_03", "fixed:n=9", "[policy.value]"},
        {"adaponderlm_llama_tau_03", "uniform", "[policy.unsuited]"},
        {"adaponderlm_llama_tau_03", "calm", "[policy.unknown]"},
        {"ponderlm_gpt2_s1_scaled_tied", "learned:theta=0.5", "[policy.unsuited]"},
        {"vanilla_gpt2_inverse_layer_scale_exit", "learned:theta=0.5", "[policy.unsuited]"},
        {"vanilla_gpt2_inverse_layer_scale_exit", "fixed:n=5", "[policy.value]"},
    };
    const TemporaryFolder output;
    for (const auto& [folder, policy, says] : cases) {
        expect_refused({"logits", golden_case(folder).string(), "--ids",
                        (golden_case(folder) / "golden.safetensors").string(), "--policy", policy, "-o",
                        (output / "o.safetensors").string()},
                       {says});
        EXPECT_FALSE(std::filesystem::exists(output / "o.safetensors"));
    }
}

/// What later tokens see of one that stopped is a rerun's own choice; each is a run of its own.
TEST(PolicyRerunOfReleased, KeepsEveryChoiceOfWhatIsSeen) {
    PONDERSCOPE_REQUIRE_GOLDEN("huginn_1_2_1_r3_untied_nobias");
    const Recording made("huginn_1_2_1_r3_untied_nobias");
    made.record({"--initial-state", "random:7", "--policy", "full", "--name", "all"});
    std::vector<double> differences;
    for (const char* kv : {"full", "per_step", "shared", "skip"}) {
        const nlohmann::json report = json_of({"policy", made.trace + "#all", "--policy", "uniform:rate=1",
                                               "--replicates", "100", "--rerun", made.model, "--kv", kv});
        differences.push_back(report["points"][1]["rerun"]["minus_replay"]["largest"].get<double>());
        // The draws are those of the replay, and nothing else decides.
        EXPECT_EQ(report["points"][1]["rerun"]["minus_replay"]["tokens_with_other_steps"], 0) << kv;
        // Where nobody stops, only what sees the last step at every step differs.
        EXPECT_EQ(report["points"][0]["rerun"]["minus_replay"]["largest"] == 0.0,
                  std::string(kv) != "shared");
    }
    EXPECT_LT(differences[0], 1e-4) << "every step runs, and its read-out is chosen: the replay";
    for (std::size_t i = 1; i < differences.size(); ++i) {
        EXPECT_GT(differences[i], 1e-3) << i;
    }
    EXPECT_NE(differences[1], differences[2]);
    EXPECT_NE(differences[1], differences[3]);
    const std::vector<RunInfo> runs = TraceReader::open(made.trace).runs();
    ASSERT_EQ(runs.size(), 6U);
    EXPECT_EQ(runs[3].name, "all full kv=shared");
    EXPECT_EQ(runs[4].name, "all uniform:rate=1,seed=20261122 kv=shared");
    for (const RunInfo& run : runs) {
        EXPECT_NE(run.choices.find("random:7"), std::string::npos) << run.name << ": " << run.choices;
    }
}

TEST(StatsVerb, TablesCorrelationsAndLabels) {
    PONDERSCOPE_REQUIRE_GOLDEN("adaponderlm_llama_tau_03");
    const Recording made("adaponderlm_llama_tau_03");
    const TemporaryFolder& folder = made.folder;
    const std::string& trace = made.trace;
    for (const char* policy : {"learned", "full"}) {
        made.record({"--policy", policy, "--name", policy});
    }
    write_file_atomically(folder / "l.csv",
                          "sequence,token,class\n0,3,odd\n0,4,odd\n1,9,even\n0,7,10\n0,8,9\n");
    succeed({"annotate", trace + "#learned", "--csv", (folder / "l.csv").string()});
    const nlohmann::json report =
        json_of({"stats", trace + "#learned", "--against", trace + "#full", "--by", "class", "--replicates",
                 "200", "--least", "2", "--csv", (folder / "o.csv").string()});
    const RunInfo run = TraceReader::open(trace).runs().front();
    EXPECT_EQ(report["scored_tokens"], run.scored_tokens);
    EXPECT_NEAR(report["mean_nll"]["value"], run.nll_sum / static_cast<double>(run.scored_tokens), 1e-9);
    ASSERT_EQ(report["steps_correlations"].size(), 3U);
    EXPECT_EQ(report["steps_correlations"][2]["with"], "NLL of full");
    EXPECT_LE(report["steps_correlations"][0]["spearman"]["low"],
              report["steps_correlations"][0]["spearman"]["high"]);
    // Numbers by value, then words.
    const nlohmann::json& labelled = report["by"][0]["classes"];
    ASSERT_EQ(labelled.size(), 4U);
    for (const auto& [place, name] : {std::pair{0, "9"}, {1, "10"}, {2, "even"}, {3, "odd"}}) {
        EXPECT_EQ(labelled[place]["name"], name);
    }
    EXPECT_EQ(labelled[3]["count"], 2);
    EXPECT_EQ(report["types_of"], "prediction");
    std::int64_t counted = 0;
    for (const nlohmann::json& one : report["classes"]) {
        counted += one["count"].get<std::int64_t>();
    }
    EXPECT_EQ(counted, run.scored_tokens);
    const std::string table = read_file(folder / "o.csv");
    EXPECT_NE(table.find("\nby class,,odd,2,"), std::string::npos) << table;
    EXPECT_EQ(std::count(table.begin(), table.end(), '\n'),
              1 + 4 + static_cast<std::int64_t>(report["classes"].size() + report["types"].size()));

    // Steps of the one against what the steps gained in the other, also by way of an annotation.
    const TraceReader reader = TraceReader::open(trace);
    const RunInfo full = find_run(reader, "full");
    std::vector<double> steps, gain;
    for (const SequenceInfo& sequence : reader.sequences(run.id)) {
        const TokenColumns tokens = reader.tokens(run.id, sequence.number);
        const auto chunk = reader.signal(full.id, sequence.number, signal::nll, 0, sequence.tokens);
        const std::vector<float> nll = to_floats(*chunk);
        const auto width = static_cast<std::size_t>(full.max_steps + 1);
        for (std::size_t i = 0; i < tokens.size(); ++i) {
            if (!std::isnan(tokens.nll[i])) {
                steps.push_back(tokens.steps[i]);
                gain.push_back(static_cast<double>(nll[i * width]) -
                               static_cast<double>(nll[i * width + width - 1]));
            }
        }
    }
    ASSERT_EQ(report["steps_and_gain"].size(), 1U);
    EXPECT_EQ(report["steps_and_gain"][0]["with"], "gain of full");
    EXPECT_EQ(report["steps_and_gain"][0]["tokens"], run.scored_tokens);
    EXPECT_NEAR(report["steps_and_gain"][0]["spearman"]["value"], spearman(steps, gain), 1e-6);
    succeed({"annotate", trace + "#learned", "--derive", "gain=nll@0-nll@last", "--from", trace + "#full"});
    const nlohmann::json by = json_of({"stats", trace + "#learned", "--by", "gain", "--replicates", "200"});
    const nlohmann::json last = by["steps_correlations"].back();
    EXPECT_EQ(last["with"], "gain");
    EXPECT_NEAR(last["spearman"]["value"], spearman(steps, gain), 1e-6);

    const std::string text = succeed({"stats", trace + "#learned", "--replicates", "200"});
    EXPECT_NE(text.find("Benjamini-Hochberg"), std::string::npos);
}

} // namespace
} // namespace ponderscope
