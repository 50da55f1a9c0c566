// SPDX-License-Identifier: GPL-3.0-or-later
// Mixtures of experts: which experts are computed, and what is recorded of them.
#include "core/base/error.h"
#include "core/model/experts.h"
#include "core/policy/policy_spec.h"
#include "core/ponder/halting/policy_halting.h"
#include "core/record/record_choice.h"
#include "core/trace/reader.h"
#include "tests/core/ponder/tiny_models.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace ponderscope {
namespace {

ModelConfig small_mixture(bool clamped = false) {
    ModelConfig config;
    config.hidden_size = 6;
    config.activation = Activation::silu;
    config.experts = {5, 2, 4, true, clamped, 1.7, 7.0, {0}};
    return config;
}

/// Weights whose router prefers experts 3 and 1 whatever the row is.
Parameters small_weights(const ModelConfig& config) {
    TensorBuilder builder(config);
    Experts::declare(builder, "mlp.", config);
    builder.layout().embedding = builder.layout().head = "mlp.gate.weight";
    Parameters parameters = Parameters::initialise(builder.finish(), 3, at::kCPU);
    parameters.at("mlp.gate.weight").zero_();
    return parameters;
}

TEST(Experts, OnlyTheChosenAreComputed) {
    const c10::InferenceMode no_gradients;
    const ModelConfig config = small_mixture();
    Parameters parameters = small_weights(config);
    at::Tensor router = parameters.at("mlp.gate.weight");
    const at::Tensor rows = at::rand({7, 6}) + 1;
    router.select(0, 3).fill_(2);
    router.select(0, 1).fill_(1);
    for (const char* e : {"0", "2", "4"}) { // a sum that they are part of has no value
        parameters.at(std::string("mlp.experts.") + e + ".down_proj.weight")
            .fill_(std::numeric_limits<double>::quiet_NaN());
    }
    TensorBuilder builder(config, &parameters);
    const Experts experts = Experts::declare(builder, "mlp.", config);
    const at::Tensor out = experts.run(rows, 0, {});
    ASSERT_TRUE(at::isfinite(out).all().item<bool>());
    // The same, a row and an expert at a time.
    const auto mlp = [&](const std::string& e, const at::Tensor& row) {
        const std::string name = "mlp.experts." + e + ".";
        const at::Tensor gate = at::silu(at::linear(row, parameters.at(name + "gate_proj.weight")));
        return at::linear(gate * at::linear(row, parameters.at(name + "up_proj.weight")),
                          parameters.at(name + "down_proj.weight"));
    };
    for (std::int64_t i = 0; i < 7; ++i) {
        const at::Tensor row = rows.select(0, i);
        const at::Tensor p = at::softmax(at::linear(row, router), 0);
        const at::Tensor sum = p[3] + p[1];
        const at::Tensor expected = mlp("3", row) * (p[3] / sum) + mlp("1", row) * (p[1] / sum);
        EXPECT_TRUE(at::allclose(out.select(0, i), expected, 1e-5, 1e-6)) << i;
        // A row is the same alone and among others, but for the rounding of a product of another shape.
        const at::Tensor alone = experts.run(row.unsqueeze(0), 0, {}).select(0, 0);
        EXPECT_TRUE(at::allclose(alone, out.select(0, i), 1e-5, 1e-6)) << i;
    }
    EXPECT_EQ(experts.run(at::zeros({0, 6}), 0, {}).size(0), 0);
}

TEST(Experts, EqualProbabilitiesGoToTheLowerExpert) {
    const c10::InferenceMode no_gradients;
    const ModelConfig config = small_mixture();
    Parameters parameters = small_weights(config);
    for (const char* e : {"2", "3", "4"}) {
        parameters.at(std::string("mlp.experts.") + e + ".down_proj.weight")
            .fill_(std::numeric_limits<double>::quiet_NaN());
    }
    TensorBuilder builder(config, &parameters);
    const Experts experts = Experts::declare(builder, "mlp.", config);
    EXPECT_TRUE(at::isfinite(experts.run(at::rand({4, 6}), 0, {})).all().item<bool>());
}

TEST(Experts, GradientsReachRouterAndChosenExperts) {
    const ModelConfig config = small_mixture();
    Parameters parameters = small_weights(config);
    parameters.at("mlp.gate.weight").select(0, 3).fill_(1);
    parameters.requires_grad(true);
    TensorBuilder builder(config, &parameters);
    Experts::declare(builder, "mlp.", config).run(at::rand({4, 6}), 0, {}).sum().backward();
    EXPECT_GT(parameters.at("mlp.gate.weight").grad().abs().sum().item<double>(), 0);
    EXPECT_GT(parameters.at("mlp.experts.3.up_proj.weight").grad().abs().sum().item<double>(), 0);
    EXPECT_FALSE(parameters.at("mlp.experts.4.up_proj.weight").grad().defined());
}

class RecordedExpertsOf : public ::testing::Test {
protected:
    RecordedExpertsOf()
        : engine_(
              testing::load_engine(testing::make_checkpoint(folder_ / "model", testing::tiny_qwen3_moe()))) {}

    WindowResult score(const std::string& record) {
        const RecordChoice choice = RecordChoice::parse(record);
        choice.apply(engine_);
        const Window window = testing::whole(ids_);
        return engine_.score({&window, 1}, choice.level).front();
    }

    testing::TemporaryFolder folder_;
    Engine engine_;
    std::vector<std::int32_t> ids_{3, 9, 27, 14, 9, 3, 40, 41};
};

TEST_F(RecordedExpertsOf, NumbersFollowFromTheProbabilities) {
    const WindowResult result = score("basic,experts:probabilities");
    const SignalChunk* const chosen = testing::find(result, signal::router_experts);
    ASSERT_NE(chosen, nullptr);
    EXPECT_EQ(chosen->dtype, DType::i8);
    EXPECT_EQ(chosen->shape, (std::vector<std::int64_t>{8, 1, 2, 2})); // tokens, steps, sparse layers, k
    const std::vector<std::int64_t> ids = to_integers(*chosen);
    const auto floats = [&](const char* name) { return to_floats(*testing::find(result, name)); };
    const std::vector<float> p = floats(signal::router_probabilities);
    const std::vector<float> weights = floats(signal::router_weights);
    const std::vector<float> entropy = floats(signal::router_entropy);
    const std::vector<float> mass = floats(signal::router_mass);
    const std::vector<float> margin = floats(signal::router_margin);
    constexpr std::size_t experts = 4, k = 2;
    ASSERT_EQ(p.size(), 8U * 2 * experts);
    for (std::size_t place = 0; place < 16; ++place) {
        std::vector<float> row(p.begin() + static_cast<std::ptrdiff_t>(place * experts),
                               p.begin() + static_cast<std::ptrdiff_t>((place + 1) * experts));
        double of_chosen = 0, own_entropy = 0;
        for (const float one : row) {
            own_entropy -= static_cast<double>(one) * std::log(static_cast<double>(one));
        }
        for (std::size_t c = 0; c < k; ++c) {
            of_chosen += static_cast<double>(row[static_cast<std::size_t>(ids[place * k + c])]);
        }
        std::sort(row.begin(), row.end(), std::greater<>());
        EXPECT_NEAR(entropy[place], own_entropy, 2e-3);
        EXPECT_NEAR(mass[place], of_chosen, 2e-3);
        EXPECT_NEAR(mass[place], row[0] + row[1], 2e-3);
        EXPECT_NEAR(margin[place], row[1] - row[2], 2e-3);
        EXPECT_NEAR(weights[place * k] + weights[place * k + 1], 1.0, 2e-3); // renormed
        EXPECT_GE(weights[place * k], weights[place * k + 1]);
    }
    EXPECT_EQ(testing::find(score("basic,experts"), signal::router_probabilities), nullptr);
    EXPECT_EQ(testing::find(score("basic"), signal::router_experts), nullptr);
}

TEST_F(RecordedExpertsOf, NothingElseChanges) {
    const WindowResult without = score("steps");
    const WindowResult with = score("steps,experts");
    for (std::size_t t = 0; t + 1 < ids_.size(); ++t) {
        EXPECT_EQ(without.tokens.nll[t], with.tokens.nll[t]);
    }
}

TEST_F(RecordedExpertsOf, LayersBehindAnExitDidNotRun) {
    const std::shared_ptr<const HaltingRule> rule = rule_of(PolicySpec::parse("fixed:n=1"), engine_);
    engine_.choose(&RunPlan::rule, rule);
    engine_.choose(&RunPlan::experts, RecordedExperts::chosen);
    const WindowResult result = testing::scored_alone(engine_, testing::whole(ids_), RecordLevel::basic);
    const SignalChunk* const chosen = testing::find(result, signal::router_experts);
    ASSERT_NE(chosen, nullptr);
    EXPECT_EQ(chosen->shape, (std::vector<std::int64_t>{8, 2, 2})); // without an axis of steps
    const std::vector<std::int64_t> ids = to_integers(*chosen);
    for (std::size_t i = 0; i < ids.size(); ++i) {
        const bool first_layer = i / 2 % 2 == 0; // layer 0; layer 2 lies behind the exit
        EXPECT_EQ(ids[i] >= 0, first_layer) << i;
    }
}

TEST_F(RecordedExpertsOf, AModelWithoutExpertsSaysSo) {
    Engine plain = testing::load_engine(testing::make_checkpoint(folder_ / "plain", testing::tiny_llama()));
    EXPECT_THROW(RecordChoice::parse("steps,experts").apply(plain), InputError);
    for (const char* text : {"scalars,experts", "experts,experts", "experts:all", "experts:"}) {
        EXPECT_THROW((void)RecordChoice::parse(text), InputError) << text;
    }
}

} // namespace
} // namespace ponderscope
