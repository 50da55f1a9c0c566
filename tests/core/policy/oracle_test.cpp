// SPDX-License-Identifier: GPL-3.0-or-later
// The oracle against all assignments of steps to the tokens of small tables.
#include "core/policy/oracle.h"

#include "core/base/splitmix.h"
#include "core/policy/matched.h"
#include "core/stats/front.h"
#include "tests/core/policy/flops_fixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace ponderscope {
namespace {

constexpr std::uint32_t oracle_tokens = 6;
constexpr std::int64_t oracle_last = 2;

/// One sequence whose NLL at the steps is anything; the last token has no target, one did not run on.
ReplayTable anything(std::uint64_t seed, FlopsModel::Visibility visibility) {
    ReplayTable table;
    table.run = "t.ponder#run";
    table.columns = SignalColumns(oracle_last, oracle_tokens);
    table.columns.add(PolicySignal::nll);
    for (std::uint32_t t = 0; t < oracle_tokens; ++t) {
        table.places.push_back({0, t, oracle_tokens});
        table.ran.push_back(t == 2 ? 1 : oracle_last);
        for (std::int64_t k = 0; k <= oracle_last; ++k) {
            table.columns.column(PolicySignal::nll, k)[t] =
                t + 1 == oracle_tokens
                    ? std::numeric_limits<float>::quiet_NaN()
                    : static_cast<float>(4 * token_draw(seed, static_cast<std::uint32_t>(k), t));
        }
    }
    table.sequences = {oracle_tokens};
    const std::span<const float> nll = std::as_const(table.columns).column(PolicySignal::nll, 0);
    table.nll.assign(nll.begin(), nll.end());
    table.flops = testing::adaptive_flops(visibility);
    table.windows = {plan_windows(oracle_tokens, 64, 32)};
    table.finish();
    return table;
}

FrontPoint point_of(const ReplayResult& result, CostAxis axis) {
    double cost = 0;
    double nll = 0;
    for (std::uint32_t t = 0; t + 1 < oracle_tokens; ++t) {
        cost += axis == CostAxis::steps ? result.steps[t] : static_cast<double>(result.flops[t]);
        nll += static_cast<double>(result.nll[t]);
    }
    return {cost / (oracle_tokens - 1), nll / (oracle_tokens - 1)};
}

/// Of all assignments of steps to the tokens with a target.
std::vector<FrontPoint> every_assignment(const ReplayTable& table, CostAxis axis) {
    std::vector<FrontPoint> points;
    ReplayResult result;
    result.steps.assign(oracle_tokens, 0);
    for (int number = 0; number < 243; ++number) {
        int rest = number;
        bool ran = true;
        for (std::uint32_t t = 0; t + 1 < oracle_tokens; ++t, rest /= 3) {
            result.steps[t] = rest % 3;
            ran = ran && result.steps[t] <= table.ran[t];
        }
        if (ran) {
            read_replay(table, false, result);
            points.push_back(point_of(result, axis));
        }
    }
    return points;
}

std::vector<FrontPoint> oracle_points(const ReplayTable& table, CostAxis axis, int most,
                                      const std::vector<double>& costs = {}) {
    const Oracle oracle(table, axis);
    std::vector<FrontPoint> points;
    ReplayResult result;
    for (const double price : oracle_prices(oracle.turns(), most, costs)) {
        oracle.replay(price, result);
        points.push_back(point_of(result, axis));
    }
    return points;
}

TEST(Oracle, IsTheHullOfAllAssignments) {
    for (const CostAxis axis : {CostAxis::steps, CostAxis::flops}) {
        for (std::uint64_t seed = 0; seed < 20; ++seed) {
            const ReplayTable table = anything(seed, FlopsModel::Visibility::per_step);
            const std::vector<FrontPoint> all = every_assignment(table, axis);
            const std::vector<FrontPoint> hull = convex_front(all);
            const std::vector<FrontPoint> found = oracle_points(table, axis, 1000);
            ASSERT_EQ(found.size(), hull.size()) << seed;
            for (std::size_t i = 0; i < hull.size(); ++i) {
                EXPECT_NEAR(found[i].cost, hull[i].cost, 1e-9 * hull[i].cost + 1e-9) << seed;
                EXPECT_NEAR(found[i].loss, hull[i].loss, 1e-6) << seed;
            }
            for (const FrontPoint& one : all) {
                EXPECT_GE(one.loss, loss_at(found, one.cost) - 1e-6) << seed;
            }
            // Of few points those around a cost are enough for the hull there.
            for (const double share : {0.1, 0.4, 0.75}) {
                const double cost = hull.front().cost + share * (hull.back().cost - hull.front().cost);
                EXPECT_NEAR(loss_at(oracle_points(table, axis, 2, {cost}), cost), loss_at(hull, cost), 1e-6);
            }
        }
    }
}

TEST(Oracle, IsABoundWhereATokensFlopsDependOnTheStepsOfOthers) {
    for (const auto visibility : {FlopsModel::Visibility::interleaved,
                                  FlopsModel::Visibility::two_dimensional, FlopsModel::Visibility::skip}) {
        for (std::uint64_t seed = 0; seed < 20; ++seed) {
            const ReplayTable table = anything(seed, visibility);
            const std::vector<FrontPoint> found = oracle_points(table, CostAxis::flops, 1000);
            double nearest = 1;
            for (const FrontPoint& one : every_assignment(table, CostAxis::flops)) {
                if (one.cost < found.front().cost) {
                    ADD_FAILURE() << "an assignment is cheaper than the cheapest of the bound";
                }
                const double above = one.loss - loss_at(found, one.cost);
                EXPECT_GE(above, -1e-6) << seed;
                nearest = std::min(nearest, above);
            }
            EXPECT_LT(nearest, 1e-6); // all at step 0, which costs what it costs
        }
    }
}

TEST(Oracle, OfAPriceAsAPolicyIsOneOfItsPoints) {
    const ReplayTable table = anything(3, FlopsModel::Visibility::per_step);
    const Oracle oracle(table, CostAxis::steps);
    ReplayResult mine;
    for (const double price : {0.0, 0.3, 1.0, 5.0}) {
        oracle.replay(price, mine);
        const ReplayResult policy =
            replay(table, PolicySpec::parse("oracle:lambda=" + std::to_string(price)));
        EXPECT_EQ(policy.steps, mine.steps) << price;
    }
    EXPECT_EQ(replay(table, PolicySpec::parse("oracle")).steps,
              replay(table, PolicySpec::parse("oracle:lambda=0")).steps);
    EXPECT_EQ(mine.steps, (std::vector<std::int32_t>(oracle_tokens, 0))); // nothing is worth five nats a step
}

TEST(Oracle, NoRuleIsBelowItAtEqualCost) {
    const ReplayTable table = anything(5, FlopsModel::Visibility::interleaved);
    const ScoredRows rows(table);
    BootstrapOptions options{.unit = ResamplingUnit::blocks, .block = 1, .replicates = 100};
    const std::vector<std::string> rules{"blind", "uniform", "oracle"};
    const MatchedComparison found = compare_matched(
        rules.size(),
        [&](std::size_t i, const MatchedCosts& at) { return replayed_rule(table, rows, rules[i], 3, at); }, 0,
        {{0.25, 0.5, 1.2, 1.7}, {}}, rows.layout(), options);
    const std::vector<FrontPoint> hull = convex_front(every_assignment(table, CostAxis::steps));
    for (std::size_t c = 0; c < 4; ++c) {
        const MatchedCell& bound = found.rows[2].at_steps[c];
        EXPECT_NEAR(bound.nll.value, loss_at(hull, bound.cost), 1e-6); // beyond its last point, too
        for (const auto axis : {&MatchedRow::at_steps, &MatchedRow::at_flops}) {
            EXPECT_LE((found.rows[2].*axis)[c].nll.value, (found.rows[0].*axis)[c].nll.value + 1e-9);
        }
    }
}

} // namespace
} // namespace ponderscope
