// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/matched.h"

#include "core/base/error.h"
#include "core/base/splitmix.h"
#include "core/base/words.h"
#include "core/policy/thresholds.h"
#include "tests/support/errors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace ponderscope {
namespace {

constexpr std::int64_t last_step = 3;

/// Sequences of 40 tokens in which pondering helps some: what a token gains by each step is told by the
/// entropy, nearly, and not at all by the acceleration.
ReplayTable made_up(std::uint32_t sequences) {
    constexpr std::uint32_t length = 40;
    ReplayTable table;
    table.run = "t.ponder#run";
    const std::size_t tokens = std::size_t{sequences} * length;
    table.columns = SignalColumns(last_step, tokens);
    for (const PolicySignal signal : {PolicySignal::nll, PolicySignal::entropy, PolicySignal::acceleration}) {
        table.columns.add(signal);
    }
    for (std::uint32_t s = 0; s < sequences; ++s) {
        table.sequences.push_back(length);
        for (std::uint32_t t = 0; t < length; ++t) {
            const std::size_t i = table.places.size();
            table.places.push_back({s, t, length});
            table.ran.push_back(last_step);
            const double gain = token_draw(1, s, t);
            for (std::int64_t k = 0; k <= last_step; ++k) {
                const auto left = static_cast<float>(1 - static_cast<double>(k) / last_step);
                const auto noise = static_cast<float>(token_draw(2 + static_cast<std::uint64_t>(k), s, t));
                table.columns.column(PolicySignal::nll, k)[i] = t + 1 == length
                                                                    ? std::numeric_limits<float>::quiet_NaN()
                                                                    : 2 + 2 * static_cast<float>(gain) * left;
                table.columns.column(PolicySignal::entropy, k)[i] =
                    static_cast<float>(gain) * (0.2F + left) + 0.05F * noise;
                table.columns.column(PolicySignal::acceleration, k)[i] = noise;
            }
        }
    }
    const std::span<const float> nll = std::as_const(table.columns).column(PolicySignal::nll, last_step);
    table.nll.assign(nll.begin(), nll.end());
    table.finish();
    return table;
}

MatchedComparison compare(const ReplayTable& table, const std::vector<std::string>& rules,
                          const std::vector<double>& costs) {
    BootstrapOptions options{.replicates = 300};
    const ScoredRows rows(table);
    return compare_matched(
        rules.size(),
        [&](std::size_t i, const MatchedCosts& at) { return replayed_rule(table, rows, rules[i], 33, at); },
        0, {costs, {}}, rows.layout(), with_block_of_run(table, rows, options));
}

TEST(Matched, FindsTheRuleThatKnowsAndNotTheOneThatDoesNot) {
    const ReplayTable table = made_up(60);
    const std::vector<std::string> rules{"uniform", "entropy", "fixed", "second_order", "oracle"};
    EXPECT_EQ(matched_rules(table),
              (std::vector<std::string>{"blind", "fixed", "uniform", "geometric", "oracle", "entropy",
                                        "entropy_difference", "second_order"}));
    const MatchedComparison found = compare(table, rules, {0.5, 1.5, 2.5});
    EXPECT_EQ(found.reference, "uniform");
    EXPECT_EQ(found.resampling.unit, ResamplingUnit::clusters);
    ASSERT_EQ(found.rows.size(), 5U);
    for (const MatchedCell& cell : found.rows[0].at_steps) {
        EXPECT_EQ(cell.difference.value, 0);
        EXPECT_EQ(cell.band.low, 0);
    }
    for (const MatchedCell& cell : found.rows[1].at_steps) {
        EXPECT_LT(cell.band.high, 0) << cell.cost; // entropy knows
        EXPECT_LT(cell.band.low, cell.difference.low);
    }
    // Nothing is gained by giving every token the same, nor by a signal that knows nothing; what is below two
    // steps the second order cannot reach.
    EXPECT_LT(std::abs(found.rows[2].at_steps[1].difference.value), 0.03);
    EXPECT_TRUE(std::isnan(found.rows[3].at_steps[0].difference.value));
    EXPECT_LT(found.rows[3].at_steps[2].band.low, 0);
    EXPECT_GT(found.rows[3].at_steps[2].band.high, 0);
    EXPECT_FALSE(found.rows[4].causal);
    EXPECT_EQ(found.rows[4].curve.back().policy, "oracle:lambda=0");
    for (std::size_t row = 0; row < 4; ++row) {
        for (std::size_t c = 0; c < 3; ++c) {
            const MatchedCell& cell = found.rows[row].at_steps[c];
            EXPECT_FALSE(cell.better); // nothing is set against the best blind rule here
            EXPECT_TRUE(std::isnan(cell.nll.value) || cell.nll.value >= found.rows[4].at_steps[c].nll.value)
                << found.rows[row].name;
        }
    }
    EXPECT_TRUE(std::isnan(found.rows[4].at_steps[1].band.low)); // a bound has no band
    EXPECT_TRUE(found.rows[0].at_flops.empty());                 // the trace does not say
    // Between two settings: linear in the steps.
    const std::vector<MatchedPoint>& curve = found.rows[2].curve; // 0, 1, 2, 3 steps
    ASSERT_EQ(curve.size(), 4U);
    EXPECT_NEAR(found.rows[2].at_steps[1].nll.value, (curve[1].nll + curve[2].nll) / 2, 1e-12);
    EXPECT_EQ(settings_around(found.rows[2], {0.5, 1.5}),
              (std::vector<std::string>{"fixed:n=0", "fixed:n=1", "fixed:n=2"}));
    EXPECT_TRUE(settings_around(found.rows[3], {0.5}).empty());
    const std::string refusal = testing::error_of([&] { (void)compare(table, rules, {3.5}); });
    EXPECT_NE(refusal.find("--policy full"), std::string::npos) << refusal;
    EXPECT_NE(refusal.find(" 3.5"), std::string::npos) << refusal;
    EXPECT_TRUE(refusal.ends_with("[policy.cost]")) << refusal;
    // At the very end every rule is the whole run.
    const MatchedComparison end = compare(table, rules, {3});
    EXPECT_EQ(end.rows[0].name, "uniform");
    EXPECT_EQ(end.rows[0].curve.size(), 33U);
    for (const MatchedRow& row : end.rows) {
        if (row.causal) {
            EXPECT_NEAR(row.at_steps[0].nll.value, curve[3].nll, 1e-9) << row.name;
        }
    }
    EXPECT_THROW(compare(table, {"full"}, {1.5}), InputError);
}

TEST(Matched, AtEqualFlopsWhereTheTraceSaysWhatStepsCost) {
    ReplayTable table = made_up(60);
    FlopsModel model;
    model.steps = {1000, 1000, 1000, 1000};
    model.windows = {0};
    model.decisions = {0, 0, 0};
    model.read_out = 100;
    table.flops = model;
    table.windows.assign(60, plan_windows(40, 64, 32));
    const MatchedComparison found = compare(table, {"uniform", "fixed", "entropy"}, {0.5, 1.5});
    ASSERT_EQ(found.rows[0].at_flops.size(), 2U);
    // Steps are all that costs, so equal FLOPs are equal steps; a rule that reads the output pays for it.
    for (std::size_t c = 0; c < 2; ++c) {
        const MatchedCell& by_steps = found.rows[1].at_steps[c];
        const MatchedCell& by_flops = found.rows[1].at_flops[c];
        EXPECT_NEAR(by_flops.cost, 1100 + 1000 * by_steps.cost, 1);
        EXPECT_NEAR(by_flops.nll.value, by_steps.nll.value, 1e-9);
        EXPECT_NEAR(by_flops.nll.low, by_steps.nll.low, 1e-9);
        EXPECT_NEAR(by_flops.difference.high, by_steps.difference.high, 1e-9);
        EXPECT_GT(found.rows[2].at_flops[c].difference.value, found.rows[2].at_steps[c].difference.value);
        EXPECT_LT(found.rows[2].at_flops[c].difference.high - found.rows[2].at_flops[c].difference.low, 0.1);
    }
}

/// A table in which the first step gains much for all tokens alike, and what tokens gain is told by nothing.
ReplayTable alike() {
    ReplayTable table = made_up(60);
    const float mean[] = {3, 1, 0.9F, 0.85F};
    for (std::int64_t k = 0; k <= last_step; ++k) {
        for (std::size_t i = 0; i < table.tokens(); ++i) {
            const TokenPlace& place = table.places[i];
            float& nll = table.columns.column(PolicySignal::nll, k)[i];
            nll = std::isnan(nll)
                      ? nll
                      : mean[k] + static_cast<float>(token_draw(20, place.sequence, place.position));
        }
    }
    const std::span<const float> last = std::as_const(table.columns).column(PolicySignal::nll, last_step);
    table.nll.assign(last.begin(), last.end());
    return table;
}

TEST(Matched, ThinksBetterOnlyWhatBeatsTheBestBlindRule) {
    // Against a bad random rule a rule that knows nothing looks good; it is not called better.
    const MatchedComparison flattered =
        compare(alike(), {"uniform", "blind", "second_order", "fixed"}, {2.5});
    EXPECT_LT(flattered.rows[2].at_steps[0].band.high, 0);
    EXPECT_LT(flattered.rows[3].at_steps[0].band.high, 0);
    for (const MatchedRow& row : flattered.rows) {
        EXPECT_FALSE(row.at_steps[0].better) << row.name;
    }
    const MatchedComparison fair = compare(alike(), {"blind", "second_order", "fixed"}, {2.5});
    EXPECT_NEAR(fair.rows[1].at_steps[0].difference.value, 0, 0.01);
    EXPECT_NEAR(fair.rows[2].at_steps[0].difference.value, 0, 1e-12);
    // One that knows is better, whatever the others are set against.
    for (const char* against : {"blind", "uniform"}) {
        std::vector<std::string> rules{against, "entropy"};
        if (rules[0] != "blind") {
            rules.emplace_back("blind");
        }
        const MatchedComparison found = compare(made_up(60), rules, {1.5});
        EXPECT_TRUE(found.rows[1].at_steps[0].better) << against;
        EXPECT_FALSE(found.rows[0].at_steps[0].better) << against;
    }
}

TEST(Matched, TheBestBlindRuleIsTheHullOfTheFixedDepths) {
    // Step 1 lies above the line from 0 to 2, and after step 2 it gets worse.
    ReplayTable table = made_up(60);
    const float mean[] = {3, 2.9F, 1, 1.5F};
    for (std::int64_t k = 0; k <= last_step; ++k) {
        for (float& nll : table.columns.column(PolicySignal::nll, k)) {
            nll = std::isnan(nll) ? nll : mean[k];
        }
    }
    const MatchedComparison found = compare(table, {"blind", "fixed"}, {0.5, 1, 2, 2.5});
    const double expected[] = {2.5, 2, 1, 1}; // nobody has to spend the rest
    for (std::size_t c = 0; c < 4; ++c) {
        EXPECT_NEAR(found.rows[0].at_steps[c].nll.value, expected[c], 1e-6);
    }
    EXPECT_NEAR(found.rows[1].at_steps[1].nll.value, 2.9, 1e-6);
    ASSERT_EQ(found.rows[0].curve.size(), 2U);
    EXPECT_EQ(found.rows[0].curve[1].policy, "fixed:n=2");
    EXPECT_EQ(settings_around(found.rows[0], {2.5}), (std::vector<std::string>{"fixed:n=0", "fixed:n=2"}));
    // The same of one setting at its own cost.
    const ScoredRows rows(table);
    BootstrapOptions options{.replicates = 100};
    std::vector<ScoredSetting> depths;
    for (int n = 0; n <= last_step; ++n) {
        const ReplayResult one = replay(table, PolicySpec::parse("fixed:n=" + std::to_string(n)));
        depths.push_back({"", rows.of(one.steps), rows.of(one.nll), {}});
    }
    const std::vector<ScoredSetting> settings{depths[1], depths[3]};
    const std::vector<Estimate> apart = against_blind(settings, depths, rows.layout(), options);
    EXPECT_NEAR(apart[0].value, 0.9, 1e-6);
    EXPECT_NEAR(apart[1].value, 0.5, 1e-6);
    EXPECT_LE(apart[0].low, apart[0].value);
}

TEST(Matched, BlocksAreThoseOfTheRunWhateverRulesAreAskedFor) {
    const ReplayTable table = made_up(3);
    const MatchedComparison some = compare(table, {"blind", "entropy"}, {1.5});
    const MatchedComparison more =
        compare(table, {"uniform", "blind", "second_order", "oracle", "entropy"}, {1.5});
    EXPECT_EQ(some.resampling.words(), more.resampling.words());
    EXPECT_TRUE(some.resampling.chosen);
    EXPECT_EQ(some.rows[1].at_steps[0].nll.low, more.rows[4].at_steps[0].nll.low);
}

TEST(Matched, SumsOfClustersGiveWhatTheirTokensGive) {
    ReplayTable table = made_up(60);
    for (std::int64_t s = 0; s < 60; ++s) {
        table.clusters.push_back(s < 20 ? s / 2 : s - 10); // some clusters are of two sequences
    }
    BootstrapOptions options{.replicates = 200};
    const ScoredRows tokens(table);
    ScoredRows clusters = tokens;
    clusters.add_up_clusters(options);
    ASSERT_TRUE(clusters.layout().by_cluster());
    EXPECT_EQ(clusters.layout().rows(), 50U);
    EXPECT_EQ(clusters.layout().tokens(), tokens.layout().tokens());
    EXPECT_EQ(clusters.of(table.ran).front(), 2 * 39 * last_step);
    const std::vector<std::string> rules{"blind", "entropy", "oracle"};
    const std::vector<double> costs{0.8, 1.5};
    const auto compared = [&](const ScoredRows& scored) {
        return compare_matched(
            rules.size(),
            [&](std::size_t i, const MatchedCosts& at) {
                return replayed_rule(table, scored, rules[i], 9, at);
            },
            0, {costs, {}}, scored.layout(), options);
    };
    const MatchedComparison sums = compared(clusters);
    const MatchedComparison whole = compared(tokens);
    EXPECT_EQ(sums.resampling.words(), whole.resampling.words());
    for (std::size_t r = 0; r < rules.size(); ++r) {
        for (std::size_t c = 0; c < costs.size(); ++c) {
            const MatchedCell& a = sums.rows[r].at_steps[c];
            const MatchedCell& b = whole.rows[r].at_steps[c];
            EXPECT_NEAR(a.nll.value, b.nll.value, 1e-9);
            EXPECT_NEAR(a.nll.low, b.nll.low, 1e-9);
            EXPECT_NEAR(a.difference.high, b.difference.high, 1e-9);
        }
    }
    std::ranges::fill(table.columns.column(PolicySignal::nll, 1), std::numeric_limits<float>::quiet_NaN());
    EXPECT_THROW((void)replayed_rule(table, clusters, "entropy", 9), InputError);
}

TEST(Matched, BelowWhatTheReferenceReachesMoreStepsAreAdvised) {
    const std::string refusal = testing::error_of([&] {
        (void)compare(made_up(60), {"second_order", "uniform"}, {0.5}); // it takes two steps to judge
    });
    EXPECT_TRUE(refusal.ends_with("[policy.cost]")) << refusal;
    EXPECT_EQ(refusal.find("--policy full"), std::string::npos) << refusal;
}

TEST(Thresholds, AreNotPassedByWhatEqualsThem) {
    ReplayTable table = made_up(1);
    for (const PolicySignal signal : {PolicySignal::entropy, PolicySignal::acceleration}) {
        for (std::int64_t k = 0; k <= last_step; ++k) {
            std::ranges::fill(table.columns.column(signal, k), 0.5F);
        }
    }
    for (const char* const policy :
         {"entropy:theta=0.5", "entropy_difference:theta=0", "second_order:theta=0.5"}) {
        EXPECT_EQ(replay(table, PolicySpec::parse(policy)).mean_steps, last_step) << policy;
    }
    EXPECT_EQ(replay(table, PolicySpec::parse("entropy:theta=0.51")).mean_steps, 0);
    EXPECT_EQ(replay(table, PolicySpec::parse("entropy_difference:theta=0.001")).mean_steps, 1);
}

TEST(Thresholds, ReachFromNobodyToEverybody) {
    // Of so many values the quantiles are those of a sample; the ends are of all.
    ReplayTable table = made_up(1000);
    for (std::int64_t k = 0; k <= last_step; ++k) {
        table.columns.column(PolicySignal::entropy, k)[101] = 5;
        table.columns.column(PolicySignal::entropy, k)[103] = -2;
    }
    const PolicyKind& entropy = *PolicySpec::parse("entropy:theta=1").kind;
    const std::vector<double> values = threshold_values(entropy, table, 9);
    ASSERT_EQ(values.size(), 9U);
    EXPECT_TRUE(std::is_sorted(values.begin(), values.end()));
    const auto steps_at = [&](double value) { return replay(table, policy_at(entropy, value)).mean_steps; };
    EXPECT_EQ(steps_at(values.back()), 0);
    EXPECT_GT(values.back(), 5);
    // The least threshold that the rule takes is 0, so the negative entropy stops at once: one token.
    EXPECT_NEAR(steps_at(values.front()), last_step * (1 - 1.0 / (1000 * 39)), 1e-3);
    EXPECT_GT(steps_at(values[4]), 0.5);
    EXPECT_LT(steps_at(values[4]), 2.5);
}

TEST(Thresholds, OfADifferenceAreThoseOfWhatChanges) {
    // The entropy falls by 0.5 and 0.25, whatever it is itself; what it did in the last step stops nobody.
    ReplayTable table = made_up(3);
    const float entropy[] = {9, 8.5F, 8.25F, 8.125F};
    for (std::int64_t k = 0; k <= last_step; ++k) {
        std::ranges::fill(table.columns.column(PolicySignal::entropy, k), entropy[k]);
    }
    const PolicyKind& kind = *PolicySpec::parse("entropy_difference:theta=1").kind;
    const std::vector<double> values = threshold_values(kind, table, 9);
    ASSERT_GE(values.size(), 3U);
    EXPECT_NEAR(values.front(), 0.25 * (1 - 2e-4), 1e-9);
    EXPECT_NEAR(values.back(), 0.5 * (1 + 2e-4), 1e-9);
    EXPECT_TRUE(std::ranges::find(values, 0.25) != values.end()) << "what it is compared with, exactly";
    const auto steps_at = [&](double value) { return replay(table, policy_at(kind, value)).mean_steps; };
    EXPECT_EQ(steps_at(values.front()), last_step);
    EXPECT_EQ(steps_at(values.back()), 1);
    EXPECT_EQ(steps_at(0.251), 2);
}

TEST(Thresholds, AreOfStepsThatAreJudged) {
    ReplayTable table = made_up(20);
    for (const PolicySignal signal : {PolicySignal::kl, PolicySignal::latent}) {
        table.columns.add(signal);
        for (std::int64_t k = 0; k <= last_step; ++k) {
            std::ranges::copy(table.columns.column(PolicySignal::acceleration, k),
                              table.columns.column(signal, k).begin());
        }
    }
    for (const auto& [name, signal] : {std::pair{"kl", PolicySignal::kl},
                                       {"latent_difference", PolicySignal::latent},
                                       {"second_order", PolicySignal::acceleration}}) {
        const PolicyKind& kind = *PolicySpec::parse(std::string(name) + ":theta=1").kind;
        for (std::int64_t k = 0; k < kind.first_step; ++k) { // half as recorded, half as of a start state
            std::ranges::fill(table.columns.column(signal, k), k % 2 == 0 ? 0.0F : 500.0F);
        }
        const std::vector<double> values = threshold_values(kind, table, 33);
        EXPECT_EQ(values.size(), 33U) << name;
        EXPECT_LT(values.back(), 1.1) << name;
        std::set<double> steps;
        for (const double value : values) {
            steps.insert(replay(table, policy_at(kind, value)).mean_steps);
        }
        EXPECT_EQ(steps.size(), 33U) << name;
    }
}

TEST(Matched, RulesThatJudgeNoStepAreLeftOutOrStopNobody) {
    // One further step: what is compared with the step before is never judged.
    ReplayTable table;
    table.run = "t.ponder#run";
    table.columns = SignalColumns(1, 40);
    for (const PolicySignal signal :
         {PolicySignal::nll, PolicySignal::entropy, PolicySignal::cosine, PolicySignal::margin,
          PolicySignal::argmax, PolicySignal::kl, PolicySignal::latent, PolicySignal::acceleration}) {
        table.columns.add(signal);
        std::ranges::generate(table.columns.column(signal, 0),
                              [i = std::uint64_t{0}]() mutable { return token_draw(9, 0, i++); });
    }
    table.sequences = {40};
    for (std::uint32_t t = 0; t < 40; ++t) {
        table.places.push_back({0, t, 40});
    }
    table.ran.assign(40, 1);
    table.nll.assign(40, 1.0F);
    table.finish();
    EXPECT_EQ(matched_rules(table), (std::vector<std::string>{"blind", "fixed", "uniform", "geometric",
                                                              "oracle", "calm_margin", "entropy"}));
    // With more steps that nobody ran there is no value to try.
    ReplayTable halted = made_up(3);
    std::ranges::fill(halted.ran, 0);
    halted.finish();
    const MatchedComparison found = compare(halted, matched_rules(halted), {0});
    for (const MatchedRow& row : found.rows) {
        EXPECT_EQ(row.at_steps.at(0).difference.value, 0) << row.name;
        if (row.name == "second_order" || row.name == "entropy_difference") {
            ASSERT_EQ(row.curve.size(), 1U) << row.name;
            EXPECT_EQ(row.curve[0].policy, "full");
        }
    }
}

TEST(Thresholds, OfADecayingBoundAreThoseBeforeTheDecay) {
    // All cosines are 0.8, so the first tokens stop at 0.8 and the last ones at what is nearly 0.8 / 0.9.
    ReplayTable table = made_up(3);
    table.columns.add(PolicySignal::cosine);
    for (std::int64_t k = 0; k <= last_step; ++k) {
        std::ranges::fill(table.columns.column(PolicySignal::cosine, k), 0.8F);
    }
    const PolicyKind& kind = *PolicySpec::parse("calm_cosine:lambda=1").kind;
    const std::vector<double> values = threshold_values(kind, table, 40);
    ASSERT_EQ(values.size(), 40U); // a value for each place of a sequence
    const double at_end = 0.8F / (0.9 + 0.1 * std::exp(-4.0 * 39 / 40));
    EXPECT_NEAR(values.front(), 0.8 * (1 - 2e-4), 1e-6);
    EXPECT_EQ(rounded(values.back(), 5), rounded(at_end * (1 + 2e-4), 5)); // of five digits
    const auto steps_at = [&](double value) { return replay(table, policy_at(kind, value)).mean_steps; };
    EXPECT_EQ(steps_at(values.front()), 1); // the first state is compared with none
    EXPECT_EQ(steps_at(values.back()), last_step);
    // Of 39 tokens that count those from the middle one on stop at the middle value.
    EXPECT_NEAR(steps_at(values[20]), 1 + 2 * 20.0 / 39, 0.06);
}

TEST(SecondOrder, NeedsThreeStatesAndSoManyHits) {
    ReplayTable table = made_up(1);
    for (std::int64_t k = 0; k <= last_step; ++k) {
        std::ranges::fill(table.columns.column(PolicySignal::acceleration, k), 0.1F);
    }
    EXPECT_EQ(replay(table, PolicySpec::parse("second_order:theta=0.2")).mean_steps, 2);
    EXPECT_EQ(replay(table, PolicySpec::parse("second_order:theta=0.1")).mean_steps, 3);
    EXPECT_EQ(replay(table, PolicySpec::parse("second_order:theta=0.2,hits=2")).mean_steps, 3);
}

} // namespace
} // namespace ponderscope
