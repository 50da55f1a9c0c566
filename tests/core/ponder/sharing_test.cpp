// SPDX-License-Identifier: GPL-3.0-or-later
// Windows that share the computation of their common beginnings: every number as of windows computed alone.
#include "core/policy/policy_spec.h"
#include "core/ponder/choices/run_plan.h"
#include "core/ponder/halting/policy_halting.h"
#include "core/trace/reader.h"
#include "tests/core/ponder/every_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

namespace ponderscope {
namespace {

using namespace testing;

std::vector<std::int32_t> joined_ids(std::vector<std::int32_t> ids, std::int64_t more, std::uint64_t seed) {
    const std::vector<std::int32_t> rest = random_ids(more, vocabulary, seed);
    ids.insert(ids.end(), rest.begin(), rest.end());
    return ids;
}

/// Four options of one context, a text of its own, two that share a little, and one that begins another.
struct Requests {
    std::vector<std::vector<std::int32_t>> ids;
    std::vector<Window> windows;

    explicit Requests(bool every_token) {
        const std::vector<std::int32_t> context = random_ids(11, vocabulary, 3);
        for (std::uint64_t i = 0; i < 4; ++i) {
            ids.push_back(joined_ids(context, 1 + static_cast<std::int64_t>(i), 20 + i));
        }
        ids.push_back(random_ids(5, vocabulary, 4));
        const std::vector<std::int32_t> other = random_ids(3, vocabulary, 5);
        ids.push_back(joined_ids(other, 9, 6));
        ids.push_back(joined_ids(other, 2, 7));
        ids.push_back(other);
        std::int64_t number = 0;
        for (const std::vector<std::int32_t>& one : ids) {
            const auto length = static_cast<std::int64_t>(one.size());
            Window window{one, every_token ? 0 : length / 2, length, number++, 0, length};
            window.next = number % 2 == 0 ? 5 : -1;
            windows.push_back(window);
        }
    }
};

/// Of two words that are nearly alike, rounding decides which comes first: a place of one token.
void expect_ranks_alike(const std::vector<std::int32_t>& a, const std::vector<std::int32_t>& b,
                        const std::string& where) {
    ASSERT_EQ(a.size(), b.size()) << where;
    int places = 0;
    for (std::size_t t = 0; t < a.size(); ++t) {
        places += std::abs(a[t] - b[t]);
    }
    EXPECT_LE(places, 1) << where << ", ranks";
}

/// Quotients of movements, [token, step], times what rounding is divided by in them: the smaller of a step's
/// and its predecessor's movement, as a part of the state.
std::vector<float> by_movement(std::vector<float> quotients, const WindowResult& result) {
    const SignalChunk* const chunk = find(result, signal::latent_difference);
    if (chunk == nullptr) {
        return quotients;
    }
    const std::vector<float> moved = to_floats(*chunk);
    EXPECT_EQ(moved.size(), quotients.size());
    const auto steps = static_cast<std::size_t>(chunk->shape.at(1));
    for (std::size_t at = 0; at < std::min(moved.size(), quotients.size()); ++at) {
        const float before = at % steps > 0 ? moved[at - 1] : 1.0F;
        quotients[at] *= std::min({1.0F, moved[at], before});
    }
    return quotients;
}

void expect_alike(const Engine& engine, double tolerance, const std::string& what,
                  const std::vector<RecordLevel>& levels = {RecordLevel::steps}) {
    for (const bool every_token : {true, false}) {
        const Requests requests(every_token);
        for (const RecordLevel level : levels) {
            const auto alone = engine.score(requests.windows, level);
            const auto shared = engine.score_sharing(requests.windows, level);
            ASSERT_EQ(shared.size(), alone.size());
            for (std::size_t i = 0; i < alone.size(); ++i) {
                const std::string where = what + ", window " + std::to_string(i);
                EXPECT_EQ(shared[i].tokens.id, alone[i].tokens.id) << where;
                EXPECT_EQ(shared[i].tokens.first, alone[i].tokens.first) << where;
                EXPECT_EQ(shared[i].tokens.steps, alone[i].tokens.steps) << where;
                EXPECT_EQ(shared[i].tokens.flops, alone[i].tokens.flops) << where;
                if (!half_precision() && test_device() == "cpu") {
                    expect_ranks_alike(shared[i].tokens.rank, alone[i].tokens.rank, where);
                }
                expect_near(shared[i].tokens.nll, alone[i].tokens.nll, tolerance, where + ", nll");
                expect_near(shared[i].tokens.entropy, alone[i].tokens.entropy, tolerance, where);
                ASSERT_EQ(shared[i].signals.size(), alone[i].signals.size()) << where;
                for (const auto& [name, chunk] : alone[i].signals) {
                    const SignalChunk* ours = find(shared[i], name);
                    ASSERT_NE(ours, nullptr) << where << ", " << name;
                    EXPECT_EQ(ours->shape, chunk.shape) << where << ", " << name;
                    EXPECT_EQ(ours->data.size(), chunk.data.size()) << where << ", " << name;
                    if (chunk.dtype == DType::f32 && !(magnifies_rounding(name) && half_precision())) {
                        const bool magnifies = magnifies_rounding(name);
                        const auto numbers = [&](const SignalChunk& one) {
                            return magnifies ? by_movement(to_floats(one), alone[i]) : to_floats(one);
                        };
                        expect_near(numbers(*ours), numbers(chunk), magnifies ? 10 * tolerance : tolerance,
                                    where + ", " + name);
                    }
                }
            }
        }
    }
}

class EveryModelShares : public EveryModel {};

TEST_P(EveryModelShares, EqualsWindowsScoredAlone) {
    expect_alike(*engine_, tolerance(1e-4), "as configured",
                 {RecordLevel::steps, RecordLevel::basic, RecordLevel::nll});
    engine_->choose(&RunPlan::refreshes, std::nullopt);
    expect_alike(*engine_, tolerance(1e-4), "exact");
    if (half_precision() || engine_->max_steps() == 0) {
        return; // thresholds on rounded signals would decide by rounding
    }
    for (const char* policy :
         {"full", "entropy:theta=2.5", "fixed:n=1", "calm_margin:lambda=0.3", "uniform:rate=1,seed=4"}) {
        engine_->choose(&RunPlan::rule, rule_of(PolicySpec::parse(policy), *engine_));
        expect_alike(*engine_, tolerance(1e-4), policy);
        for (const KvPolicy kv : {KvPolicy::full, KvPolicy::skip, KvPolicy::shared}) {
            if (engine_->kv().empty()) {
                break;
            }
            engine_->choose(&RunPlan::kv, kv);
            expect_alike(*engine_, tolerance(1e-4), std::string(policy) + ", kv " + engine_->kv());
            engine_->choose(&RunPlan::kv, std::nullopt);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Models, EveryModelShares, ::testing::Range<std::size_t>(0, subjects().size()),
                         [](const auto& one) { return subjects().at(one.param).name; });

TEST(Sharing, ExitsOverLayers) {
    const TemporaryFolder folder;
    Engine engine = load_engine(make_checkpoint(folder.path(), tiny_llama()));
    engine.choose(&RunPlan::rule, rule_of(PolicySpec::parse("fixed:n=1"), engine));
    expect_alike(engine, within(1e-4), "exits");
}

} // namespace
} // namespace ponderscope
