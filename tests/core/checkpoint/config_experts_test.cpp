// SPDX-License-Identifier: GPL-3.0-or-later
// config.json of mixtures of experts.
#include "tests/core/checkpoint/support.h"

namespace ponderscope {
namespace {

using testing::read_config;

std::string mixture(const std::string& kind, const std::string& more = {}) {
    return R"({"model_type":")" + kind +
           R"(","hidden_size":64,"num_hidden_layers":4,"num_attention_heads":4,"vocab_size":100)" +
           (more.empty() ? "" : "," + more) + "}";
}

ModelConfig read_mixture(const std::string& kind, const std::string& more) {
    return read_config(mixture(kind, more));
}

using Layers = std::vector<std::int64_t>;

TEST(ConfigOfExperts, AbsentKeysAreThoseOfTheClasses) {
    const ModelConfig qwen = read_config(R"({"model_type":"qwen3_moe"})");
    EXPECT_EQ(qwen.experts.count, 128);
    EXPECT_EQ(qwen.experts.chosen, 8);
    EXPECT_EQ(qwen.experts.intermediate_size, 768);
    EXPECT_EQ(qwen.intermediate_size, 6144);
    EXPECT_EQ(qwen.hidden_size, 2048);
    EXPECT_EQ(qwen.layers, 24);
    EXPECT_EQ(qwen.kv_heads, 4);
    EXPECT_EQ(qwen.head_dim, 64);
    EXPECT_EQ(qwen.norm_eps, 1e-6);
    EXPECT_EQ(qwen.experts.layers.size(), 24U);
    EXPECT_FALSE(qwen.experts.renormed || qwen.experts.clamped || qwen.attention_bias);
    const ModelConfig olmoe = read_config(R"({"model_type":"olmoe"})");
    EXPECT_EQ(olmoe.experts.count, 64);
    EXPECT_EQ(olmoe.experts.chosen, 8);
    EXPECT_EQ(olmoe.experts.intermediate_size, 2048);
    EXPECT_EQ(olmoe.kv_heads, 16);
    EXPECT_EQ(olmoe.norm_eps, 1e-5);
    EXPECT_EQ(olmoe.max_positions, 4096);
    EXPECT_EQ(olmoe.eos_token_ids, (Layers{50279}));
    EXPECT_FALSE(olmoe.experts.renormed);
    const ModelConfig oss = read_config(R"({"model_type":"gpt_oss"})");
    EXPECT_EQ(oss.experts.count, 128);
    EXPECT_EQ(oss.experts.chosen, 4);
    EXPECT_EQ(oss.experts.intermediate_size, 2880);
    EXPECT_EQ(oss.hidden_size, 2880);
    EXPECT_EQ(oss.head_dim, 64);
    EXPECT_EQ(oss.kv_heads, 8);
    EXPECT_EQ(oss.layers, 36);
    EXPECT_TRUE(oss.experts.renormed && oss.experts.clamped && oss.attention_bias);
    EXPECT_EQ(oss.experts.alpha, 1.702);
    EXPECT_EQ(oss.experts.limit, 7.0);
    EXPECT_EQ(oss.rope.kind, RopeConfig::Kind::yarn);
    EXPECT_EQ(oss.rope.theta, 150000.0);
    EXPECT_EQ(oss.rope.factor, 32.0);
    EXPECT_EQ(oss.rope.original_max_positions, 4096);
    EXPECT_FALSE(oss.rope.truncate);
    EXPECT_EQ(oss.sliding_windows[0], 128);
    EXPECT_EQ(oss.sliding_windows[1], 0);
}

TEST(ConfigOfExperts, SparseLayersFollowStepAndList) {
    const auto layers = [](const std::string& more) {
        return read_mixture("qwen3_moe", more).experts.layers;
    };
    EXPECT_EQ(layers(""), (Layers{0, 1, 2, 3}));
    EXPECT_EQ(layers(R"("decoder_sparse_step":2)"), (Layers{1, 3}));
    EXPECT_EQ(layers(R"("mlp_only_layers":[0,3])"), (Layers{1, 2}));
    EXPECT_EQ(layers(R"("decoder_sparse_step":2,"mlp_only_layers":[1])"), (Layers{3}));
    EXPECT_EQ(layers(R"("mlp_only_layers":null)"), (Layers{0, 1, 2, 3}));
    EXPECT_EQ(layers(R"("decoder_sparse_step":5)"), Layers{});
}

TEST(ConfigOfExperts, BothNamesOfTheirNumberAreRead) {
    const std::string heads = R"("num_key_value_heads":2,)";
    for (const char* kind : {"qwen3_moe", "olmoe", "gpt_oss"}) {
        SCOPED_TRACE(kind);
        EXPECT_EQ(read_mixture(kind, heads + R"("num_experts":12)").experts.count, 12);
        EXPECT_EQ(read_mixture(kind, heads + R"("num_local_experts":12)").experts.count, 12);
        EXPECT_THROW((void)read_mixture(kind, heads + R"("num_experts":12,"num_local_experts":16)"),
                     InputError);
    }
}

TEST(ConfigOfExperts, WindowsOfQwenAreOfAllLayersOrNone) {
    const auto windows = [](const std::string& use, const std::string& size) {
        return read_mixture("qwen3_moe", "\"use_sliding_window\":" + use + ",\"sliding_window\":" + size)
            .sliding_windows;
    };
    EXPECT_EQ(windows("true", "9"), (Layers{9, 9, 9, 9}));
    EXPECT_EQ(windows("false", "9"), (Layers{0, 0, 0, 0}));
    EXPECT_EQ(windows("true", "null"), (Layers{0, 0, 0, 0}));
}

TEST(ConfigOfExperts, ImpossibleValuesAreRefusedByName) {
    const std::pair<std::string, std::string> wrong[] = {
        {R"("num_experts":4,"num_experts_per_tok":5)", "num_experts_per_tok"},
        {R"("num_experts":0)", "num_experts"},
        {R"("num_experts_per_tok":-1)", "num_experts_per_tok"},
        {R"("moe_intermediate_size":0)", "moe_intermediate_size"},
        {R"("mlp_only_layers":[4])", "mlp_only_layers"},
        {R"("mlp_only_layers":["a"])", "mlp_only_layers"},
        {R"("decoder_sparse_step":0)", "decoder_sparse_step"},
        {R"("norm_topk_prob":"yes")", "norm_topk_prob"},
        {R"("num_experts":1e9)", "num_experts"}};
    for (const auto& [more, key] : wrong) {
        testing::expect_refused(mixture("qwen3_moe", more), key);
    }
    for (const char* more : {R"("swiglu_limit":0)", R"("swiglu_alpha":-1)",
                             R"("quantization_config":{"quant_method":"mxfp4"})"}) {
        EXPECT_THROW((void)read_mixture("gpt_oss", more), InputError) << more;
    }
    EXPECT_THROW((void)read_mixture("olmoe", R"("clip_qkv":-0.5)"), InputError);
}

} // namespace
} // namespace ponderscope
