// SPDX-License-Identifier: GPL-3.0-or-later
// Generation: cached against whole, sampling, stopping; every model.
#include "core/policy/policy_spec.h"
#include "core/ponder/halting/policy_halting.h"
#include "tests/core/ponder/every_model.h"

#include <gtest/gtest.h>

#include <set>

namespace ponderscope {
namespace {

using namespace testing;

class EveryModelGenerates : public EveryModel {};

TEST_P(EveryModelGenerates, CachedGenerationEqualsTheFullForward) {
    const std::vector<std::vector<std::int32_t>> prompts{
        random_ids(9, vocabulary, 7), random_ids(1, vocabulary, 8), random_ids(23, vocabulary, 9)};
    GenerateOptions options;
    options.max_new_tokens = 12;
    std::vector<std::vector<float>> entropies[2];
    std::vector<std::vector<std::int32_t>> ids[2];
    std::vector<std::int64_t> flops[2];
    for (const bool use_cache : {false, true}) {
        options.use_cache = use_cache;
        entropies[use_cache].resize(3);
        ids[use_cache] =
            engine_->generate(prompts, options, RecordLevel::basic,
                              [&](std::int64_t sequence, std::int32_t, const WindowResult& readout) {
                                  entropies[use_cache][static_cast<std::size_t>(sequence)].push_back(
                                      readout.tokens.entropy.front());
                                  flops[use_cache].push_back(readout.tokens.flops.front());
                                  return true;
                              });
    }
    EXPECT_EQ(ids[0], ids[1]);
    EXPECT_EQ(flops[0], flops[1]) << "a cache changes no count";
    for (std::size_t i = 0; i < 3; ++i) {
        ASSERT_EQ(ids[1][i].size(), 12U);
        expect_near(entropies[0][i], entropies[1][i], 1e-4, "entropy while generating");
    }
    // The continuation of a prompt does not depend on the other prompts, and scoring it says the same.
    options.use_cache = true;
    EXPECT_EQ(engine_->generate({prompts[2]}, options).front(), ids[1][2]);
    options.repeat_steps = false;
    EXPECT_EQ(engine_->generate({prompts[2]}, options).front(), ids[1][2]);
    engine_->use_scoring(std::nullopt); // generation is exact
    std::vector<std::int32_t> text = prompts[0];
    text.insert(text.end(), ids[1][0].begin(), ids[1][0].end());
    const Window window = whole(text);
    const WindowResult scored = engine_->score(std::span(&window, 1), RecordLevel::basic).front();
    for (std::size_t t = prompts[0].size() - 1; t + 1 < text.size(); ++t) {
        EXPECT_EQ(scored.tokens.rank[t], 1) << "greedy takes the most likely token";
        EXPECT_NEAR(scored.tokens.entropy[t], entropies[1][0][t + 1 - prompts[0].size()],
                    1e-4 * device_slack());
    }
}

TEST_P(EveryModelGenerates, SamplingIsAFunctionOfItsSeed) {
    const std::vector<std::vector<std::int32_t>> prompts{random_ids(4, vocabulary, 10),
                                                         random_ids(6, vocabulary, 11)};
    GenerateOptions options;
    options.max_new_tokens = 20;
    options.temperature = 1.5;
    options.seed = 5;
    const auto first = engine_->generate(prompts, options);
    EXPECT_EQ(first, engine_->generate(prompts, options));
    options.use_cache = false;
    EXPECT_EQ(first, engine_->generate(prompts, options));
    options.use_cache = true;
    options.seed = 6;
    EXPECT_NE(first, engine_->generate(prompts, options));
    options.top_p = 1e-9; // only the most likely token is left
    GenerateOptions greedy;
    greedy.max_new_tokens = 20;
    EXPECT_EQ(engine_->generate(prompts, options), engine_->generate(prompts, greedy));
    options.top_p = 1;
    options.top_k = 1;
    EXPECT_EQ(engine_->generate(prompts, options), engine_->generate(prompts, greedy));
    options.top_k = vocabulary; // all of them is no cut at all
    const auto all = engine_->generate(prompts, options);
    options.top_k = 0;
    EXPECT_EQ(engine_->generate(prompts, options), all);
}

TEST_P(EveryModelGenerates, SamplingDrawsFromTheMostLikelyTokensOnly) {
    const std::vector<std::vector<std::int32_t>> prompt{random_ids(6, vocabulary, 10)};
    GenerateOptions options;
    options.max_new_tokens = 1;
    options.temperature = 50; // nearly all alike: what is not cut off turns up
    options.top_k = 3;
    std::set<std::int32_t> likely;
    for (options.seed = 0; options.seed < 60; ++options.seed) {
        likely.insert(engine_->generate(prompt, options).front().front());
    }
    EXPECT_EQ(likely.size(), 3U);
    // Of three that are nearly alike, two hold less than 0.7 of the probability of all three, never of all
    // tokens'.
    options.top_p = 0.6;
    std::set<std::int32_t> fewer;
    for (options.seed = 0; options.seed < 60; ++options.seed) {
        fewer.insert(engine_->generate(prompt, options).front().front());
    }
    EXPECT_EQ(fewer.size(), 2U);
    for (const std::int32_t id : fewer) {
        EXPECT_TRUE(likely.contains(id));
    }
}

TEST_P(EveryModelGenerates, GenerationStopsWhereItIsTold) {
    const auto prompt = random_ids(5, vocabulary, 12);
    GenerateOptions options;
    options.max_new_tokens = 10;
    const auto all = engine_->generate({prompt, prompt}, options);
    options.stop_ids = {all[0][3]};
    const auto stopped = engine_->generate({prompt}, options).front();
    ASSERT_LE(stopped.size(), 4U);
    EXPECT_EQ(stopped.back(), all[0][3]);
    options.stop_ids.clear();
    int calls = 0;
    const auto cut =
        engine_->generate({prompt}, options, RecordLevel::basic,
                          [&](std::int64_t, std::int32_t, const WindowResult&) { return ++calls < 3; });
    EXPECT_EQ(cut.front().size(), 3U);
}

/// What a prompt's continuation was, with everything that was recorded of each new token.
struct Continuation {
    std::vector<std::int32_t> ids;
    std::vector<WindowResult> readouts;
};

std::vector<Continuation> continued(const Engine& engine,
                                    const std::vector<std::vector<std::int32_t>>& prompts,
                                    const GenerateOptions& options) {
    std::vector<Continuation> result(prompts.size());
    const auto ids = engine.generate(prompts, options, RecordLevel::steps,
                                     [&](std::int64_t prompt, std::int32_t, const WindowResult& readout) {
                                         result[static_cast<std::size_t>(prompt)].readouts.push_back(readout);
                                         return true;
                                     });
    for (std::size_t i = 0; i < ids.size(); ++i) {
        result[i].ids = ids[i];
    }
    return result;
}

void expect_equal(const Continuation& together, const Continuation& alone, double tolerance,
                  const std::string& what) {
    std::size_t equal = alone.readouts.size();
    if (device_slack() == 1) {
        ASSERT_EQ(together.ids, alone.ids) << what;
        ASSERT_EQ(together.readouts.size(), alone.readouts.size()) << what;
    } else {
        // A draw that falls on the border between two words goes where rounding has it, and the text with it.
        const auto [a, b] =
            std::mismatch(together.ids.begin(), together.ids.end(), alone.ids.begin(), alone.ids.end());
        equal = std::min(equal, static_cast<std::size_t>(b - alone.ids.begin()));
        ASSERT_GE(equal + 3, alone.readouts.size()) << what;
    }
    for (std::size_t n = 0; n < equal; ++n) {
        const TokenColumns& ours = together.readouts[n].tokens;
        const TokenColumns& theirs = alone.readouts[n].tokens;
        const std::string where = what + ", new token " + std::to_string(n);
        EXPECT_EQ(ours.steps, theirs.steps) << where;
        EXPECT_EQ(ours.flops, theirs.flops) << where;
        expect_near(ours.entropy, theirs.entropy, tolerance, where + ", entropy");
        for (const auto& [name, chunk] : alone.readouts[n].signals) {
            if (chunk.dtype == DType::f32 && name != signal::scoring_flops) {
                // A quotient of small movements magnifies their rounding.
                expect_near(values<float>(together.readouts[n], name), values<float>(alone.readouts[n], name),
                            name == signal::acceleration || name == signal::update_cosine ? 10 * tolerance
                                                                                          : tolerance,
                            where + ", " + name);
            }
        }
    }
}

TEST_P(EveryModelGenerates, PromptsThatStopAtDifferentTokensGiveTogetherWhatEachGivesAlone) {
    const std::vector<std::vector<std::int32_t>> prompts{
        random_ids(5, vocabulary, 41), random_ids(2, vocabulary, 42), random_ids(9, vocabulary, 43),
        random_ids(14, vocabulary, 44)};
    // Where a mixture is cut to the most likely words, two that are nearly alike change places by rounding.
    const double tolerance = engine_->config().ponder.interpolation_use_topk ? 1e-3 : 1e-4;
    const auto check = [&](GenerateOptions options, const std::string& what) {
        options.max_new_tokens = 9;
        // Ends that stop the first and the third early and leave others going, wherever these come to meet
        // them.
        const auto unstopped = engine_->generate(prompts, options);
        options.stop_ids = {unstopped[0][2], unstopped[2][5]};
        const auto together = continued(*engine_, prompts, options);
        ASSERT_LE(together[0].ids.size(), 3U) << what;
        ASSERT_LE(together[2].ids.size(), 6U) << what;
        for (std::size_t i = 0; i < prompts.size(); ++i) {
            GenerateOptions one = options;
            one.first_sequence = static_cast<std::int64_t>(i);
            expect_equal(together[i], continued(*engine_, {prompts[i]}, one).front(), tolerance,
                         what + ", prompt " + std::to_string(i));
        }
        // In batches of two, numbered as in one.
        GenerateOptions rest = options;
        rest.first_sequence = 2;
        const auto last = continued(*engine_, {prompts[2], prompts[3]}, rest);
        expect_equal(together[2], last[0], tolerance, what + ", batches of two");
        expect_equal(together[3], last[1], tolerance, what + ", batches of two");
    };
    GenerateOptions greedy;
    GenerateOptions sampled;
    sampled.temperature = 1.3;
    sampled.seed = 11;
    GenerateOptions anew = greedy;
    anew.use_cache = false;
    check(greedy, "greedy");
    check(sampled, "sampled");
    check(anew, "without a cache");
    const bool vanilla = engine_->config().ponder.method == MethodKind::vanilla;
    if (vanilla && engine_->config().depth.kind != DepthMixing::none &&
        engine_->config().depth.kind != DepthMixing::depth_attention) {
        return; // no single residual stream to exit from
    }
    if (vanilla) {
        engine_->use_layers_as_steps();
    }
    for (const char* policy : {"uniform:rate=1,seed=3", "entropy:theta=2.2", "full"}) {
        engine_->use_halting(rule_of(PolicySpec::parse(policy), *engine_));
        check(sampled, policy);
    }
}

INSTANTIATE_TEST_SUITE_P(Models, EveryModelGenerates, ::testing::Range<std::size_t>(0, subjects().size()),
                         [](const auto& one) { return std::string(subjects().at(one.param).name); });

} // namespace
} // namespace ponderscope
