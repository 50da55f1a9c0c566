// SPDX-License-Identifier: GPL-3.0-or-later
// Generation: cached against whole, sampling, stopping; every model.
#include "core/policy/policy_spec.h"
#include "core/ponder/halting/policy_halting.h"
#include "core/trace/reader.h"
#include "tests/core/ponder/continuations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace ponderscope {
namespace {

using namespace testing;

class EveryModelGenerates : public EveryModel {};

TEST_P(EveryModelGenerates, CachedGenerationEqualsTheFullForward) {
    const std::vector<std::vector<std::int32_t>> prompts{
        random_ids(9, vocabulary, 7), random_ids(1, vocabulary, 8), random_ids(23, vocabulary, 9)};
    GenerateOptions options{.max_new_tokens = 12, .use_cache = false};
    const auto whole_text = continued(*engine_, prompts, options);
    options.use_cache = true;
    const auto cached = continued(*engine_, prompts, options);
    for (std::size_t i = 0; i < 3; ++i) {
        ASSERT_EQ(cached[i].ids.size(), 12U);
        expect_equal(whole_text[i], cached[i], tolerance(1e-4), "with and without a cache");
    }
    // The continuation of a prompt does not depend on the other prompts, and scoring it says the same.
    GenerateOptions third = options;
    third.first_sequence = 2;
    expect_equal(continued(*engine_, {prompts[2]}, third).front(), cached[2], tolerance(1e-4), "alone");
    third.repeat_steps = false;
    expect_equal(continued(*engine_, {prompts[2]}, third).front(), cached[2], tolerance(1e-4),
                 "step by step");
    engine_->choose(&RunPlan::refreshes, std::nullopt); // generation is exact
    std::vector<std::int32_t> text = prompts[0];
    text.insert(text.end(), cached[0].ids.begin(), cached[0].ids.end());
    const TokenColumns scored = scored_alone(*engine_, whole(text), RecordLevel::basic).tokens;
    for (std::size_t t = prompts[0].size() - 1; t + 1 < text.size(); ++t) {
        if (!half_precision()) {
            EXPECT_EQ(scored.rank[t], 1) << "greedy takes the most likely token";
        }
        EXPECT_NEAR(std::exp(-scored.nll[t]), scored.max_probability[t], within(1e-4))
            << "of two that are alike one";
        const WindowResult& written = cached[0].readouts[t + 1 - prompts[0].size()];
        EXPECT_NEAR(scored.entropy[t], written.tokens.entropy.front(), within(tolerance(1e-4)));
    }
}

/// A device that captures steps must replay them. Elsewhere, and where tokens can stop, there is no graph.
TEST(Generation, ReplaysStepsOnADeviceThatCaptures) {
    const TemporaryFolder folder;
    const Engine engine = load_engine(make_checkpoint(folder.path(), tiny_gpt_neox()));
    GraphUse graphs;
    (void)engine.generate({random_ids(5, 61, 3)}, {.max_new_tokens = 8, .graphs = &graphs});
    EXPECT_EQ(graphs.failure, "");
    EXPECT_EQ(graphs.captures, test_device() == "cpu" ? 0 : 1);
    EXPECT_EQ(graphs.replays > 0, test_device() != "cpu");
}

TEST_P(EveryModelGenerates, SamplingIsAFunctionOfItsSeed) {
    const std::vector<std::vector<std::int32_t>> prompts{random_ids(4, vocabulary, 10),
                                                         random_ids(6, vocabulary, 11)};
    GenerateOptions options{.max_new_tokens = 20, .temperature = 1.5, .seed = 5};
    const auto drawn = engine_->generate(prompts, options);
    EXPECT_EQ(drawn, engine_->generate(prompts, options));
    // Tokens that are recorded have products of their own, whose shape rounds.
    const auto first = continued(*engine_, prompts, options);
    for (std::size_t i = 0; i < drawn.size() && !half_precision(); ++i) {
        EXPECT_EQ(first[i].ids, drawn[i]);
    }
    options.use_cache = false;
    const auto anew = continued(*engine_, prompts, options);
    expect_equal(anew[0], first[0], tolerance(1e-4), "with and without a cache");
    expect_equal(anew[1], first[1], tolerance(1e-4), "with and without a cache");
    options.use_cache = true;
    options.seed = 6;
    EXPECT_NE(drawn[0], engine_->generate(prompts, options)[0]);
    options.top_p = 1e-9; // only the most likely token is left
    GenerateOptions greedy{.max_new_tokens = 20};
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
    GenerateOptions options{.max_new_tokens = 1};
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

/// What sampling makes of logits, written down again: softmax at the temperature, the top k, of these the
/// smallest set with top p, renormalised. By id.
std::vector<double> filtered(const std::vector<float>& logits, const GenerateOptions& options) {
    std::vector<std::pair<double, std::size_t>> order;
    for (std::size_t id = 0; id < logits.size(); ++id) {
        order.emplace_back(-static_cast<double>(logits[id]), id);
    }
    std::sort(order.begin(), order.end());
    order.resize(options.temperature <= 0 ? 1
                 : options.top_k > 0      ? std::min(order.size(), static_cast<std::size_t>(options.top_k))
                                          : order.size());
    const double temperature = options.temperature > 0 ? options.temperature : 1;
    double all = 0;
    for (const auto& [minus, id] : order) {
        all += std::exp(-minus / temperature);
    }
    std::vector<double> result(logits.size(), 0);
    double kept = 0;
    for (const auto& [minus, id] : order) {
        if (kept / all < options.top_p) {
            kept += result[id] = std::exp(-minus / temperature);
        }
    }
    for (double& value : result) {
        value /= kept;
    }
    return result;
}

TEST(Generation, SamplingIsReportedAsSoftmaxOfTheFilteredLogits) {
    const TemporaryFolder folder;
    const Engine engine = load_engine(make_checkpoint(folder.path(), tiny_gpt_neox()));
    bool unlikely = false;
    for (const auto& [temperature, top_k, top_p] :
         {std::tuple{0.0, 0, 1.0}, {0.7, 5, 1.0}, {1.3, 0, 0.6}, {1.0, 20, 0.8}, {5.0, 0, 1.0}}) {
        GenerateOptions options{.max_new_tokens = 6,
                                .temperature = temperature,
                                .top_k = top_k,
                                .top_p = top_p,
                                .seed = 3,
                                .reports_sampling = true};
        std::vector<std::int32_t> ids = random_ids(5, 61, 3);
        const Continuation drawn = continued(engine, {ids}, options).front();
        ASSERT_EQ(drawn.readouts.size(), 6U);
        for (std::size_t n = 0; n < drawn.ids.size(); ++n) {
            const std::vector<float> all = engine.inspect_batch({ids}).at("logits").floats;
            const std::vector<float> logits(all.end() - 61, all.end());
            const std::vector<double> before = filtered(logits, {.temperature = 1});
            const std::vector<double> after = filtered(logits, options);
            std::map<std::string, SignalChunk> signals;
            for (const auto& [name, chunk] : drawn.readouts[n].signals) {
                signals[name] = chunk;
            }
            const std::vector<std::int64_t> listed = to_integers(signals.at(signal::sampling_ids));
            ASSERT_EQ(listed.size(), 10U);
            EXPECT_EQ(std::count(listed.begin(), listed.end(), drawn.ids[n]), 1);
            unlikely = unlikely || std::count_if(before.begin(), before.end(), [&](double one) {
                                       return one > before[static_cast<std::size_t>(drawn.ids[n])];
                                   }) >= 10;
            for (std::size_t i = 0; i < listed.size(); ++i) {
                const auto id = static_cast<std::size_t>(listed[i]);
                EXPECT_NEAR(to_floats(signals.at(signal::sampling_before))[i], before[id], within(1e-5));
                EXPECT_NEAR(to_floats(signals.at(signal::sampling_after))[i], after[id], within(1e-4));
            }
            ids.push_back(drawn.ids[n]);
        }
    }
    EXPECT_TRUE(unlikely) << "a token beyond the ten likeliest was drawn";
}

TEST_P(EveryModelGenerates, GenerationStopsWhereItIsTold) {
    const auto prompt = random_ids(5, vocabulary, 12);
    GenerateOptions options{.max_new_tokens = 10};
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

TEST_P(EveryModelGenerates, PromptsThatStopAtDifferentTokensGiveTogetherWhatEachGivesAlone) {
    const std::vector<std::vector<std::int32_t>> prompts{
        random_ids(5, vocabulary, 41), random_ids(2, vocabulary, 42), random_ids(9, vocabulary, 43),
        random_ids(14, vocabulary, 44)};
    const auto check = [&](GenerateOptions options, const std::string& what) {
        options.max_new_tokens = 9;
        // Ends that stop the first and the third early and leave others going, wherever these come to meet
        // them.
        const auto unstopped = continued(*engine_, prompts, options, RecordLevel::steps);
        options.stop_ids = {unstopped[0].ids[2], unstopped[2].ids[5]};
        const auto together = continued(*engine_, prompts, options, RecordLevel::steps);
        if (!half_precision()) { // where fewer rows go on, their rounding is another, and the text with it
            ASSERT_LE(together[0].ids.size(), 3U) << what;
            ASSERT_LE(together[2].ids.size(), 6U) << what;
        }
        for (std::size_t i = 0; i < prompts.size(); ++i) {
            GenerateOptions one = options;
            one.first_sequence = static_cast<std::int64_t>(i);
            expect_equal(together[i], continued(*engine_, {prompts[i]}, one, RecordLevel::steps).front(),
                         tolerance(1e-4), what + ", prompt " + std::to_string(i));
        }
        // In batches of two, numbered as in one.
        GenerateOptions rest = options;
        rest.first_sequence = 2;
        const auto last = continued(*engine_, {prompts[2], prompts[3]}, rest, RecordLevel::steps);
        expect_equal(together[2], last[0], tolerance(1e-4), what + ", batches of two");
        expect_equal(together[3], last[1], tolerance(1e-4), what + ", batches of two");
    };
    GenerateOptions greedy;
    GenerateOptions sampled{.temperature = 1.3, .seed = 11};
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
        engine_->choose(&RunPlan::layers_are_steps, true);
    }
    for (const char* policy : {"uniform:rate=1,seed=3", "entropy:theta=2.2", "full"}) {
        if (half_precision() && std::string(policy).starts_with("entropy")) {
            continue; // rounding would decide
        }
        engine_->choose(&RunPlan::rule, rule_of(PolicySpec::parse(policy), *engine_));
        check(sampled, policy);
    }
}

INSTANTIATE_TEST_SUITE_P(Models, EveryModelGenerates, ::testing::Range<std::size_t>(0, subjects().size()),
                         [](const auto& one) { return std::string(subjects().at(one.param).name); });

} // namespace
} // namespace ponderscope
