// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/backbone.h"

#include "core/checkpoint/safetensors.h"
#include "core/model/rope.h"
#include "tests/support/errors.h"
#include "tests/support/notices.h"
#include "tests/support/test_data.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>
#include <functional>

namespace ponderscope {
namespace {

using testing::TemporaryFolder;

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
    return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

TEST(Rotation, TurnsPairsByTheAngle) {
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
    EXPECT_EQ(largest_difference(rotate(half, cos, sin, rows),
                                 rotate(half.to(at::kFloat), cos, sin, rows).to(at::kBFloat16)),
              0)
        << "fp32 inside, rounded once";
}

DType dtype_of(const at::Tensor& tensor) {
    for (const DType dtype : {DType::u8, DType::i64, DType::f16, DType::bf16, DType::f64}) {
        if (scalar_type_of(dtype) == tensor.scalar_type()) {
            return dtype;
        }
    }
    return DType::f32;
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
            const std::span bytes(static_cast<const std::byte*>(tensor.const_data_ptr()),
                                  static_cast<std::size_t>(tensor.nbytes()));
            views.push_back({name, dtype_of(tensor), tensor.sizes().vec(), bytes});
        }
        write_safetensors(folder_ / "model.safetensors", views);
        return Checkpoint::open(folder_.path());
    }

    static Parameters load(const Checkpoint& checkpoint, at::ScalarType dtype = at::kFloat) {
        return Parameters::load(backbone_layout(checkpoint.config), checkpoint, {at::kCPU}, dtype);
    }

    static std::string message(const Checkpoint& checkpoint) {
        return testing::error_of([&] { (void)load(checkpoint); });
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
    EXPECT_TRUE(text.ends_with("[checkpoint.tensor]")) << text;
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
    EXPECT_EQ(testing::ids_of(broken.notices()), testing::NoticeIds{NoticeId::weights_untied});
    EXPECT_FALSE(at::equal(broken.at("lm_head.weight"), broken.at("model.embed_tokens.weight")));
}

TEST_F(Loading, NamesWhatNobodyAskedFor) {
    const Parameters parameters = load(write(false, [](Tensors& tensors) {
        tensors.emplace_back("adapter.weight", at::zeros({2}));
        tensors.emplace_back("model.layers.0.self_attn.rotary_emb.inv_freq", at::zeros({2}));
    }));
    ASSERT_EQ(testing::ids_of(parameters.notices()), testing::NoticeIds{NoticeId::weights_unused});
    EXPECT_NE(parameters.notices()[0].text.find("adapter.weight"), std::string::npos);
    EXPECT_EQ(parameters.notices()[0].text.find("inv_freq"), std::string::npos) << "buffers are not weights";
}

TEST_F(Loading, CountsTheBlocksMatrices) {
    const Checkpoint checkpoint = write(false);
    const Parameters parameters = load(checkpoint);
    const auto backbone = make_backbone(checkpoint.config, parameters);
    EXPECT_EQ(backbone->block_matrix_elements(), 4 * 8 * 8 + 3 * 12 * 8);
}

} // namespace
} // namespace ponderscope
