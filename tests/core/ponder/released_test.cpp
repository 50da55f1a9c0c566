// SPDX-License-Identifier: GPL-3.0-or-later
// Released recurrent-depth models: what later tokens see of one that stopped, stacks of prelude, core and
// coda, start states. Every way to run them is exact in itself: alone as in a batch, cached as not.
#include "core/base/error.h"
#include "core/checkpoint/method_info.h"
#include "core/policy/policy_spec.h"
#include "core/ponder/engine/engine.h"
#include "core/ponder/halting/halting_rules.h"
#include "core/ponder/halting/policy_halting.h"
#include "tests/core/ponder/tiny_models.h"
#include "tests/support/errors.h"
#include "tests/support/test_data.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <set>
#include <tuple>

namespace ponderscope {
namespace {

using namespace testing;

constexpr std::int64_t vocabulary = 61;

nlohmann::json tiny_ouro() {
    return tiny_config(R"({"model_type": "ouro", "hidden_size": 24, "intermediate_size": 36,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 10,
        "max_position_embeddings": 64, "tie_word_embeddings": true, "total_ut_steps": 4,
        "early_exit_threshold": 0.7})");
}

nlohmann::json tiny_huginn() {
    return tiny_config(R"({"model_type": "huginn_raven", "n_embd": 24, "n_heads": 3, "n_layers_in_prelude": 1,
        "n_layers_in_recurrent_block": 2, "n_layers_in_coda": 1, "mean_recurrence": 4,
        "intermediate_size": 36, "block_size": 64, "tie_embeddings": true})");
}

nlohmann::json tiny_parcae() {
    return tiny_config(R"({"_class_name": "ParcaeConfig", "padded_vocab_size": 64, "n_embd": 32,
        "num_attention_heads": 4, "intermediate_size": 40,
        "recurrent_intermediation_embedding_dimension": 48, "n_layers_in_prelude": 1,
        "n_layers_in_recurrent_block": 2, "n_layers_in_coda": 2, "mean_recurrence": 3, "block_size": 64,
        "logit_softcap": 9.0, "qk_norm": true, "prelude_norm": true})");
}

nlohmann::json config_of(const std::string& name) {
    return name == "ouro" ? tiny_ouro() : name == "huginn" ? tiny_huginn() : tiny_parcae();
}

double largest(const std::vector<float>& a, const std::vector<float>& b) {
    EXPECT_EQ(a.size(), b.size());
    double most = 0;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
        if (!(std::isnan(a[i]) && std::isnan(b[i]))) {
            most = std::max(most, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
        }
    }
    return most;
}

/// (model, policy, what is seen of tokens that stopped)
using Way = std::tuple<const char*, const char*, const char*>;

class Ways : public ::testing::TestWithParam<Way> {
protected:
    void SetUp() override {
        checkpoint_ = make_checkpoint(folder_.path() / "model", config_of(std::get<0>(GetParam())));
        engine_ = open(*checkpoint_);
    }

    static std::unique_ptr<Engine> open(const Checkpoint& checkpoint) {
        const auto& [model, policy, kv] = GetParam();
        auto engine = std::make_unique<Engine>(Engine::load(checkpoint));
        engine->choose(&RunPlan::rule, rule_of(PolicySpec::parse(policy), *engine));
        engine->choose(&RunPlan::kv, kv_policy_from_string(kv));
        return engine;
    }

    /// `shared` makes the tokens a recurrence: what is rounded in one is read by every step of the next.
    static bool tokens_are_a_recurrence() { return std::string(std::get<2>(GetParam())) == "shared"; }

    /// What \p windows alone and in a batch may differ by: 2e-5 nats. In a recurrence, whose last tokens
    /// multiply the roundings of the first, eight times what one rounding of every weight changes, if that
    /// is more: sums of 24 to 48 products round about as often.
    double rounding(const std::vector<Window>& windows) {
        if (!tokens_are_a_recurrence()) {
            return 2e-5;
        }
        nudge_weights(*checkpoint_, folder_.path() / "nudged");
        const auto nudged = open(Checkpoint::open(folder_.path() / "nudged"));
        double most = 0;
        for (const Window& window : windows) {
            most = std::max(most, largest(scored_alone(*engine_, window, RecordLevel::nll).tokens.nll,
                                          scored_alone(*nudged, window, RecordLevel::nll).tokens.nll));
        }
        EXPECT_LE(most, 2e-4) << "so much that nothing could be seen";
        return std::max(2e-5, 8 * most);
    }

    TemporaryFolder folder_;
    std::optional<Checkpoint> checkpoint_;
    std::unique_ptr<Engine> engine_;
};

TEST_P(Ways, AWindowAloneIsTheWindowInABatch) {
    const std::int64_t parts = tokens_are_a_recurrence() ? 2 : 1;
    const std::vector<std::vector<std::int32_t>> texts{random_ids(17 / parts, vocabulary, 1),
                                                       random_ids(9 / parts, vocabulary, 2),
                                                       random_ids(13 / parts, vocabulary, 3)};
    std::vector<Window> windows;
    for (std::size_t i = 0; i < texts.size(); ++i) {
        const auto length = static_cast<std::int64_t>(texts[i].size());
        windows.push_back({texts[i], 0, length, static_cast<std::int64_t>(i), 0, length});
    }
    const double tolerance = rounding(windows);
    for (const RecordLevel level : {RecordLevel::steps, RecordLevel::basic, RecordLevel::nll}) {
        const auto together = engine_->score(windows, level);
        for (std::size_t i = 0; i < windows.size(); ++i) {
            const auto alone = engine_->score({&windows[i], 1}, level);
            EXPECT_LE(largest(together[i].tokens.nll, alone.front().tokens.nll), tolerance);
            EXPECT_EQ(together[i].tokens.steps, alone.front().tokens.steps);
            EXPECT_EQ(together[i].tokens.flops, alone.front().tokens.flops);
        }
    }
}

TEST_P(Ways, WhatIsRecordedChangesNothing) {
    const auto text = random_ids(19, vocabulary, 5);
    const Window window{text, 0, 19};
    const auto plain = engine_->score({&window, 1}, RecordLevel::nll);
    const auto recorded = engine_->score({&window, 1}, RecordLevel::steps);
    EXPECT_LE(largest(plain.front().tokens.nll, recorded.front().tokens.nll), 2e-5);
    EXPECT_EQ(plain.front().tokens.steps, recorded.front().tokens.steps);
}

TEST_P(Ways, StatesAreRecordedAndPutBackWhereTheyWere) {
    const std::vector<std::vector<std::int32_t>> texts{random_ids(11, vocabulary, 1),
                                                       random_ids(7, vocabulary, 2)};
    const std::vector<Window> windows{{texts[0], 0, 11}, {texts[1], 0, 7}};
    const std::int64_t layer = engine_->config().core_begin();
    EXPECT_THROW((void)StateChoice::parse(std::to_string(engine_->config().core_end()), engine_->config()),
                 InputError)
        << "a layer that no step runs";
    engine_->choose(&RunPlan::states, StateChoice::parse(std::to_string(layer), engine_->config()));
    engine_->choose(&RunPlan::lens, true);
    const auto before = engine_->score(windows, RecordLevel::steps);
    std::vector<StatePlace> places;
    for (std::int64_t token = 1; token < 7; token += 2) {
        places.push_back({token % 2, token, token % 3, layer});
        places.push_back({1, token, 0});
    }
    const auto states = engine_->states_at(windows, places);
    const auto recorded = floats_of(before[1], signal::state);
    const auto width = static_cast<std::size_t>(engine_->config().hidden_size);
    const std::size_t stride = recorded.size() / 7;
    std::vector<StatePatch> patches;
    for (std::size_t i = 0; i < places.size(); ++i) {
        const auto& [sequence, token, step, place] = places[i];
        const std::int32_t last =
            before[static_cast<std::size_t>(sequence)].tokens.steps[static_cast<std::size_t>(token)];
        const bool ran = step <= last || engine_->kv() == "full";
        ASSERT_EQ(states[i].empty(), !ran) << to_string(places[i]);
        if (ran) {
            patches.push_back({places[i], states[i]});
        }
        for (std::size_t j = 0; ran && sequence == 1 && place == layer && j < width; ++j) {
            const std::size_t at =
                static_cast<std::size_t>(token) * stride + static_cast<std::size_t>(step) * width + j;
            ASSERT_NEAR(recorded[at], states[i][j], 2e-3 * std::max(1.0F, std::abs(states[i][j])));
        }
    }
    engine_->use_patches(patches);
    const auto after = engine_->score(windows, RecordLevel::steps);
    for (std::size_t i = 0; i < windows.size(); ++i) {
        EXPECT_LE(largest(after[i].tokens.nll, before[i].tokens.nll), 1e-5);
        EXPECT_EQ(after[i].tokens.steps, before[i].tokens.steps);
    }
    // And another state is seen by what comes after it.
    engine_->use_patches({{{1, 3, 0, layer}, states[1]}});
    const auto moved = engine_->score(windows, RecordLevel::steps);
    EXPECT_LE(largest(moved[0].tokens.nll, before[0].tokens.nll), 2e-5) << "of another sequence";
    EXPECT_GT(largest(moved[1].tokens.nll, before[1].tokens.nll), 1e-4);
    const auto alone = [&] {
        Window window = windows[1];
        window.sequence = 1;
        return scored_alone(*engine_, window, RecordLevel::steps);
    }();
    EXPECT_LE(largest(moved[1].tokens.nll, alone.tokens.nll), rounding(windows));
}

TEST_P(Ways, CachedDecodingIsTheWholeSequenceEachTime) {
    const std::vector<std::vector<std::int32_t>> prompts{random_ids(6, vocabulary, 7),
                                                         random_ids(3, vocabulary, 8)};
    GenerateOptions options{.max_new_tokens = 8};
    const auto cached = engine_->generate(prompts, options);
    options.use_cache = false;
    EXPECT_EQ(engine_->generate(prompts, options), cached);
    // And scoring what was generated chooses the same words.
    std::vector<std::int32_t> whole = prompts.front();
    whole.insert(whole.end(), cached.front().begin(), cached.front().end());
    const auto arrays = engine_->inspect_batch({whole});
    const NamedArray& logits = arrays.at("logits");
    const auto width = static_cast<std::ptrdiff_t>(logits.shape[2]);
    for (std::size_t t = prompts.front().size() - 1; t + 1 < whole.size(); ++t) {
        const auto begin = logits.floats.begin() + static_cast<std::ptrdiff_t>(t) * width;
        EXPECT_EQ(std::max_element(begin, begin + width) - begin, whole[t + 1]) << "at " << t;
    }
}

INSTANTIATE_TEST_SUITE_P(Released, Ways,
                         ::testing::Combine(::testing::Values("ouro", "huginn", "parcae"),
                                            ::testing::Values("fixed:n=1", "uniform:rate=1.3,seed=3",
                                                              "latent_difference:theta=0.9",
                                                              "entropy:theta=3.2"),
                                            ::testing::Values("full", "per_step", "shared", "skip")),
                         [](const auto& one) {
                             std::string name = std::string(std::get<0>(one.param)) + "_" +
                                                std::get<1>(one.param) + "_" + std::get<2>(one.param);
                             std::replace_if(
                                 name.begin(), name.end(),
                                 [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
                             return name;
                         });

TEST(Kv, AnExitThatOnlySelectsIsTheReadOutOfThatStep) {
    const TemporaryFolder folder;
    for (const char* const name : {"ouro", "huginn", "parcae"}) {
        Engine engine = Engine::load(make_checkpoint(folder.path() / name, config_of(name)));
        const auto text = random_ids(15, vocabulary, 11);
        engine.choose(&RunPlan::rule, full_halting());
        const auto full = engine.inspect_batch({text});
        engine.choose(&RunPlan::rule, rule_of(PolicySpec::parse("uniform:rate=1.5,seed=9"), engine));
        engine.choose(&RunPlan::kv, KvPolicy::full);
        const auto chosen = engine.inspect_batch({text});
        const NamedArray& steps = chosen.at("steps");
        const NamedArray& by_step = full.at("signal.nll");
        const std::int64_t width = by_step.shape[2];
        bool differ = false;
        for (std::size_t t = 0; t + 1 < text.size(); ++t) {
            const std::int64_t k = steps.integers[t];
            EXPECT_NEAR(chosen.at("nll").floats[t],
                        by_step.floats[t * static_cast<std::size_t>(width) + static_cast<std::size_t>(k)],
                        2e-5);
            differ = differ || k != steps.integers.front();
        }
        EXPECT_TRUE(differ) << name << ": all tokens stopped at one step";
        EXPECT_EQ(chosen.at("flops").integers, full.at("flops").integers) << "nothing is saved";
    }
}

/// methods-released.md section 1: blocks, keys, "Ouro's gate 2d per step", the last one included; one head.
TEST(Counting, OurosGateIsAskedAfterEveryStep) {
    const TemporaryFolder folder;
    const Engine engine = Engine::load(make_checkpoint(folder.path() / "m", tiny_ouro()));
    const auto found = engine.inspect_batch({random_ids(9, vocabulary, 3)});
    constexpr std::int64_t d = 24, heads = 4 * 10, kv_heads = 2 * 10, mlp = 36, layers = 2, steps = 4;
    constexpr std::int64_t blocks = layers * (2 * d * heads + 2 * d * kv_heads + 3 * d * mlp);
    for (std::int64_t t = 0; t < 9; ++t) {
        EXPECT_EQ(found.at("flops").integers[static_cast<std::size_t>(t)],
                  steps * (2 * blocks + layers * 4 * heads * (t + 1) + 2 * d) + 2 * vocabulary * d);
    }
}

TEST(Kv, PoliciesAgreeWhereNobodyStops) {
    const TemporaryFolder folder;
    Engine engine = Engine::load(make_checkpoint(folder.path() / "m", tiny_huginn()));
    const auto text = random_ids(12, vocabulary, 4);
    const auto reference = engine.inspect_batch({text});
    engine.choose(&RunPlan::rule, rule_of(PolicySpec::parse("fixed:n=3"), engine));
    for (const KvPolicy kv : {KvPolicy::full, KvPolicy::per_step, KvPolicy::skip}) {
        engine.choose(&RunPlan::kv, kv);
        // A token at a time is multiplied by other kernels than a text: logits of about ten, 2^-18 of that.
        EXPECT_LE(largest(engine.inspect_batch({text}).at("logits").floats, reference.at("logits").floats),
                  4e-5)
            << to_string(kv);
    }
    engine.choose(&RunPlan::kv, KvPolicy::shared);
    EXPECT_GT(largest(engine.inspect_batch({text}).at("logits").floats, reference.at("logits").floats), 1e-3)
        << "shared reads the last step at every step, also when nobody stops early";
}

TEST(StartState, IsThatOfThePageWhateverTheWidth) {
    const TemporaryFolder folder;
    const Checkpoint checkpoint = make_checkpoint(folder.path() / "m", tiny_huginn());
    Engine engine = Engine::load(checkpoint);
    engine.choose(&RunPlan::start_state, "random:20261122");
    EXPECT_EQ(engine.start_state(), "random:20261122");
    const auto arrays = engine.inspect_batch({random_ids(3, vocabulary, 1), random_ids(3, vocabulary, 2)});
    const NamedArray& states = arrays.at("initial_state");
    ASSERT_EQ(states.shape, (std::vector<std::int64_t>{2, 3, 24}));
    EXPECT_NEAR(states.floats[0], 0.43363470, 1e-7);
    EXPECT_NEAR(states.floats[1], 0.19754753, 1e-7);
    EXPECT_NEAR(states.floats[24], 0.51916824, 1e-7);
    EXPECT_NEAR(states.floats[72], -0.54723639, 1e-7);
}

TEST(StartState, BelongsToTheTokenNotToTheWindow) {
    const TemporaryFolder folder;
    Engine engine = Engine::load(make_checkpoint(folder.path() / "m", tiny_huginn()));
    const auto text = random_ids(12, vocabulary, 6);
    const auto other_seed = [&](const char* spec) {
        engine.choose(&RunPlan::start_state, spec);
        return scored_alone(engine, {text, 0, 12, 2, 5, 40}, RecordLevel::nll).tokens.nll;
    };
    const std::vector<float> first = other_seed("random:1");
    EXPECT_GT(largest(first, other_seed("random:2")), 1e-3);
    EXPECT_GT(largest(first, other_seed("zero")), 1e-3);
    EXPECT_EQ(largest(first, other_seed("random:1")), 0);
}

TEST(StartState, WrongOnesAreNamed) {
    const TemporaryFolder folder;
    Engine engine = Engine::load(make_checkpoint(folder.path() / "m", tiny_huginn()));
    const auto sentence = [&](const std::string& spec) -> std::string {
        return error_of([&] { engine.choose(&RunPlan::start_state, spec); });
    };
    EXPECT_TRUE(sentence("random:x").ends_with("[usage.value]")) << sentence("random:x");
    EXPECT_NE(sentence("nowhere.safetensors").find("nowhere.safetensors"), std::string::npos);
    const std::string other = sentence("model.safetensors");
    EXPECT_NE(other.find(" initial_state "), std::string::npos) << other;
    EXPECT_TRUE(other.ends_with("[checkpoint.tensor]")) << other;
    Engine plain = Engine::load(make_checkpoint(folder.path() / "l", tiny_llama()));
    EXPECT_THROW(plain.choose(&RunPlan::start_state, "zero"), InputError);
    EXPECT_THROW(plain.choose(&RunPlan::kv, KvPolicy::full), InputError);
}

TEST(Steps, AreReadOutThroughTheCodaWhileGeneratingToo) {
    const TemporaryFolder folder;
    Engine engine = Engine::load(make_checkpoint(folder.path() / "m", tiny_huginn()));
    const auto prompt = random_ids(6, vocabulary, 4);
    std::vector<std::vector<float>> written;
    const auto fresh = engine.generate({prompt}, {.max_new_tokens = 3}, RecordLevel::steps,
                                       [&](std::int64_t, std::int32_t, const WindowResult& result) {
                                           written.push_back(floats_of(result, signal::entropy));
                                           return true;
                                       });
    ASSERT_EQ(written.size(), 3U);
    std::vector<std::int32_t> text = prompt;
    text.insert(text.end(), fresh.front().begin(), fresh.front().end());
    const auto scored = floats_of(scored_alone(engine, whole(text), RecordLevel::steps), signal::entropy);
    const auto steps = static_cast<std::size_t>(engine.max_steps() + 1);
    ASSERT_EQ(scored.size(), text.size() * steps);
    for (std::size_t i = 0; i < written.size(); ++i) {
        ASSERT_EQ(written[i].size(), steps);
        for (std::size_t k = 0; k < steps; ++k) {
            EXPECT_NEAR(written[i][k], scored[(prompt.size() - 1 + i) * steps + k], 1e-4) << "step " << k;
        }
    }
}

TEST(Steps, OtherNumbersNeedNoOtherWeights) {
    const TemporaryFolder folder;
    (void)make_checkpoint(folder.path() / "m", tiny_ouro());
    const Engine engine = Engine::load(Checkpoint::open(folder.path() / "m", std::nullopt, 6));
    EXPECT_EQ(engine.max_steps(), 5);
    EXPECT_THROW(Checkpoint::open(folder.path() / "m", MethodKind::vanilla, 2), InputError);
    const Checkpoint looped = Checkpoint::open(folder.path() / "m", MethodKind::looped);
    EXPECT_EQ(Engine::load(looped).max_steps(), 3);
}

TEST(MethodInfos, SayWhereTheChoiceOfWhatIsSeenIsTheMethodsOwn) {
    std::set<MethodKind> seen;
    for (const std::filesystem::path& folder : golden_cases()) {
        const Checkpoint checkpoint = Checkpoint::open(folder);
        const MethodKind method = checkpoint.config.ponder.method;
        if (checkpoint.config.candidate_methods.size() > 1 || !seen.insert(method).second) {
            continue;
        }
        Engine engine = Engine::load(checkpoint);
        SCOPED_TRACE(folder.filename().string());
        if (method_info(method).sees_by_own_rule || engine.max_steps() == 0) {
            EXPECT_THROW(engine.choose(&RunPlan::kv, KvPolicy::shared), InputError);
        } else {
            EXPECT_NO_THROW(engine.choose(&RunPlan::kv, KvPolicy::shared));
        }
    }
    EXPECT_GE(seen.size(), 10U);
}

} // namespace
} // namespace ponderscope
