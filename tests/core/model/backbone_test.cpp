// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/backbone.h"

#include "core/base/error.h"
#include "core/checkpoint/safetensors.h"
#include "core/model/blocks.h"
#include "core/model/norm_rows.h"
#include "core/model/rope.h"
#include "tests/support/test_data.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>

namespace ponderscope {
namespace {

using testing::TemporaryFolder;

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
    return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

TEST(Blocks, NormRowsEqualTheLibrarys) {
    at::manual_seed(1);
    for (const std::int64_t d : {1, 15, 16, 60, 513}) {
        const at::Tensor x = at::randn({37, d}) * 3 + 5;
        const at::Tensor weight = at::randn({d});
        const at::Tensor bias = at::randn({d});
        at::Tensor out = at::empty_like(x);
        norm_rows(out, x, NormKind::layer_norm, weight, bias, 1e-5);
        EXPECT_LT(largest_difference(out, at::layer_norm(x, {d}, weight, bias, 1e-5)), 2e-5) << d;
        norm_rows(out, x, NormKind::rms_norm, weight, {}, 0.1);
        EXPECT_LT(largest_difference(out, x / (x.square().mean(-1, true) + 0.1).sqrt() * weight), 2e-5) << d;
    }
}

TEST(Blocks, WorkspaceAndPlainFormsAgree) {
    at::manual_seed(2);
    const std::int64_t n = 2050; // more rows than an MLP holds at once
    const at::Tensor x = at::randn({n, 24});
    const blocks::Linear up{at::randn({40, 24}) * 0.2, at::randn({40})};
    const blocks::Linear gate{at::randn({40, 24}) * 0.2, {}};
    const blocks::Linear down{at::randn({24, 40}) * 0.2, at::randn({24})};
    Workspace workspace;
    Pass fast;
    fast.workspace = &workspace;
    for (const Activation activation :
         {Activation::gelu, Activation::gelu_tanh, Activation::quick_gelu, Activation::relu,
          Activation::relu_squared, Activation::silu, Activation::sigmoid, Activation::tanh, Activation::mish,
          Activation::linear}) {
        const at::Tensor residual = at::randn({n, 24});
        const at::Tensor plain = blocks::add_mlp(residual, x, up, down, activation, Pass{});
        EXPECT_LT(largest_difference(blocks::add_mlp(residual.clone(), x, up, down, activation, fast), plain),
                  2e-5);
        const at::Tensor gated = blocks::add_gated_mlp(residual, x, gate, up, down, activation, Pass{});
        EXPECT_LT(largest_difference(
                      blocks::add_gated_mlp(residual.clone(), x, gate, up, down, activation, fast), gated),
                  2e-5);
    }
}

TEST(Rotation, BothFormsTurnPairsByTheAngle) {
    at::manual_seed(3);
    RopeConfig rope;
    rope.kind = RopeConfig::Kind::standard;
    rope.theta = 100;
    rope.rotary_dims = 6;
    const auto [cos, sin] = rope_table(rope, 64, 0, 64);
    const at::Tensor wide = at::randn({5, 3, 30});
    const at::Tensor x = wide.narrow(2, 10, 10); // a slice, as heads of a fused projection are
    const at::Tensor rows = at::tensor({0, 3, 3, 63, 17}, at::kLong);
    const at::Tensor turned = rotate(x, cos, sin, rows);
    at::Tensor out = at::empty({5, 3, 10});
    rotate_into(out, x, cos, sin, rows);
    EXPECT_LT(largest_difference(out, turned), 1e-6);
    for (std::int64_t i = 0; i < 5; ++i) {
        for (std::int64_t j = 0; j < 3; ++j) {
            const double angle = static_cast<double>(rows[i].item<std::int64_t>()) *
                                 std::pow(100.0, -2.0 * static_cast<double>(j) / 6);
            const auto a = x[i][1][j].item<double>();
            const auto b = x[i][1][j + 3].item<double>();
            EXPECT_NEAR(turned[i][1][j].item<double>(), a * std::cos(angle) - b * std::sin(angle), 2e-5);
            EXPECT_NEAR(turned[i][1][j + 3].item<double>(), b * std::cos(angle) + a * std::sin(angle), 2e-5);
        }
    }
    EXPECT_EQ(largest_difference(turned.narrow(2, 6, 4), x.narrow(2, 6, 4)), 0)
        << "what does not rotate passes through";
    const at::Tensor half = x.to(at::kBFloat16);
    at::Tensor half_out = at::empty({5, 3, 10}, at::kBFloat16);
    rotate_into(half_out, half, cos, sin, rows);
    EXPECT_EQ(largest_difference(half_out, rotate(half, cos, sin, rows)), 0) << "fp32 inside, rounded once";
}

/// A Llama of one layer whose tensors a test changes before they are written.
class Loading : public ::testing::Test {
protected:
    using Tensors = std::vector<std::pair<std::string, at::Tensor>>;

    Checkpoint write(bool tied, const std::function<void(Tensors&)>& change = {}) {
        const nlohmann::json config{
            {"model_type", "llama"},         {"vocab_size", 11},           {"hidden_size", 8},
            {"num_hidden_layers", 1},        {"num_attention_heads", 2},   {"intermediate_size", 12},
            {"max_position_embeddings", 32}, {"tie_word_embeddings", tied}};
        std::ofstream(folder_ / "config.json") << config.dump();
        const ParameterLayout layout = backbone_layout(read_model_config(folder_ / "config.json"));
        Tensors tensors = Parameters::initialise(layout, 1, at::kCPU).items();
        if (change) {
            change(tensors);
        }
        std::vector<TensorView> views;
        for (const auto& [name, tensor] : tensors) {
            views.push_back({name,
                             dtype_of(tensor.scalar_type()),
                             tensor.sizes().vec(),
                             {static_cast<const std::byte*>(tensor.const_data_ptr()),
                              static_cast<std::size_t>(tensor.nbytes())}});
        }
        write_safetensors(folder_ / "model.safetensors", views);
        return Checkpoint::open(folder_.path());
    }

    static Parameters load(const Checkpoint& checkpoint, at::ScalarType dtype = at::kFloat) {
        return Parameters::load(backbone_layout(checkpoint.config), checkpoint, {at::kCPU}, dtype);
    }

    static std::string message(const Checkpoint& checkpoint) {
        try {
            (void)load(checkpoint);
        } catch (const InputError& error) {
            return error.what();
        }
        return "no InputError";
    }

    static void remove(Tensors& tensors, const std::string& name) {
        std::erase_if(tensors, [&](const auto& one) { return one.first == name; });
    }

    TemporaryFolder folder_;
};

TEST_F(Loading, ConvertsFromEveryDtypeToEveryDtype) {
    for (const at::ScalarType stored : {at::kFloat, at::kHalf, at::kBFloat16, at::kDouble}) {
        at::Tensor original;
        const Checkpoint checkpoint = write(false, [&](Tensors& tensors) {
            for (auto& [name, tensor] : tensors) {
                tensor = tensor.to(stored);
            }
            original = tensors[0].second;
        });
        for (const at::ScalarType wanted : {at::kFloat, at::kHalf, at::kBFloat16}) {
            const Parameters parameters = load(checkpoint, wanted);
            EXPECT_EQ(parameters.dtype(), wanted);
            EXPECT_TRUE(at::equal(parameters.items()[0].second, original.to(wanted)));
        }
    }
}

TEST_F(Loading, TensorsThatAreNotAligned) {
    at::Tensor original;
    const Checkpoint checkpoint = write(false, [&](Tensors& tensors) {
        original = tensors[0].second;
        // One odd byte first: everything after it lies off its boundary.
        tensors.insert(tensors.begin(), {"zero_bytes", at::zeros({3}, at::kByte)});
    });
    EXPECT_TRUE(at::equal(load(checkpoint).items()[0].second, original));
}

TEST_F(Loading, SaysWhatIsMissingOrWrong) {
    std::string text =
        message(write(false, [](Tensors& tensors) { remove(tensors, "model.layers.0.mlp.up_proj.weight"); }));
    EXPECT_NE(text.find("model.layers.0.mlp.up_proj.weight"), std::string::npos) << text;
    EXPECT_NE(text.find("no such tensor"), std::string::npos) << text;
    text = message(write(false, [](Tensors& tensors) { remove(tensors, "lm_head.weight"); }));
    EXPECT_NE(text.find("lm_head.weight"), std::string::npos) << text;
    text = message(write(false, [](Tensors& tensors) { tensors[0].second = at::zeros({11, 9}); }));
    EXPECT_NE(text.find("[11, 8]"), std::string::npos) << text;
    EXPECT_NE(text.find("[11, 9]"), std::string::npos) << text;
    text = message(write(false, [](Tensors& tensors) { tensors[0].second = at::zeros({11, 8}, at::kLong); }));
    EXPECT_NE(text.find("I64"), std::string::npos) << text;
}

TEST_F(Loading, Ties) {
    const Parameters one = load(write(true));
    EXPECT_TRUE(one.tied());
    EXPECT_TRUE(one.notices().empty());
    const Parameters head_only =
        load(write(true, [](Tensors& tensors) { tensors[0].first = "lm_head.weight"; }));
    EXPECT_TRUE(head_only.tied());
    EXPECT_TRUE(at::equal(head_only.at("model.embed_tokens.weight"), one.at("model.embed_tokens.weight")));
    const Parameters twice = load(write(
        true, [](Tensors& tensors) { tensors.emplace_back("lm_head.weight", tensors[0].second.clone()); }));
    EXPECT_TRUE(twice.tied());
    EXPECT_TRUE(twice.notices().empty()) << "an equal head is no surprise";
    const Parameters broken = load(
        write(true, [](Tensors& tensors) { tensors.emplace_back("lm_head.weight", tensors[0].second + 1); }));
    EXPECT_FALSE(broken.tied());
    ASSERT_EQ(broken.notices().size(), 1U);
    EXPECT_NE(broken.notices()[0].find("untied"), std::string::npos);
    EXPECT_FALSE(at::equal(broken.at("lm_head.weight"), broken.at("model.embed_tokens.weight")));
}

TEST_F(Loading, NamesWhatNobodyAskedFor) {
    const Parameters parameters = load(write(false, [](Tensors& tensors) {
        tensors.emplace_back("adapter.weight", at::zeros({2}));
        tensors.emplace_back("model.layers.0.self_attn.rotary_emb.inv_freq", at::zeros({2}));
    }));
    ASSERT_EQ(parameters.notices().size(), 1U);
    EXPECT_NE(parameters.notices()[0].find("adapter.weight"), std::string::npos);
    EXPECT_EQ(parameters.notices()[0].find("inv_freq"), std::string::npos) << "buffers are not weights";
}

TEST_F(Loading, CountsTheBlocksMatrices) {
    const Checkpoint checkpoint = write(false);
    const Parameters parameters = load(checkpoint);
    const auto backbone = make_backbone(checkpoint.config, parameters);
    EXPECT_EQ(backbone->block_matrix_elements(), 4 * 8 * 8 + 3 * 12 * 8);
}

} // namespace
} // namespace ponderscope
