// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/matched_reruns.h"

#include "core/base/splitmix.h"
#include "core/trace/writer.h"
#include "tests/core/trace/sample.h"
#include "tests/support/errors.h"
#include "tests/support/packed.h"
#include "tests/support/test_data.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace ponderscope {
namespace {

constexpr std::int64_t tokens_each = 6;
constexpr std::int64_t sequences_each = 4;

class MatchedReruns : public ::testing::Test {
protected:
    /// A run in which every token takes as many steps and costs \p nll nats, more by a little for each place.
    void write(TraceWriter& writer, const std::string& policy, std::int32_t steps, float nll) const {
        RunInfo run = testing::sample_run(policy);
        run.policy = policy;
        writer.begin_run(run, {});
        for (std::int64_t s = 0; s < sequences_each; ++s) {
            TokenColumns tokens =
                testing::sample_tokens(3 + static_cast<std::uint64_t>(s), 0, tokens_each, tokens_each);
            for (std::size_t t = 0; t < static_cast<std::size_t>(tokens_each); ++t) {
                tokens.steps[t] = steps;
                if (t + 1 < static_cast<std::size_t>(tokens_each)) {
                    tokens.nll[t] = nll + 0.125F * static_cast<float>(t);
                }
            }
            testing::add_sequence(writer, "s", testing::sample_text(tokens_each), tokens);
        }
        writer.end_run(1);
    }

    /// The run in which nobody stops, then reruns: two rules with two settings each, one setting twice.
    TraceReader trace() const {
        TraceWriter writer(folder_ / "t.ponder");
        write(writer, "full", 3, 1);
        write(writer, "entropy:theta=2", 1, 9); // a newer one says otherwise
        write(writer, "entropy:theta=2", 1, 3);
        write(writer, "kl:theta=0.9", 1, 4);
        write(writer, "entropy:theta=1", 2, 1.5F);
        write(writer, "kl:theta=0.1", 2, 2);
        writer.finish();
        return TraceReader::open(folder_ / "t.ponder");
    }

    static ReplayTable table_of(const TraceReader& reader, const RunInfo& run) {
        ReplayTable table;
        for (std::int64_t s = 0; s < sequences_each; ++s) {
            const TokenColumns tokens = reader.tokens(run.id, s);
            table.sequences.push_back(tokens_each);
            table.ran.insert(table.ran.end(), tokens.steps.begin(), tokens.steps.end());
            table.nll.insert(table.nll.end(), tokens.nll.begin(), tokens.nll.end());
            for (std::uint32_t t = 0; t < tokens_each; ++t) {
                table.places.push_back({static_cast<std::uint32_t>(s), t, tokens_each});
            }
        }
        table.finish();
        return table;
    }

    testing::TemporaryFolder folder_;
};

TEST_F(MatchedReruns, TakesTheNewestOfEachSettingOfCausalRules) {
    const TraceReader reader = trace();
    const std::vector<RunInfo> runs = reader.runs();
    // second_order has no rerun, oracle can have none.
    const auto rules = reruns_by_rule(runs, runs.at(0), {"second_order", "kl", "oracle", "entropy"});
    ASSERT_EQ(rules.size(), 2U);
    EXPECT_EQ(rules[0].name, "kl");
    EXPECT_EQ(rules[1].name, "entropy");
    for (const RerunRule& rule : rules) {
        ASSERT_EQ(rule.runs.size(), 3U) << rule.name;
        EXPECT_EQ(rule.runs.back().policy, "full") << rule.name;
    }
    const auto newest = std::ranges::find(rules[1].runs, "entropy:theta=2", &RunInfo::policy);
    ASSERT_NE(newest, rules[1].runs.end());
    EXPECT_EQ(newest->id, runs.at(2).id);
    // Of another text, and of a run of its own, nothing is a rerun.
    RunInfo other = runs.at(0);
    other.text_digest += "x";
    EXPECT_TRUE(reruns_by_rule(runs, other, {"kl", "entropy"}).empty());
}

TEST_F(MatchedReruns, AreSetAgainstTheReferenceAtItsCosts) {
    const TraceReader reader = trace();
    const std::vector<RunInfo> runs = reader.runs();
    const ReplayTable table = table_of(reader, runs.at(0));
    const ScoredRows scored(table);
    const auto rules = reruns_by_rule(runs, runs.at(0), {"kl", "entropy"});
    BootstrapOptions options{.replicates = 100};
    const MatchedComparison own =
        compare_reruns(table, scored, reader, runs.at(0), reader, rules, "entropy", {}, options);
    EXPECT_EQ(own.reference, "entropy");
    ASSERT_EQ(own.rows.size(), 2U);
    ASSERT_EQ(own.rows[0].name, "kl");
    // Costs that nobody named are what the reference's own settings took: 1, 2 and 3 steps.
    ASSERT_EQ(own.rows[0].at_steps.size(), 3U);
    const double noise = 0.125 * 2; // of places 0 to 4, the mean
    const double margin[] = {4, 2, 1};
    const double entropy[] = {3, 1.5, 1};
    for (std::size_t c = 0; c < 3; ++c) {
        EXPECT_NEAR(own.rows[0].at_steps[c].cost, static_cast<double>(c + 1), 1e-12);
        EXPECT_NEAR(own.rows[0].at_steps[c].nll.value, margin[c] + noise, 1e-6);
        EXPECT_NEAR(own.rows[1].at_steps[c].nll.value, entropy[c] + noise, 1e-6);
        EXPECT_NEAR(own.rows[0].at_steps[c].difference.value, margin[c] - entropy[c], 1e-6);
    }
    // Costs beyond what the reference reaches are moved to its ends; between settings lies a line.
    const MatchedComparison moved =
        compare_reruns(table, scored, reader, runs.at(0), reader, rules, "kl", {0.5, 1.5, 7}, options);
    EXPECT_NEAR(moved.rows[1].at_steps.at(0).cost, 1, 1e-12);
    EXPECT_NEAR(moved.rows[1].at_steps.at(1).difference.value, 2.25 - 3, 1e-6);
    EXPECT_NEAR(moved.rows[1].at_steps.at(2).cost, 3, 1e-12);
}

TEST_F(MatchedReruns, WithoutTheReferenceSaySo) {
    const TraceReader reader = trace();
    const std::vector<RunInfo> runs = reader.runs();
    const ReplayTable table = table_of(reader, runs.at(0));
    const auto rules = reruns_by_rule(runs, runs.at(0), {"kl"});
    const std::string refusal = testing::error_of([&] {
        (void)compare_reruns(table, ScoredRows(table), reader, runs.at(0), reader, rules, "entropy", {}, {});
    });
    EXPECT_NE(refusal.find(" entropy"), std::string::npos) << refusal;
    EXPECT_TRUE(refusal.ends_with("[run.unsuited]")) << refusal;
}

/// A run that ponders, and one of a plain model over the same tokens that loses half a nat less than its own.
void write_with_plain_model(const std::filesystem::path& trace, std::int64_t flops_a_token) {
    constexpr std::int64_t length = 20;
    FlopsModel flops;
    flops.steps = {100, 80, 80, 80};
    flops.windows = {0};
    flops.decisions = {0, 0, 0};
    flops.read_out = 50;
    TraceWriter writer(trace);
    for (const bool plain : {false, true}) {
        RunInfo run = testing::sample_run(plain ? "plain" : "ponders");
        run.method = plain ? "vanilla" : "ponderlm";
        run.step_unit = "step";
        run.max_steps = plain ? 0 : 3;
        run.flops_model = plain ? "" : flops.to_json();
        writer.begin_run(
            run, plain ? std::vector<SignalInfo>{}
                       : std::vector<SignalInfo>{{signal::nll, {"token", "step"}, "nats", "NLL", "NLL."}});
        for (std::int64_t s = 0; s < 35; ++s) {
            TokenColumns tokens = testing::sample_tokens(1, 0, length, length);
            std::vector<float> values;
            for (std::int64_t t = 0; t < length; ++t) {
                for (std::int64_t k = 0; k < 4; ++k) {
                    values.push_back(t + 1 == length
                                         ? std::numeric_limits<float>::quiet_NaN()
                                         : static_cast<float>(4 - k +
                                                              token_draw(40, static_cast<std::uint64_t>(s),
                                                                         static_cast<std::uint64_t>(t))));
                }
                const auto row = static_cast<std::size_t>(t);
                tokens.steps[row] = plain ? 0 : 3;
                tokens.nll[row] = values.back() - (plain ? 0.5F : 0);
                tokens.flops[row] = plain ? flops_a_token : 390;
            }
            std::vector<std::pair<std::string, SignalChunk>> chunks;
            if (!plain) {
                chunks.emplace_back(signal::nll, testing::packed(DType::f32, {length, 4}, values));
            }
            testing::add_sequence(writer, "s", testing::sample_text(length), tokens, chunks);
        }
        writer.end_run(1);
    }
    writer.finish();
}

TEST(PlainModels, ArePointsAtTheirFlops) {
    const testing::TemporaryFolder folder;
    write_with_plain_model(folder / "t.ponder", 250);
    const TraceReader reader = TraceReader::open(folder / "t.ponder");
    const std::vector<RunInfo> runs = reader.runs();
    const std::vector<RunInfo> plain = plain_runs(runs, runs.at(0));
    ASSERT_EQ(plain.size(), 1U);
    EXPECT_EQ(plain.front().name, "plain");
    RunInfo other = runs.at(0);
    other.text_digest += "x";
    EXPECT_TRUE(plain_runs(runs, other).empty());
    const ReplayTable table = ReplayTable::load(reader, runs.at(0));
    BootstrapOptions options{.replicates = 100};
    const ScoredRows tokens(table);
    ScoredRows clusters = tokens;
    clusters.add_up_clusters(options);
    for (const ScoredRows* scored : {&tokens, &std::as_const(clusters)}) {
        const MatchedRule rule = plain_rule(reader, plain.front(), *scored);
        ASSERT_EQ(rule.settings.size(), 1U);
        EXPECT_EQ(scored->layout().mean(rule.settings[0].flops), 250);
        const MatchedComparison found = compare_matched(
            2,
            [&](std::size_t i, const MatchedCosts& at) {
                return i == 1 ? rule : replayed_rule(table, *scored, blind_rule, 9, at);
            },
            0, {{1.5}, {250, 9000}}, scored->layout(), options);
        ASSERT_EQ(found.rows[1].at_flops.size(), 2U); // 250, and what 1.5 steps take: 270; nothing takes 9000
        EXPECT_EQ(found.rows[1].at_flops[0].cost, 250);
        // Blind at 250 of 150, 230, 310, 390 FLOPs: a quarter on from one step to the next.
        EXPECT_NEAR(found.rows[1].at_flops[0].difference.value, -0.5 + 1 - 2.75, 1e-5);
        EXPECT_FALSE(found.rows[1].at_flops[0].better); // it does not think
        EXPECT_TRUE(std::isnan(found.rows[1].at_flops[1].nll.value));
        EXPECT_TRUE(std::isnan(found.rows[1].at_steps[0].nll.value));
    }
    // One that scored fewer tokens is none.
    ReplayTable longer = table;
    longer.places.push_back({34, 20, 21});
    longer.ran.push_back(3);
    longer.nll.push_back(1);
    EXPECT_TRUE(plain_rule(reader, plain.front(), ScoredRows(longer)).settings.empty());
}

} // namespace
} // namespace ponderscope
