// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/engine/model.h"

#include "core/ponder/engine/engine.h"
#include "core/ponder/schedule/steps.h"
#include "tests/core/ponder/tiny_models.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace ponderscope {
namespace {

using namespace testing;

Model load(const Checkpoint& checkpoint, at::ScalarType dtype = at::kFloat) {
    return {checkpoint.config,
            Parameters::load(parameter_layout(checkpoint.config), checkpoint, {at::kCPU}, dtype)};
}

std::vector<nlohmann::json> configs() {
    nlohmann::json sequential = tiny_gpt_neox();
    sequential["use_parallel_residual"] = false;
    return {tiny_gpt_neox(), sequential, tiny_llama(), with_ponderlm(tiny_gpt_neox(), 2),
            with_ponderlm(tiny_llama(), 2)};
}

/// The next id is each token's target; the last token of a text has none.
PackedBatch packed(std::vector<std::vector<std::int32_t>> texts) {
    PackedBatch batch{std::move(texts), {}};
    std::vector<std::int64_t> targets;
    for (const std::vector<std::int32_t>& text : batch.sequences) {
        targets.insert(targets.end(), text.begin() + 1, text.end());
        targets.push_back(-1);
    }
    batch.targets = at::tensor(targets, at::kLong);
    return batch;
}

TEST(Forward, EveryMethodWithoutAPenaltyHasAGradient) {
    for (const char* const method :
         {"looped", "pause", "ponderlm", "ponderlm_reset", "ponderlm_hidden", "ponderlm2"}) {
        const TemporaryFolder folder;
        nlohmann::json config = tiny_llama();
        config["pondering"] = {{"method", method}, {"max_steps", 2}};
        config["pause_token_id"] = 7;
        const Checkpoint checkpoint = make_checkpoint(folder.path(), config);
        Model model = load(checkpoint, at::kDouble);
        model.parameters().requires_grad(true);
        const PackedBatch batch = packed({random_ids(7, 61, 3), random_ids(5, 61, 4)});
        const ForwardForm passes{3, true, {}}; // a fixed number of them
        model.forward(batch, passes).cross_entropy.backward();
        // Against a central difference along one matrix.
        const at::Tensor weight = model.parameters().at("model.layers.1.mlp.down_proj.weight");
        const at::Tensor direction = at::randn_like(weight).detach();
        const double slope = (weight.grad() * direction).sum().item<double>();
        const at::NoGradGuard plain;
        const double step = 1e-4;
        weight.add_(direction, step);
        const double above = model.forward(batch, passes).cross_entropy.item<double>();
        weight.sub_(direction, 2 * step);
        const double below = model.forward(batch, passes).cross_entropy.item<double>();
        EXPECT_NEAR(slope, (above - below) / (2 * step), 2e-3 * std::max(1.0, std::abs(slope))) << method;
        EXPECT_NE(slope, 0.0);
    }
}

TEST(Forward, GivesTheNumbersOfTheEngine) {
    for (const nlohmann::json& config : configs()) {
        const TemporaryFolder folder;
        const Checkpoint checkpoint = make_checkpoint(folder.path(), config);
        Model model = load(checkpoint);
        model.parameters().requires_grad(true);
        const std::vector<std::vector<std::int32_t>> texts{random_ids(11, 61, 1), random_ids(19, 61, 2)};
        const ForwardResult result = model.forward(packed(texts));
        ASSERT_TRUE(result.cross_entropy.requires_grad());
        EXPECT_EQ(static_cast<std::int64_t>(result.steps.size()), model.config().ponder.max_steps + 1);
        const Engine engine = Engine::load(checkpoint);
        double sum = 0;
        std::int64_t scored = 0;
        for (const auto& text : texts) {
            const auto nll = scored_alone(engine, whole(text), RecordLevel::nll).tokens.nll;
            for (std::size_t t = 0; t + 1 < nll.size(); ++t) {
                sum += nll[t];
                ++scored;
            }
        }
        EXPECT_NEAR(result.cross_entropy.item<double>(), sum / static_cast<double>(scored), 1e-5);
    }
}

TEST(Forward, WindowsAreTheSameAsPackedSequences) {
    const TemporaryFolder folder;
    const Model model = load(make_checkpoint(folder.path(), with_ponderlm(tiny_llama(), 1)));
    const at::NoGradGuard no_gradients;
    const auto a = random_ids(9, 61, 3);
    const auto b = random_ids(9, 61, 4);
    const ForwardResult square = model.forward(PackedBatch::from_windows({a, b}, at::kCPU));
    const ForwardResult whole = model.forward(packed({a, b}));
    EXPECT_NEAR(square.cross_entropy.item<double>(), whole.cross_entropy.item<double>(), 1e-6);
    EXPECT_EQ(square.readout.size(0), 16);
}

/// d loss / d direction by autograd against a central difference, for every tensor of the model.
TEST(Forward, GradientsAreThoseOfFiniteDifferences) {
    for (const nlohmann::json& config : configs()) {
        const TemporaryFolder folder;
        const Checkpoint checkpoint = make_checkpoint(folder.path(), config);
        Model model = load(checkpoint);
        model.parameters().requires_grad(true);
        const PackedBatch batch = packed({random_ids(13, 61, 5), random_ids(6, 61, 6)});
        model.forward(batch).cross_entropy.backward();
        int checked = 0;
        for (auto& [name, tensor] : model.parameters().items()) {
            ASSERT_TRUE(tensor.grad().defined()) << name << " got no gradient";
            const at::NoGradGuard no_gradients;
            // Along the gradient itself the difference is largest against rounding.
            const double slope = tensor.grad().norm().item<double>();
            ASSERT_GT(slope, 1e-6) << name;
            const at::Tensor direction = tensor.grad() / slope;
            const double step = 2e-3;
            const at::Tensor original = tensor.detach().clone();
            const auto loss_at = [&](double offset) {
                tensor.detach().copy_(original + direction * offset);
                return model.forward(batch).cross_entropy.item<double>();
            };
            const double difference = (loss_at(step) - loss_at(-step)) / (2 * step);
            tensor.detach().copy_(original);
            EXPECT_NEAR(difference, slope, 0.02 * slope + 2e-3) << name;
            ++checked;
        }
        EXPECT_GT(checked, 20);
    }
}

TEST(Forward, TiedTablesLearnThroughBothUses) {
    const TemporaryFolder folder;
    const Checkpoint checkpoint = make_checkpoint(folder.path(), tiny_llama());
    ASSERT_TRUE(checkpoint.config.tied_embeddings);
    const Model model = load(checkpoint);
    EXPECT_TRUE(model.parameters().tied());
    EXPECT_TRUE(
        model.parameters().at("lm_head.weight").is_same(model.parameters().at("model.embed_tokens.weight")));
    for (const auto& [name, tensor] : model.parameters().items()) {
        EXPECT_NE(name, "lm_head.weight");
    }
}

TEST(Forward, FreshWeightsDependOnTheSeedAlone) {
    const TemporaryFolder folder;
    const ModelConfig config = make_checkpoint(folder.path(), tiny_gpt_neox()).config;
    const ParameterLayout layout = parameter_layout(config);
    const Parameters a = Parameters::initialise(layout, 7, at::kCPU);
    const Parameters b = Parameters::initialise(layout, 7, at::kCPU);
    const Parameters c = Parameters::initialise(layout, 8, at::kCPU);
    for (std::size_t i = 0; i < a.items().size(); ++i) {
        EXPECT_TRUE(at::equal(a.items()[i].second, b.items()[i].second)) << a.items()[i].first;
    }
    EXPECT_FALSE(at::equal(a.at("embed_out.weight"), c.at("embed_out.weight")));
    const Model model(config, a);
    const at::NoGradGuard no_gradients;
    const double loss = model.forward(packed({random_ids(40, 61, 9)})).cross_entropy.item<double>();
    EXPECT_NEAR(loss, std::log(61.0), 0.1) << "a fresh model knows nothing";
}

/// DenseFormer's averages begin as the newest output, mHC's maps nearly as the residual sum.
TEST(Forward, FreshDepthMixingBeginsAsThePlainModel) {
    const auto states = [](const nlohmann::json& document) {
        const TemporaryFolder folder;
        const ModelConfig config = make_checkpoint(folder.path(), document).config;
        const Model model(config, Parameters::initialise(parameter_layout(config), 7, at::kCPU));
        const at::NoGradGuard no_gradients;
        return model.forward(packed({random_ids(30, 61, 9)})).readout;
    };
    nlohmann::json plain = tiny_llama();
    plain["use_qk_norm"] = true;
    const at::Tensor expected = states(plain);
    for (const int period : {1, 2}) {
        for (const int dilation : {1, 2}) {
            nlohmann::json mixed = plain;
            mixed["baseline_mode"] = "denseformer";
            mixed["denseformer_dwa_period"] = period;
            mixed["denseformer_dwa_dilation"] = dilation;
            EXPECT_LE((states(mixed) - expected).abs().max().item<float>(), 1e-5F) << period << dilation;
        }
    }
    nlohmann::json streams = plain;
    streams["baseline_mode"] = "mhc";
    // Two inputs to a norm that differ by a factor of two differ by its epsilon; the dynamic maps by 0.01.
    EXPECT_LE((states(streams) - expected).abs().max().item<float>(), 0.3F);
    EXPECT_GT((states(streams) - expected).abs().max().item<float>(), 0.0F);
}

} // namespace
} // namespace ponderscope
