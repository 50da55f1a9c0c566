// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/engine/engine.h"

#include "core/base/error.h"
#include "core/checkpoint/safetensors.h"
#include "core/ponder/halting/halting_rules.h"
#include "tests/core/ponder/continuations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>

namespace ponderscope {
namespace {

using namespace testing;

TEST_P(EveryModel, AWindowGivesTheSameAloneAndInABatch) {
    const auto a = random_ids(17, vocabulary, 1);
    const auto b = random_ids(3, vocabulary, 2);
    const auto c = random_ids(40, vocabulary, 3);
    const std::vector<Window> windows{whole(a), {b, 1, 3, 1}, {c, 20, 40, 2}};
    const auto together = engine_->score(windows, RecordLevel::steps);
    ASSERT_EQ(together.size(), 3U);
    for (std::size_t i = 0; i < windows.size(); ++i) {
        const WindowResult alone = engine_->score(std::span(&windows[i], 1), RecordLevel::steps).front();
        expect_near(together[i].tokens.nll, alone.tokens.nll, tolerance(1e-5), "nll");
        expect_near(together[i].tokens.entropy, alone.tokens.entropy, tolerance(1e-5), "entropy");
        if (!half_precision()) {
            EXPECT_EQ(together[i].tokens.rank, alone.tokens.rank);
        }
        EXPECT_EQ(together[i].tokens.flops, alone.tokens.flops);
        EXPECT_EQ(together[i].tokens.id, alone.tokens.id);
        for (const auto& [name, chunk] : alone.signals) {
            if (chunk.dtype == DType::f32 && !(half_precision() && magnifies_rounding(name))) {
                expect_near(floats_of(together[i], name), floats_of(alone, name), 1e-4, name);
            }
        }
    }
}

TEST_P(EveryModel, ReportingLessChangesNoNumber) {
    const auto ids = random_ids(24, vocabulary, 4);
    const Window all = whole(ids);
    const Window some{ids, 9, 20};
    const WindowResult full = engine_->score(std::span(&all, 1), RecordLevel::steps).front();
    const WindowResult part = engine_->score(std::span(&some, 1), RecordLevel::steps).front();
    ASSERT_EQ(part.tokens.size(), 11U);
    EXPECT_EQ(part.tokens.first, 9);
    for (std::size_t t = 0; t < 11; ++t) {
        EXPECT_NEAR(part.tokens.nll[t], full.tokens.nll[t + 9], within(1e-5));
        EXPECT_EQ(part.tokens.flops[t], full.tokens.flops[t + 9]);
    }
    const auto full_nll = floats_of(full, signal::nll);
    const auto part_nll = floats_of(part, signal::nll);
    const std::size_t steps = full_nll.size() / 24;
    const auto first = full_nll.begin() + static_cast<std::ptrdiff_t>(9 * steps);
    expect_near(part_nll, {first, first + static_cast<std::ptrdiff_t>(part_nll.size())}, 1e-5, "nll by step");
    EXPECT_TRUE(std::isnan(full.tokens.nll.back())) << "a last token has no target";
    EXPECT_EQ(full.tokens.rank.back(), 0);
}

TEST_P(EveryModel, LevelsAgreeAndSayWhatTheyRecord) {
    const auto ids = random_ids(20, vocabulary, 5);
    const Window window = whole(ids);
    const WindowResult plain = scored_alone(*engine_, window, RecordLevel::nll);
    for (const RecordLevel level : {RecordLevel::basic, RecordLevel::steps}) {
        const WindowResult result = scored_alone(*engine_, window, level);
        expect_near(plain.tokens.nll, result.tokens.nll, 1e-6, "nll");
        EXPECT_EQ(plain.tokens.rank, result.tokens.rank);
        const std::vector<SignalInfo> promised = engine_->signals(level);
        ASSERT_EQ(promised.size(), result.signals.size());
        const std::int64_t steps = engine_->config().ponder.method == MethodKind::vanilla
                                       ? 1
                                       : engine_->config().ponder.max_steps + 1;
        for (std::size_t i = 0; i < promised.size(); ++i) {
            EXPECT_EQ(promised[i].name, result.signals[i].first);
            const SignalChunk& chunk = result.signals[i].second;
            EXPECT_EQ(chunk.shape.size(), promised[i].axes.size()) << promised[i].name;
            EXPECT_EQ(chunk.shape[0], 20);
            if (promised[i].axes.size() > 1 && promised[i].axes[1] == "step") {
                EXPECT_EQ(chunk.shape[1], promised[i].name == signal::gate ? steps - 1 : steps);
            }
            EXPECT_EQ(chunk.data.size(),
                      static_cast<std::size_t>(std::accumulate(chunk.shape.begin(), chunk.shape.end(),
                                                               std::int64_t{1}, std::multiplies<>())) *
                          size_of(chunk.dtype));
        }
        if (std::none_of(promised.begin(), promised.end(),
                         [](const SignalInfo& info) { return info.name == signal::nll; })) {
            EXPECT_EQ(level, RecordLevel::basic) << "reading steps out is not free here";
            continue;
        }
        // The read-out at the last step that ran is the output's.
        const auto by_step = floats_of(result, signal::nll);
        const auto entropy = floats_of(result, signal::entropy);
        for (std::size_t t = 0; t + 1 < 20; ++t) {
            EXPECT_FLOAT_EQ(by_step[t * static_cast<std::size_t>(steps) +
                                    static_cast<std::size_t>(result.tokens.steps[t])],
                            result.tokens.nll[t]);
            EXPECT_FLOAT_EQ(entropy[t * static_cast<std::size_t>(steps) +
                                    static_cast<std::size_t>(result.tokens.steps[t])],
                            result.tokens.entropy[t]);
        }
    }
    EXPECT_TRUE(plain.signals.empty());
    EXPECT_TRUE(std::isnan(plain.tokens.entropy.front()));
}

TEST_P(EveryModel, StepSignalsFollowTheirDefinitions) {
    if (engine_->config().ponder.method == MethodKind::vanilla) {
        GTEST_SKIP() << "one step has no step before it";
    }
    const auto ids = random_ids(12, vocabulary, 6);
    const WindowResult result = scored_alone(*engine_, whole(ids), RecordLevel::steps);
    const auto arrays = engine_->inspect_batch({ids});
    const auto steps = static_cast<std::size_t>(engine_->config().ponder.max_steps) + 1;
    const auto d = static_cast<std::size_t>(engine_->config().embed_dim);
    const auto cosine = floats_of(result, signal::cosine);
    const auto difference = floats_of(result, signal::latent_difference);
    const auto acceleration = engine_->config().ponder.max_steps > 1 ? floats_of(result, signal::acceleration)
                                                                     : std::vector<float>();
    const auto kl = floats_of(result, signal::kl_previous_current);
    for (std::size_t t = 0; t < ids.size(); ++t) {
        EXPECT_EQ(cosine[t * steps], 0.0F);
        EXPECT_EQ(kl[t * steps], 0.0F);
        const auto last = static_cast<std::size_t>(result.tokens.steps[t]);
        for (std::size_t k = last + 1; k < steps; ++k) {
            EXPECT_TRUE(std::isnan(cosine[t * steps + k])) << "a step that did not run";
            EXPECT_TRUE(std::isnan(difference[t * steps + k]));
            EXPECT_TRUE(std::isnan(kl[t * steps + k]));
        }
        for (std::size_t k = 1; k <= last; ++k) {
            const auto& now = arrays.at("hidden.step" + std::to_string(k)).floats;
            const auto& before = arrays.at("hidden.step" + std::to_string(k - 1)).floats;
            double dot = 0;
            double squares = 0;
            double squares_before = 0;
            double gap = 0;
            for (std::size_t i = t * d; i < (t + 1) * d; ++i) {
                dot += static_cast<double>(now[i]) * before[i];
                squares += static_cast<double>(now[i]) * now[i];
                squares_before += static_cast<double>(before[i]) * before[i];
                gap += std::pow(static_cast<double>(now[i]) - before[i], 2);
            }
            EXPECT_NEAR(cosine[t * steps + k], dot / std::sqrt(squares * squares_before), 1e-5);
            EXPECT_NEAR(difference[t * steps + k], std::sqrt(gap / squares), 1e-5);
            if (k > 1) {
                const auto& earlier = arrays.at("hidden.step" + std::to_string(k - 2)).floats;
                double change = 0;
                for (std::size_t i = t * d; i < (t + 1) * d; ++i) {
                    change += std::pow(static_cast<double>(now[i]) - 2.0 * before[i] + earlier[i], 2);
                }
                const double expected = std::sqrt(change / gap);
                EXPECT_NEAR(acceleration[t * steps + k], expected, 1e-3 * expected);
            }
            EXPECT_GE(kl[t * steps + k], 0.0F);
        }
    }
}

TEST_P(EveryModel, TwoBatchesUnderWay) {
    const auto a = random_ids(10, vocabulary, 13);
    const auto b = random_ids(14, vocabulary, 14);
    const Window first = whole(a);
    const Window second = whole(b);
    auto one = engine_->submit(std::span(&first, 1), RecordLevel::basic);
    auto two = engine_->submit(std::span(&second, 1), RecordLevel::basic);
    EXPECT_THROW((void)engine_->submit(std::span(&first, 1), RecordLevel::basic), std::logic_error);
    const auto got_one = engine_->collect(std::move(one));
    const auto got_two = engine_->collect(std::move(two));
    EXPECT_EQ(got_one.front().tokens.id, a);
    EXPECT_EQ(got_two.front().tokens.id, b);
    expect_near(got_two.front().tokens.nll,
                engine_->score(std::span(&second, 1), RecordLevel::basic).front().tokens.nll, 1e-6, "nll");
}

TEST_P(EveryModel, HalfPrecisionStaysClose) {
    const auto ids = random_ids(40, vocabulary, 15);
    const std::vector<Window> twice(2, whole(ids));
    const auto nll_of = [&](const Engine& engine) {
        auto nll = engine.score(twice, RecordLevel::steps).front().tokens.nll;
        nll.pop_back();
        return nll;
    };
    for (const auto& [precision, unit] :
         {std::pair{Precision::bfloat16, 0x1p-8}, std::pair{Precision::float16, 0x1p-11}}) {
        // Against fp32 arithmetic on the same weights, rounded: what is left is what the run itself rounds.
        const TemporaryFolder folder;
        round_weights(*checkpoint_, precision, folder.path());
        const auto exact = nll_of(load_engine(
            Checkpoint::open(folder.path(), checkpoint_->config.ponder.method), Precision::float32));
        const auto nll = nll_of(load_engine(*checkpoint_, precision));
        // Where latents feed every later slot, random weights carry a rounding on until nothing is left of
        // the number: there only the first tokens say what a run rounds. Elsewhere single tokens may take
        // another decision, or another word among the most likely ones, and the token in the middle says it.
        std::vector<double> gaps;
        for (std::size_t t = 0; t < (carries() ? 5 : nll.size()); ++t) {
            gaps.push_back(std::abs(static_cast<double>(nll[t]) - exact[t]));
        }
        std::sort(gaps.begin(), gaps.end());
        const double gap = gaps[gaps.size() / 2];
        std::printf("  %s: NLL off by %.4f nats (median), %.1f roundings of the dtype\n",
                    to_string(precision).c_str(), gap, gap / unit);
        EXPECT_LE(gap, (carries() || engine_->config().ponder.top_k > 0 ? 100 : 12) * unit);
        EXPECT_GT(gaps.back(), 0.0);
    }
}

TEST_P(EveryModel, DepthWeightsAreSharesOfEverySlot) {
    const ModelConfig& config = engine_->config();
    if (config.depth.kind != DepthMixing::depth_attention) {
        GTEST_SKIP() << "nothing is mixed by attention over depth";
    }
    const auto ids = random_ids(30, vocabulary, 17);
    const auto other = random_ids(11, vocabulary, 18);
    const std::vector<Window> windows{whole(other), {ids, 10, 30}};
    const WindowResult result = engine_->score(windows, RecordLevel::basic).at(1);
    const auto steps = static_cast<std::size_t>(config.ponder.max_steps) + 1;
    std::vector<std::int64_t> shape;
    for (const auto& [name, chunk] : result.signals) {
        if (name == signal::depth_weights) {
            shape = chunk.shape;
            EXPECT_EQ(chunk.dtype, DType::f16);
        }
    }
    ASSERT_EQ(shape.size(), 5U);
    EXPECT_EQ(shape[0], 20);
    EXPECT_EQ(shape[1], static_cast<std::int64_t>(steps));
    EXPECT_EQ(shape[2], config.layers);
    EXPECT_EQ(shape[4], config.kv_heads);
    const auto weights = floats_of(result, signal::depth_weights);
    const auto arrays = engine_->inspect_batch({ids}, {1});
    const auto heads = static_cast<std::size_t>(config.kv_heads);
    const auto columns = static_cast<std::size_t>(shape[3]);
    std::size_t at = 0;
    std::size_t mixed = 0;
    std::vector<float> heard, computed;
    for (std::size_t t = 0; t < 20; ++t) {
        for (std::size_t k = 0; k < steps; ++k) {
            const bool ran = k <= static_cast<std::size_t>(result.tokens.steps[t]);
            for (std::int64_t l = 0; l < config.layers; ++l, at += columns * heads) {
                const auto found =
                    arrays.find("depth_weights.step" + std::to_string(k) + ".layer" + std::to_string(l));
                for (std::size_t h = 0; h < heads; ++h) {
                    double sum = 0;
                    std::vector<float> kept;
                    for (std::size_t s = 0; s < columns; ++s) {
                        const float weight = weights[at + s * heads + h];
                        sum += weight;
                        if (weight != 0) {
                            kept.push_back(weight);
                        }
                    }
                    if (!ran) {
                        EXPECT_TRUE(std::isnan(sum)) << "token " << t << " step " << k << " layer " << l;
                        continue;
                    }
                    EXPECT_NEAR(sum, 1.0, 4e-3) << "token " << t << " step " << k << " layer " << l;
                    EXPECT_EQ(found == arrays.end(), l == 0) << "only the first layer has no source";
                    if (found == arrays.end()) {
                        continue;
                    }
                    // In a window that begins at position 0 the whole text is the same.
                    const auto sources = static_cast<std::size_t>(found->second.shape.at(3));
                    const float own = found->second.floats.at(((t + 10) * heads + h) * sources + sources - 1);
                    heard.push_back(kept.back());
                    computed.push_back(own);
                    mixed += own < 0.9F ? 1 : 0;
                }
            }
        }
    }
    expect_near(heard, computed, 3e-4, "weights, stored in half precision");
    EXPECT_GT(mixed, 40U) << "weights that are all 1 would prove nothing";
}

TEST_P(EveryModel, HaltingHappensWhereAMethodHalts) {
    if (rule_) {
        engine_->choose(&RunPlan::rule, nullptr);
    }
    const auto ids = random_ids(60, vocabulary, 16);
    const WindowResult result = scored_alone(*engine_, whole(ids), RecordLevel::basic);
    std::vector<std::int64_t> stopped(static_cast<std::size_t>(engine_->config().ponder.max_steps) + 1, 0);
    for (const std::int32_t steps : result.tokens.steps) {
        ++stopped.at(static_cast<std::size_t>(steps));
    }
    const MethodKind method = engine_->config().ponder.method;
    if (method != MethodKind::adaponderlm && method != MethodKind::adaptive_latent_cot &&
        method != MethodKind::ponderlm3) {
        EXPECT_EQ(stopped.back(), 60) << "every step runs";
        return;
    }
    // Otherwise the other tests of this model would prove nothing about halting.
    EXPECT_LT(*std::max_element(stopped.begin(), stopped.end()), 58) << "some here, some there";
    const auto gates = floats_of(result, signal::gate);
    ASSERT_EQ(gates.size(), 60U * (stopped.size() - 1));
    for (std::size_t t = 0; t < 60; ++t) {
        const auto last = static_cast<std::size_t>(result.tokens.steps[t]);
        double reach = 1;
        for (std::size_t k = 0; k + 1 < stopped.size(); ++k) {
            const double gate = gates[t * (stopped.size() - 1) + k];
            if (k > last) {
                EXPECT_TRUE(std::isnan(gate)) << "a gate that nobody asked";
                continue;
            }
            reach = method == MethodKind::adaptive_latent_cot ? reach * gate : gate;
            EXPECT_EQ(reach >= engine_->config().ponder.threshold, k < last)
                << "token " << t << " step " << k;
        }
    }
}

TEST_P(EveryModel, MassesAddUpToTheOutput) {
    if (engine_->config().ponder.method != MethodKind::adaptive_latent_cot &&
        engine_->config().ponder.method != MethodKind::ponderlm3) {
        GTEST_SKIP() << "the last state is the output";
    }
    const auto ids = random_ids(30, vocabulary, 17);
    const WindowResult result = scored_alone(*engine_, whole(ids), RecordLevel::steps);
    const auto mass = floats_of(result, signal::halting_mass);
    const std::size_t steps = mass.size() / 30;
    for (std::size_t t = 0; t < 30; ++t) {
        double sum = 0;
        for (std::size_t k = 0; k < steps; ++k) {
            const float one = mass[t * steps + k];
            if (k > static_cast<std::size_t>(result.tokens.steps[t])) {
                EXPECT_TRUE(std::isnan(one)) << "a step that did not run";
                continue;
            }
            EXPECT_GE(one, 0.0F);
            sum += one;
        }
        if (engine_->config().ponder.remainder == Remainder::last) {
            EXPECT_NEAR(sum, 1.0, 1e-5);
        } else {
            EXPECT_LE(sum, 1.0 + 1e-5);
        }
    }
}

TEST_P(EveryModel, RefreshesConvergeToTheExactResult) {
    if (engine_->config().ponder.method != MethodKind::ponderlm2 &&
        engine_->config().ponder.method != MethodKind::ponderlm3) {
        EXPECT_EQ(engine_->scoring(), "exact");
        EXPECT_THROW(engine_->choose(&RunPlan::refreshes, 3), InputError);
        return;
    }
    const auto a = random_ids(9, vocabulary, 18);
    const auto b = random_ids(4, vocabulary, 19);
    const std::vector<Window> windows{whole(a), whole(b)};
    engine_->choose(&RunPlan::refreshes, std::nullopt);
    EXPECT_EQ(engine_->scoring(), "exact");
    const auto exact = engine_->score(windows, RecordLevel::steps);
    // After T·K refreshes nothing can move any more, whatever the weights.
    engine_->choose(&RunPlan::refreshes, 9 * engine_->config().ponder.max_steps);
    const auto refreshed = engine_->score(windows, RecordLevel::steps);
    for (std::size_t i = 0; i < 2; ++i) {
        expect_near(exact[i].tokens.nll, refreshed[i].tokens.nll, 1e-4, "nll");
        EXPECT_EQ(exact[i].tokens.steps, refreshed[i].tokens.steps);
        EXPECT_EQ(exact[i].tokens.flops, refreshed[i].tokens.flops) << "decoding costs what it costs";
    }
    engine_->choose(&RunPlan::refreshes, 1);
    EXPECT_EQ(engine_->scoring(), "jacobi:1");
    const auto quick = engine_->score(windows, RecordLevel::steps);
    double gap = 0;
    for (std::size_t t = 0; t + 1 < 9; ++t) {
        gap = std::max(gap, std::abs(static_cast<double>(quick[0].tokens.nll[t]) - exact[0].tokens.nll[t]));
    }
    EXPECT_GT(gap, half_precision() ? 0.0 : 1e-4)
        << "one refresh is not exact: otherwise this test says nothing";
    const auto moved = floats_of(quick[0], signal::jacobi_difference);
    ASSERT_EQ(moved.size(), 9U);
    EXPECT_GT(*std::max_element(moved.begin(), moved.end()), 0.0F);
}

TEST_P(EveryModel, WithTheFullPolicyEveryStepRuns) {
    if (engine_->config().ponder.method == MethodKind::vanilla) {
        EXPECT_THROW(engine_->choose(&RunPlan::rule, full_halting()), InputError);
        return;
    }
    const auto ids = random_ids(21, vocabulary, 20);
    const Window window = whole(ids);
    engine_->choose(&RunPlan::rule, full_halting());
    EXPECT_EQ(engine_->policy(), "full");
    const WindowResult full = scored_alone(*engine_, window, RecordLevel::steps);
    for (const std::int32_t steps : full.tokens.steps) {
        EXPECT_EQ(steps, engine_->config().ponder.max_steps);
    }
    // The same as a threshold that nothing fails.
    nlohmann::json config = subjects().at(GetParam()).config;
    if (config.contains("pondering") && config["pondering"].contains("threshold")) {
        const TemporaryFolder folder;
        config["pondering"]["threshold"] = 0;
        const Engine open = load_engine(make_checkpoint(folder.path(), config));
        expect_near(full.tokens.nll, scored_alone(open, window, RecordLevel::nll).tokens.nll, 1e-5, "nll");
    }
}

TEST_P(EveryModel, ForcedTokensRunAsFarAsTheyAreTold) {
    const auto max_steps = static_cast<std::int32_t>(engine_->config().ponder.max_steps);
    if (engine_->config().ponder.method == MethodKind::vanilla) {
        GTEST_SKIP() << "no steps";
    }
    engine_->choose(&RunPlan::refreshes, std::nullopt);
    const auto ids = random_ids(18, vocabulary, 21);
    const Window window = whole(ids);
    const WindowResult usual = scored_alone(*engine_, window, RecordLevel::steps);
    const std::string others = rule_ ? engine_->policy() : "learned";
    engine_->choose(&RunPlan::rule, forced_halting({{0, 5, 0}, {0, 9, max_steps}, {1, 2, 0}}, rule_));
    EXPECT_EQ(engine_->policy(), others + "; forced 5:0,9:" + std::to_string(max_steps) + ",1/2:0");
    const std::vector<Window> twice{window, window};
    const auto forced = engine_->score(twice, RecordLevel::steps);
    EXPECT_EQ(forced[0].tokens.steps[5], 0);
    EXPECT_EQ(forced[0].tokens.steps[9], max_steps);
    EXPECT_EQ(forced[1].tokens.steps[2], 0) << "of the second sequence";
    // Nothing before a forced token knows of it.
    const auto first_five = [](const auto& all) { return std::vector(all.begin(), all.begin() + 5); };
    EXPECT_EQ(first_five(forced[0].tokens.steps), first_five(usual.tokens.steps));
    expect_near(first_five(forced[0].tokens.nll), first_five(usual.tokens.nll), tolerance(1e-5),
                "nll before");
    if (usual.tokens.steps[5] != 0) {
        EXPECT_GT(std::abs(forced[0].tokens.nll[5] - usual.tokens.nll[5]), 1e-5) << "what it was told for";
    }
    // Alone as in the batch, and while generating as when scored.
    const WindowResult alone = scored_alone(*engine_, window, RecordLevel::steps);
    expect_near(alone.tokens.nll, forced[0].tokens.nll, tolerance(1e-5), "nll");
    EXPECT_EQ(alone.tokens.steps, forced[0].tokens.steps);
    GenerateOptions options{.max_new_tokens = 8};
    const std::vector<std::int32_t> prompt(ids.begin(), ids.begin() + 4);
    const auto cached = continued(*engine_, {prompt}, options);
    options.use_cache = false;
    expect_equal(continued(*engine_, {prompt}, options).front(), cached.front(), tolerance(1e-4), "anew");
}

INSTANTIATE_TEST_SUITE_P(Models, EveryModel, ::testing::Range<std::size_t>(0, subjects().size()),
                         [](const auto& one) { return std::string(subjects().at(one.param).name); });

} // namespace
} // namespace ponderscope
