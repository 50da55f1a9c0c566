// SPDX-License-Identifier: GPL-3.0-or-later
// Every special feature of a family, switched off, changes logits: that the reference cases would notice its
// loss.
#include "core/base/error.h"
#include "core/checkpoint/safetensors.h"
#include "tests/core/ponder/tiny_models.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

namespace ponderscope {
namespace {

using namespace testing;

constexpr std::int64_t vocabulary = 61;

nlohmann::json tiny(const char* type, const char* keys = "{}") {
    nlohmann::json config = tiny_config(R"({"hidden_size": 24, "num_hidden_layers": 4,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 10, "intermediate_size": 40,
        "max_position_embeddings": 64, "sliding_window": 4, "bos_token_id": 0, "eos_token_id": 0})");
    config["model_type"] = type;
    config.update(nlohmann::json::parse(keys));
    return config;
}

nlohmann::json gemma2() {
    return tiny("gemma2", R"({"attn_logit_softcapping": 1.5, "final_logit_softcapping": 2.0,
        "query_pre_attn_scalar": 3})");
}
nlohmann::json gemma3() {
    return tiny("gemma3_text", R"({"sliding_window_pattern": 2, "rope_theta": 900.0,
        "rope_local_base_freq": 20.0})");
}
nlohmann::json olmo3() {
    return tiny("olmo3", R"({"rope_theta": 500.0, "rope_scaling": {"rope_type": "yarn", "factor": 4.0,
        "original_max_position_embeddings": 8}})");
}
nlohmann::json smollm3() {
    return tiny("smollm3", R"({"use_sliding_window": true, "no_rope_layers": [1, 0, 1, 0],
        "rope_theta": 300.0})");
}
nlohmann::json phi3() {
    return tiny("phi3", R"({"rope_scaling": {"type": "longrope", "short_factor": [1.0, 1.5, 2.0, 3.0],
        "long_factor": [2.0, 4.0, 6.0, 9.0]}, "original_max_position_embeddings": 16,
        "partial_rotary_factor": 0.8})");
}
nlohmann::json nanochat() {
    return tiny("nanochat", R"({"final_logit_softcapping": 2.0, "hidden_act": "relu2"})");
}
nlohmann::json granite() {
    return tiny("granite", R"({"embedding_multiplier": 6.0, "attention_multiplier": 0.7,
        "residual_multiplier": 0.4, "logits_scaling": 0.5})");
}
nlohmann::json dory() {
    return tiny("dory", R"({"n_input_layers": 1, "n_output_layers": 1, "layer_types": ["sliding_attention",
        "full_attention", "sliding_attention", "sliding_attention"],
        "rope_parameters": {"full_attention": {"rope_theta": 900.0},
        "sliding_attention": {"rope_theta": 7.0}}, "ngpt_alpha_init": 0.4, "initializer_range": 0.1})");
}
nlohmann::json hrm_text() {
    return tiny("hrm_text", R"({"num_key_value_heads": 4, "num_layers_per_stack": 2, "L_cycles": 2,
        "rope_theta": 100.0, "embedding_scale": 3.0})");
}

nlohmann::json with(nlohmann::json config, const nlohmann::json& keys) {
    config.update(keys);
    return config;
}
nlohmann::json mixture(const char* type) {
    return tiny(type, R"({"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16,
        "norm_topk_prob": true, "clip_qkv": 0.3, "swiglu_limit": 0.05, "swiglu_alpha": 9.0,
        "use_sliding_window": true})");
}
nlohmann::json sandwich(const char* type) {
    nlohmann::json config = tiny_config(R"({"_class_name": "ParcaeConfig", "n_embd": 128,
        "n_heads": 4, "num_attention_heads": 4, "intermediate_size": 40, "n_layers_in_prelude": 1,
        "n_layers_in_recurrent_block": 1, "n_layers_in_coda": 1, "mean_recurrence": 3, "block_size": 64,
        "init_values": {"std": 0.02, "embed_scale": 3.0}, "prelude_norm": true, "qk_norm": true})");
    config["model_type"] = type;
    return config;
}

struct Feature {
    const char* name;
    nlohmann::json config;
    std::function<void(ModelConfig&)> off;
    std::int64_t tokens = 12;
};

void without_windows(ModelConfig& c) {
    std::fill(c.sliding_windows.begin(), c.sliding_windows.end(), 0);
}
void without_query_norms(ModelConfig& c) {
    c.qk_norm = c.depth.use_qk_norm = false;
}
void without_steps(ModelConfig& c) {
    c.ponder.max_steps = 0;
}
void whole_heads_rotate(ModelConfig& c) {
    c.rope.rotary_dims = c.head_dim;
}
void one_rotation(ModelConfig& c) {
    c.layer_rope.clear();
}
void plain_rotation(ModelConfig& c) {
    c.rope.kind = RopeConfig::Kind::standard;
}

std::vector<Feature> features() {
    return {
        {"gpt2_scores_by_layer",
         with(tiny_gpt2(), {{"scale_attn_weights", false}, {"scale_attn_by_inverse_layer_idx", true}}),
         [](auto& c) { c.scale_attn_by_inverse_layer_idx = false; }},
        {"gpt2_unscaled_scores", with(tiny_gpt2(), {{"scale_attn_weights", false}}),
         [](auto& c) { c.scale_attn_weights = true; }},
        {"gpt_neox_parallel", tiny_gpt_neox(), [](auto& c) { c.parallel_residual = false; }},
        {"gpt_neox_partial_rotation", tiny_gpt_neox(), whole_heads_rotate},
        {"phi_partial_rotation", tiny_phi(), whole_heads_rotate},
        {"opt_norms_after_sums", tiny_opt(), [](auto& c) { c.pre_norm = c.remove_final_norm = true; }},
        {"llama_scaled_rotation",
         with(tiny_llama(), {{"rope_scaling", {{"type", "linear"}, {"factor", 8.0}}}}), plain_rotation},
        {"mistral_windows", tiny_mistral(), without_windows},
        {"ministral_windows",
         tiny("ministral", R"({"layer_types": ["sliding_attention", "full_attention", "full_attention",
            "full_attention"]})"),
         without_windows},
        {"qwen2_windows", tiny_qwen2(), without_windows},
        {"qwen3_windows", tiny_qwen3(), without_windows},
        {"qwen3_query_norms", tiny_qwen3(), without_query_norms},
        {"nanbeige_query_norms", tiny_nanbeige(), without_query_norms},
        {"nanbeige_loops", with(tiny_nanbeige(), {{"num_loops", 3}}), without_steps},
        {"ouro_loops", tiny("ouro", R"({"total_ut_steps": 3})"), without_steps},
        {"olmo2_query_norms", tiny("olmo2"), without_query_norms},
        {"olmoe_query_norms", mixture("olmoe"), without_query_norms},
        {"olmoe_clip", mixture("olmoe"), [](auto& c) { c.scales.qkv_limit.reset(); }},
        {"olmoe_renormed", mixture("olmoe"), [](auto& c) { c.experts.renormed = false; }},
        {"olmoe_chosen", mixture("olmoe"), [](auto& c) { c.experts.chosen = 3; }},
        {"qwen3_moe_query_norms", mixture("qwen3_moe"), without_query_norms},
        {"qwen3_moe_renormed", mixture("qwen3_moe"), [](auto& c) { c.experts.renormed = false; }},
        {"qwen3_moe_windows", mixture("qwen3_moe"), without_windows},
        {"gpt_oss_limit", mixture("gpt_oss"), [](auto& c) { c.experts.limit = 1e9; }},
        {"gpt_oss_alpha", mixture("gpt_oss"), [](auto& c) { c.experts.alpha = 1.702; }},
        {"gpt_oss_windows", mixture("gpt_oss"), without_windows},
        {"gpt_oss_yarn", mixture("gpt_oss"), plain_rotation},
        {"huginn_steps", sandwich("huginn_raven"), without_steps},
        {"huginn_neighbours_rotate", sandwich("huginn_raven"), [](auto& c) { c.rope.pairs = false; }},
        {"huginn_norm_before_coda", sandwich("huginn_raven"),
         [](auto& c) { c.sandwich.norm_before_coda = false; }},
        {"huginn_embedding", sandwich("huginn_raven"), [](auto& c) { c.scales.embedding = 1; }},
        {"parcae_steps", sandwich("parcae"), without_steps},
        {"parcae_prelude_norm", sandwich("parcae"), [](auto& c) { c.sandwich.prelude_norm = false; }},
        {"parcae_query_norms", sandwich("parcae"), [](auto& c) { c.qk_norm = false; }},
        {"gemma2_score_softcap", gemma2(), [](auto& c) { c.scales.attention_softcap = 0; }},
        {"gemma2_logit_softcap", gemma2(), [](auto& c) { c.scales.logit_softcap.reset(); }},
        {"gemma2_score_scale", gemma2(), [](auto& c) { c.scales.attention.reset(); }},
        {"gemma2_embedding_scale", gemma2(), [](auto& c) { c.scales.embedding = 1; }},
        {"gemma2_one_plus", gemma2(), [](auto& c) { c.norm_weight = NormWeight::as_stored; }},
        {"gemma2_windows", gemma2(), without_windows},
        {"gemma3_rotation_by_kind", gemma3(), one_rotation},
        {"gemma3_windows", gemma3(), without_windows},
        {"gemma3_query_norms", gemma3(), without_query_norms},
        {"gemma3_with_images_windows",
         {{"model_type", "gemma3"}, {"text_config", gemma3()}},
         without_windows},
        {"olmo3_yarn", olmo3(), plain_rotation},
        {"olmo3_yarn_on_full_layers_only", olmo3(), one_rotation},
        {"smollm3_layers_without_rotation", smollm3(), one_rotation},
        {"smollm3_windows", smollm3(), without_windows},
        {"phi3_short_factors", phi3(), plain_rotation},
        {"phi3_long_factors", phi3(), [](auto& c) { c.rope.original_max_positions = 64; }, 24},
        {"phi3_attention_factor", phi3(), [](auto& c) { c.rope.attention_factor = 1.0; }},
        {"phi3_windows", phi3(), without_windows},
        {"nanochat_softcap", nanochat(), [](auto& c) { c.scales.logit_softcap.reset(); }},
        {"nanochat_reversed_rotation", nanochat(), [](auto& c) { c.rope.reversed = false; }},
        {"granite_embedding", granite(), [](auto& c) { c.scales.embedding = 1; }},
        {"granite_scores", granite(), [](auto& c) { c.scales.attention.reset(); }},
        {"granite_residual", granite(), [](auto& c) { c.scales.residual = 1; }},
        {"granite_logits", granite(), [](auto& c) { c.scales.logits = 1; }},
        {"dory_loops", dory(), [](auto& c) { c.ponder.max_steps = 0; }},
        {"dory_rate", dory(), [](auto& c) { c.released.update_rate = 1; }},
        {"dory_rotation_by_kind", dory(), one_rotation},
        {"dory_windows", dory(), without_windows},
        {"hrm_text_cycles", hrm_text(), [](auto& c) { c.ponder.max_steps = 0; }},
        {"hrm_text_low_passes", hrm_text(),
         [](auto& c) {
             c.released.low_passes = 1;
             c.layers = 4;
             c.sliding_windows.resize(4);
         }},
        {"hrm_text_embedding", hrm_text(), [](auto& c) { c.scales.embedding = 1; }},
    };
}

class FeatureOff : public ::testing::TestWithParam<Feature> {};

TEST_P(FeatureOff, ChangesLogits) {
    const TemporaryFolder folder;
    Checkpoint checkpoint = make_checkpoint(folder / "model", GetParam().config);
    const std::vector<std::int32_t> ids = random_ids(GetParam().tokens, vocabulary, 3);
    const auto logits = [&] { return load_engine(checkpoint).inspect_batch({ids}).at("logits").floats; };
    const std::vector<float> with = logits();
    GetParam().off(checkpoint.config);
    const std::vector<float> without = logits();
    ASSERT_EQ(with.size(), without.size());
    float moved = 0;
    for (std::size_t i = 0; i < with.size(); ++i) {
        moved = std::max(moved, std::abs(with[i] - without[i]));
    }
    EXPECT_GT(moved, 1e-2F);
}

INSTANTIATE_TEST_SUITE_P(All, FeatureOff, ::testing::ValuesIn(features()),
                         [](const auto& one) { return std::string(one.param.name); });

TEST(Families, EveryArchitectureHasAFeatureThatCanBeSwitchedOff) {
    std::set<std::string> types;
    for (const Feature& feature : features()) {
        types.insert(feature.config.at("model_type").get<std::string>());
    }
#define PONDERSCOPE_ARCHITECTURE(name) EXPECT_TRUE(types.contains(#name)) << #name;
#include "core/checkpoint/architectures.def"
#undef PONDERSCOPE_ARCHITECTURE
}

TEST(Families, TheFirstLayersRunAlone) {
    const TemporaryFolder folder;
    Checkpoint checkpoint = make_checkpoint(folder / "model", gemma3());
    keep_first_layers(checkpoint.config, 2);
    const Engine engine = load_engine(checkpoint);
    EXPECT_EQ(engine.inspect_batch({random_ids(6, vocabulary, 3)}).at("logits").shape[1], 6);
    EXPECT_EQ(std::ranges::count(engine.notices(), NoticeId::config_layers, &Notice::id), 1);
}

/// Other models in the format have further tensors: what they would add is not left out silently.
TEST(Families, AStrictArchitectureRefusesFurtherTensors) {
    const TemporaryFolder folder;
    const Checkpoint checkpoint = make_checkpoint(folder / "model", nanochat());
    std::vector<TensorView> tensors;
    std::vector<float> values(vocabulary * 24, 0.0F);
    for (const std::string& name : checkpoint.weights.names()) {
        const TensorView& view = *checkpoint.weights.find(name);
        tensors.push_back({name, view.dtype, view.shape, view.bytes});
    }
    tensors.push_back(
        {"model.value_embeds.0.weight", DType::f32, {vocabulary, 24}, std::as_bytes(std::span(values))});
    std::filesystem::create_directories(folder / "more");
    std::filesystem::copy_file(folder / "model" / "config.json", folder / "more" / "config.json");
    write_safetensors(folder / "more" / "model.safetensors", tensors, {});
    EXPECT_THROW(load_engine(Checkpoint::open(folder / "more")), InputError);
}

/// Beyond the original length every token turns by other angles: with and without a cache alike.
TEST(Families, LongropeContinuesAsTheFullForwardDoes) {
    const TemporaryFolder folder;
    Engine engine = load_engine(make_checkpoint(folder / "model", phi3()));
    for (const std::int64_t prompt : {4, 14, 20}) { // within, across and beyond
        const std::vector<std::vector<std::int32_t>> prompts{random_ids(prompt, vocabulary, 5)};
        GenerateOptions options{.max_new_tokens = 6, .use_cache = true};
        const auto cached = engine.generate(prompts, options);
        options.use_cache = false;
        EXPECT_EQ(cached, engine.generate(prompts, options)) << prompt;
    }
}

} // namespace
} // namespace ponderscope
