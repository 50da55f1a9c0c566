// SPDX-License-Identifier: GPL-3.0-or-later
// Policies in the place of a model's own rule, and exits over the layers of vanilla models: what they decide
// is recomputed from the run's own signals by rules written out here, what follows from it by computing
// everything for every token.
#include "core/model/device.h"
#include "core/policy/policy.h"
#include "core/policy/policy_spec.h"
#include "core/ponder/engine/engine.h"
#include "core/ponder/engine/model.h"
#include "core/ponder/halting/halting_rules.h"
#include "core/ponder/halting/policy_halting.h"
#include "core/ponder/schedule/flops.h"
#include "core/ponder/schedule/layer_steps.h"
#include "tests/core/ponder/continuations.h"
#include "tests/core/ponder/engine_subjects.h"
#include "tests/core/ponder/tiny_models.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>

namespace ponderscope {
namespace {

using namespace testing;

constexpr std::int64_t vocabulary = 61;
constexpr std::int64_t length = 40;

/// [tokens, steps] of a recorded signal.
struct Table {
    std::vector<float> values;
    std::size_t width = 0;
    [[nodiscard]] float at(std::size_t t, std::int64_t k) const {
        return values[t * width + static_cast<std::size_t>(k)];
    }
};

Table table(const WindowResult& result, const std::string& name) {
    return {floats_of(result, name), static_cast<std::size_t>(find(result, name)->shape.at(1))};
}

/// A policy, the signal whose size decides, and the rule in plain words: stops token t at step k?
struct Rule {
    const char* policy;
    const char* key;
    const char* signal;
    std::int64_t first; ///< step at which it is asked first
    std::function<bool(const WindowResult&, std::size_t t, std::int64_t k, double threshold)> stops;
};

std::vector<Rule> rules() {
    const auto below = [](const char* name) {
        return [name](const WindowResult& run, std::size_t t, std::int64_t k, double threshold) {
            return table(run, name).at(t, k) < static_cast<float>(threshold);
        };
    };
    const auto bound = [](double lambda, std::size_t t) {
        return std::min(
            1.0, std::max(0.0, lambda * (0.9 + 0.1 * std::exp(-4.0 * static_cast<double>(t) / length))));
    };
    return {
        {"kl", "theta", signal::kl_previous_current, 1, below(signal::kl_previous_current)},
        {"latent_difference", "theta", signal::latent_difference, 1, below(signal::latent_difference)},
        {"second_order", "theta", signal::acceleration, 2, below(signal::acceleration)},
        {"entropy", "theta", signal::entropy, 0, below(signal::entropy)},
        {"entropy_difference", "theta", signal::entropy, 1,
         [](const WindowResult& run, std::size_t t, std::int64_t k, double threshold) {
             const Table entropy = table(run, signal::entropy);
             return std::abs(entropy.at(t, k) - entropy.at(t, k - 1)) < static_cast<float>(threshold);
         }},
        {"calm_cosine", "lambda", signal::cosine, 1,
         [bound](const WindowResult& run, std::size_t t, std::int64_t k, double lambda) {
             return static_cast<double>(table(run, signal::cosine).at(t, k)) >= bound(lambda, t);
         }},
        {"calm_margin", "lambda", signal::margin, 0,
         [bound](const WindowResult& run, std::size_t t, std::int64_t k, double lambda) {
             return static_cast<double>(table(run, signal::margin).at(t, k)) >= bound(lambda, t);
         }},
        {"argmax_stable", "n", signal::argmax, 0,
         [](const WindowResult& run, std::size_t t, std::int64_t k, double n) {
             const Table argmax = table(run, signal::argmax);
             bool same = k >= static_cast<std::int64_t>(n);
             for (std::int64_t j = 0; same && j < static_cast<std::int64_t>(n); ++j) {
                 same = argmax.at(t, k - j) == argmax.at(t, k - j - 1);
             }
             return same;
         }},
    };
}

/// A threshold between two values of the signal, so that no rounding decides and about half of the tokens
/// stop before the end.
double middle_of(const Rule& rule, const WindowResult& full, std::int64_t last) {
    if (std::strcmp(rule.key, "n") == 0) {
        return 1;
    }
    const Table all = table(full, rule.signal);
    std::vector<double> values;
    for (std::size_t t = 0; t < static_cast<std::size_t>(length); ++t) {
        for (std::int64_t k = rule.first; k < last; ++k) {
            const bool difference = std::strcmp(rule.policy, "entropy_difference") == 0;
            const double now = static_cast<double>(all.at(t, k));
            values.push_back(difference ? std::abs(now - static_cast<double>(all.at(t, k - 1)))
                             : std::strcmp(rule.key, "lambda") == 0
                                 ? now / (0.9 + 0.1 * std::exp(-4.0 * static_cast<double>(t) / length))
                                 : now);
        }
    }
    std::sort(values.begin(), values.end());
    const std::size_t half = values.size() / 2;
    const double middle = (values[half - 1] + values[half]) / 2;
    return std::strcmp(rule.key, "lambda") == 0 ? std::clamp(middle, 0.0, 2.0) : std::max(middle, 0.0);
}

class Reruns : public ::testing::TestWithParam<std::string> {
protected:
    void SetUp() override {
        const Subject subject = subject_named(GetParam());
        checkpoint_ =
            std::make_unique<Checkpoint>(make_checkpoint(folder_.path(), subject.config, 1, subject.method));
        engine_ = std::make_unique<Engine>(load_engine(*checkpoint_));
        if (checkpoint_->config.ponder.method == MethodKind::vanilla) {
            engine_->choose(&RunPlan::layers_are_steps, true);
        }
        ids_ = random_ids(length, vocabulary, 5);
    }
    [[nodiscard]] WindowResult run(RecordLevel level = RecordLevel::steps) const {
        return scored_alone(*engine_, {ids_, 0, length}, level);
    }

    TemporaryFolder folder_;
    std::unique_ptr<Checkpoint> checkpoint_;
    std::unique_ptr<Engine> engine_;
    std::vector<std::int32_t> ids_;
};

void expect_near(const std::vector<float>& a, const std::vector<float>& b, const std::string& what) {
    testing::expect_near(a, b, 2e-6, what);
}

TEST_P(Reruns, StopWhereTheRuleSaysSoOnTheRunsOwnSignals) {
    const std::int64_t last = engine_->max_steps();
    engine_->choose(&RunPlan::rule, full_halting());
    const WindowResult full = run();
    for (const Rule& rule : rules()) {
        if (rule.first >= last) {
            continue; // nobody is asked at K
        }
        const double threshold = middle_of(rule, full, last);
        char text[80];
        std::snprintf(text, sizeof text, "%s:%s=%.9g", rule.policy, rule.key, threshold);
        SCOPED_TRACE(text);
        const PolicySpec spec = PolicySpec::parse(text);
        engine_->choose(&RunPlan::rule, rule_of(spec, *engine_));
        const WindowResult result = run();
        std::int64_t early = 0, beside = 0;
        for (std::size_t t = 0; t < static_cast<std::size_t>(length); ++t) {
            std::int64_t expected = 0;
            while (expected < last &&
                   (expected < rule.first || !rule.stops(result, t, expected, spec.number(rule.key)))) {
                // Beyond the step that ran nothing is recorded.
                if (expected == result.tokens.steps[t]) {
                    break;
                }
                ++expected;
            }
            if (half_precision() && result.tokens.steps[t] != expected) {
                ++beside; // what was recorded is not what decided, but for its last digit
                continue;
            }
            EXPECT_EQ(result.tokens.steps[t], expected) << "token " << t;
            // It stopped because the rule said so, not because the record ends there.
            if (expected < last) {
                EXPECT_TRUE(expected >= rule.first && rule.stops(result, t, expected, spec.number(rule.key)))
                    << "token " << t;
            }
            early += expected < last ? 1 : 0;
        }
        EXPECT_LE(beside, length / 8);
        if (std::strcmp(rule.policy, "argmax_stable") != 0) {
            EXPECT_GT(early, 0);
        }

        // The same steps, told instead of found, give the same run.
        engine_->choose(&RunPlan::rule, prescribed_halting("told", {result.tokens.steps}));
        const WindowResult told = run(RecordLevel::basic);
        EXPECT_EQ(told.tokens.steps, result.tokens.steps);
        expect_near(told.tokens.nll, result.tokens.nll, "NLL");
    }
}

TEST_P(Reruns, EqualTheReplayWhereNobodySeesTheChange) {
    engine_->choose(&RunPlan::rule, full_halting());
    const WindowResult full = run();
    const Table nll = table(full, signal::nll);
    // The last token that has a target: only one without a target sees it.
    const std::size_t changed = static_cast<std::size_t>(length) - 2;
    // Latents that feed every later slot carry roundings on.
    const double tolerance =
        GetParam().starts_with("ponderlm2") || GetParam().starts_with("ponderlm3") ? 1e-4 : 1e-5;
    for (std::int64_t k = 0; k <= engine_->max_steps(); ++k) {
        std::vector<std::int32_t> steps(static_cast<std::size_t>(length),
                                        static_cast<std::int32_t>(engine_->max_steps()));
        steps[changed] = static_cast<std::int32_t>(k);
        engine_->choose(&RunPlan::rule, prescribed_halting("told", {steps}));
        const WindowResult result = run(RecordLevel::basic);
        EXPECT_EQ(result.tokens.steps, steps);
        EXPECT_NEAR(result.tokens.nll[changed], nll.at(changed, k), within(tolerance)) << "step " << k;
    }
}

TEST_P(Reruns, CostWhatTheReplayCounts) {
    const FlopsModel cost = FlopsModel::from_json(engine_->flops_model()).value();
    EXPECT_EQ(cost.max_steps(), engine_->max_steps());
    const WindowSpan whole{0, length, 0, length};
    for (const char* text : {"full", "fixed:n=1", "uniform:rate=1.1,seed=3", "entropy:theta=2.5"}) {
        const PolicySpec spec = PolicySpec::parse(text);
        engine_->choose(&RunPlan::rule, rule_of(spec, *engine_));
        const WindowResult result = run(RecordLevel::nll);
        std::vector<std::int64_t> counted(static_cast<std::size_t>(length));
        cost.count(result.tokens.steps, spec.kind->reads_head(), {&whole, 1}, counted);
        EXPECT_EQ(result.tokens.flops, counted) << text;
    }
}

INSTANTIATE_TEST_SUITE_P(Models, Reruns,
                         ::testing::Values("adaponderlm_on_gpt_neox", "adaptive_latent_cot_on_llama",
                                           "ponderlm3_on_gpt2", "ponderlm_llama", "looped_on_gpt_neox",
                                           "ponderlm2_on_llama", "gpt_neox", "llama", "gpt2", "mistral",
                                           "qwen2", "qwen3", "phi", "opt", "depth_attention"),
                         [](const auto& one) { return one.param; });

/// A Llama with four pause tokens, of the public keys.
Engine pausing_engine(const TemporaryFolder& folder) {
    nlohmann::json config = tiny_llama();
    config.update({{"num_latent_thoughts", 4}, {"recurrent_model", true}, {"pause_token_id", 7}});
    return load_engine(make_checkpoint(folder.path(), config, 1, MethodKind::pause));
}

/// Pause tokens have no states to refresh: public keys that name no refreshes give the exact result under any
/// rule, and say so before and after one is chosen.
TEST(Pauses, AreComputedExactlyUnderAPolicy) {
    const TemporaryFolder folder;
    Engine engine = pausing_engine(folder);
    EXPECT_EQ(engine.scoring(), "exact");
    const auto ids = random_ids(length, vocabulary, 5);
    const auto steps = [&] {
        return scored_alone(engine, {ids, 0, length}, RecordLevel::basic).tokens.steps;
    };
    for (const char* text : {"full", "entropy:theta=2.5", "latent_difference:theta=0.7"}) {
        engine.choose(&RunPlan::rule, rule_of(PolicySpec::parse(text), engine));
        EXPECT_EQ(engine.scoring(), "exact") << text;
        const auto usual = steps();
        engine.choose(&RunPlan::refreshes, std::nullopt);
        EXPECT_EQ(usual, steps()) << text;
    }
}

/// Under a rule that never stops a token nothing is left to decide: as fast and the same as without one, and
/// refreshes may be counted as of a run with a rule that stops some.
TEST(Pauses, AreKnownUnderARuleThatNeverHalts) {
    const TemporaryFolder folder;
    Engine engine = pausing_engine(folder);
    const auto ids = random_ids(length, vocabulary, 5);
    const auto run = [&] { return scored_alone(engine, {ids, 0, length}, RecordLevel::basic); };
    const auto passes = [](const WindowResult& result) {
        return std::ranges::count(result.signals, signal::jacobi_difference,
                                  &std::pair<std::string, SignalChunk>::first);
    };
    const WindowResult known = run();
    engine.choose(&RunPlan::rule, full_halting());
    engine.choose(&RunPlan::refreshes, 2);
    EXPECT_EQ(engine.scoring(), "jacobi:2");
    const WindowResult full = run();
    EXPECT_EQ(passes(full), 0);
    EXPECT_TRUE(std::equal(full.tokens.nll.begin(), full.tokens.nll.end() - 1, known.tokens.nll.begin()));
    engine.choose(&RunPlan::rule, rule_of(PolicySpec::parse("fixed:n=1"), engine));
    EXPECT_EQ(passes(run()), 1);
}

/// Layers as steps, for every backbone.
class Exits : public Reruns {};

/// Everything is computed for every token, and kept only where the token is still in: blocks then make keys
/// and values of what a token was when it left.
TEST_P(Exits, EqualTheSlowWay) {
    std::vector<std::int32_t> steps;
    for (std::int64_t t = 0; t < length; ++t) {
        steps.push_back(static_cast<std::int32_t>((t * 7 + t / 5) % (engine_->max_steps() + 1)));
    }
    engine_->choose(&RunPlan::rule, prescribed_halting("told", {steps}));
    const WindowResult result = run();
    EXPECT_EQ(result.tokens.steps, steps);
    const auto arrays = engine_->inspect_batch({ids_});
    expect_near(arrays.at("nll").floats, {result.tokens.nll.begin(), result.tokens.nll.end() - 1},
                "NLL beside all that is heard");
    EXPECT_EQ(arrays.contains("depth_weights.step1.layer1"),
              checkpoint_->config.depth.kind == DepthMixing::depth_attention);

    const c10::InferenceMode no_gradients;
    const Model model(checkpoint_->config,
                      Parameters::load(parameter_layout(checkpoint_->config), *checkpoint_, {at::kCPU},
                                       scalar_type_of(test_precision()), {}, {}));
    const Backbone& backbone = model.backbone();
    const TokenBatch batch = TokenBatch::make(backbone, {ids_}, at::kCPU, true);
    const std::unique_ptr<ValueMixer> mixer = backbone.make_mixer();
    Pass pass;
    pass.rotation_rows = batch.rotation_rows;
    pass.positions = batch.positions;
    pass.cos = batch.cos;
    pass.sin = batch.sin;
    pass.mixer = mixer.get();
    pass.visibility.causal = {{0, length, 0, 0}};
    if (mixer) {
        mixer->begin_pass(pass);
    }
    const at::Tensor exits = at::tensor(std::vector<std::int64_t>(steps.begin(), steps.end()), at::kLong);
    at::Tensor stream = backbone.enter(backbone.embed(batch.ids), pass);
    for (std::int64_t l = 0; l < checkpoint_->config.layers; ++l) {
        stream = at::where((exits >= l).unsqueeze(1), backbone.block(l, stream, pass), stream);
    }
    const at::Tensor logits =
        full_logits(backbone.final_norm(stream), backbone.head()).to(at::kFloat).log_softmax(1);
    std::vector<float> expected;
    for (std::int64_t t = 0; t + 1 < length; ++t) {
        expected.push_back(-logits[t][ids_[static_cast<std::size_t>(t) + 1]].item<float>());
    }
    expect_near({result.tokens.nll.begin(), result.tokens.nll.end() - 1}, expected, "NLL");
}

TEST_P(Exits, TheLastLayerIsTheModel) {
    const WindowResult full = run();
    Engine plain = load_engine(*checkpoint_);
    const WindowResult expected = scored_alone(plain, {ids_, 0, length}, RecordLevel::steps);
    expect_near(full.tokens.nll, expected.tokens.nll, "NLL");
    const Table nll = table(full, signal::nll);
    EXPECT_EQ(nll.width, static_cast<std::size_t>(checkpoint_->config.layers));
    EXPECT_EQ(full.tokens.flops, expected.tokens.flops);
    EXPECT_EQ(engine_->policy(), "full");
}

TEST_P(Exits, AreTheSameWithACacheAndInABatch) {
    engine_->choose(&RunPlan::rule, rule_of(PolicySpec::parse("uniform:rate=1.2,seed=9"), *engine_));
    GenerateOptions options{.max_new_tokens = 6};
    const std::vector<std::vector<std::int32_t>> prompts{random_ids(9, vocabulary, 6),
                                                         random_ids(4, vocabulary, 7)};
    const auto cached = continued(*engine_, prompts, options);
    options.use_cache = false;
    const auto anew = continued(*engine_, prompts, options);
    for (std::size_t i = 0; i < prompts.size(); ++i) {
        expect_equal(anew[i], cached[i], 1e-4, "with and without a cache");
    }

    const auto other = random_ids(13, vocabulary, 8);
    const std::vector<Window> windows{{ids_, 0, length, 0}, {other, 0, 13, 1}};
    const auto together = engine_->score(windows, RecordLevel::steps);
    for (std::size_t i = 0; i < windows.size(); ++i) {
        const WindowResult alone = engine_->score(std::span(&windows[i], 1), RecordLevel::steps).front();
        EXPECT_EQ(together[i].tokens.steps, alone.tokens.steps);
        EXPECT_EQ(together[i].tokens.flops, alone.tokens.flops);
        expect_near(together[i].tokens.nll, alone.tokens.nll, "NLL");
    }
}

INSTANTIATE_TEST_SUITE_P(Backbones, Exits,
                         ::testing::Values("gpt_neox", "llama", "gpt2", "mistral", "qwen2", "qwen3", "phi",
                                           "opt", "nanbeige", "depth_attention", "depth_attention_qwen3"),
                         [](const auto& one) { return one.param; });

} // namespace
} // namespace ponderscope
