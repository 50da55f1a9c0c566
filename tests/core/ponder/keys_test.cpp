// SPDX-License-Identifier: GPL-3.0-or-later
// Every key that methods.md names, one by one: it changes the result as it must, or changes nothing, or is
// refused.
#include "core/base/error.h"
#include "tests/core/ponder/every_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>

namespace ponderscope {
namespace {

using namespace testing;

enum class Effect : std::uint8_t {
    changes, ///< the logits
    nothing,
    refused,
};

struct Key {
    std::string name;
    nlohmann::json base;
    nlohmann::json changed; ///< a merge patch: null removes
    Effect effect = Effect::changes;
    std::optional<MethodKind> method = std::nullopt;
    /// Another config that must give the same as the changed one, a merge patch of the base; null: none.
    nlohmann::json same_as = nullptr;
};

nlohmann::json patched(nlohmann::json config, const nlohmann::json& patch) {
    config.merge_patch(patch);
    return config;
}

nlohmann::json section(const char* method, nlohmann::json rest = nlohmann::json::object()) {
    rest["method"] = method;
    if (!rest.contains("max_steps")) {
        rest["max_steps"] = 2;
    }
    return {{"pondering", rest}};
}

nlohmann::json ponderlm2_llama() {
    return patched(tiny_llama(),
                   {{"recurrent_model", true}, {"num_latent_thoughts", 2}, {"num_jacobi_iterations", 2}});
}

nlohmann::json interpolating() {
    return patched(ponderlm2_llama(), {{"interpolation", true}, {"scale_embeds", true}});
}

nlohmann::json baseline(const char* name) {
    return patched(tiny_llama(), {{"baseline_mode", name},
                                  {"num_hidden_layers", 4},
                                  {"mhc_num_streams", 3},
                                  {"attnres_block_size", 4},
                                  {"denseformer_dwa_dilation", 1},
                                  {"denseformer_dwa_period", 1}});
}

nlohmann::json depth() {
    return patched(with_depth_attention(tiny_llama(), 1), {{"num_hidden_layers", 5}});
}

Key same_as(std::string name, nlohmann::json base, nlohmann::json changed, nlohmann::json other) {
    return {std::move(name), std::move(base), std::move(changed), Effect::changes, {}, std::move(other)};
}

const nlohmann::json on = {{"scale_embeds", true}};
const nlohmann::json pondering = {{"ponderinglm", true}, {"pondering_steps", 2}};

// Section 1.
std::vector<Key> backbone_keys() {
    return {
        {"vanilla_ignores_scale_embeds", tiny_llama(), on, Effect::nothing},
        {"hidden_act", tiny_llama(), {{"hidden_act", "relu"}}},
        {"rms_norm_eps", tiny_llama(), {{"rms_norm_eps", 0.1}}},
        {"rope_theta", tiny_llama(), {{"rope_theta", 500.0}}},
        {"rope_scaling_linear", tiny_llama(), {{"rope_scaling", {{"type", "linear"}, {"factor", 3.0}}}}},
        {"rotary_pct", tiny_gpt_neox(), {{"rotary_pct", 1.0}}},
        {"rotary_emb_base", tiny_gpt_neox(), {{"rotary_emb_base", 300}}},
        {"lone_rope_theta_of_neox", tiny_gpt_neox(), {{"rope_theta", 300.0}}, Effect::nothing},
        {"use_parallel_residual", tiny_gpt_neox(), {{"use_parallel_residual", false}}},
        {"activation_function", tiny_gpt2(), {{"activation_function", "relu"}}},
        {"scale_attn_weights", tiny_gpt2(), {{"scale_attn_weights", false}}},
        {"scale_attn_by_inverse_layer_idx", tiny_gpt2(), {{"scale_attn_by_inverse_layer_idx", true}}},
        {"sliding_window", tiny_mistral(), {{"sliding_window", 2}}},
        {"max_window_layers", tiny_qwen2(), {{"max_window_layers", 0}}},
        {"skip_loop_final_norm",
         patched(tiny_nanbeige(), {{"num_loops", 2}}),
         {{"skip_loop_final_norm", true}}},
        {"num_loops", tiny_nanbeige(), {{"num_loops", 2}}},
        same_as("loop_loss_weights", tiny_nanbeige(), {{"loop_loss_weights", {0.5, 0.5}}},
                {{"num_loops", 3}}),
    };
}

// Section 3.
std::vector<Key> mixing_keys() {
    return {
        {"use_depth_attention", depth(), {{"use_depth_attention", false}}},
        {"depth_attention_stride", depth(), {{"depth_attention_stride", 2}}},
        {"depth_attention_stride_0_is_1", depth(), {{"depth_attention_stride", 0}}, Effect::nothing},
        {"depth_attention_stride_negative", depth(), {{"depth_attention_stride", -1}}, Effect::refused},
        {"depth_attention_recent_window",
         patched(depth(), {{"depth_attention_stride", 3}}),
         {{"depth_attention_recent_window", 2}}},
        same_as("depth_recent_window",
                patched(depth(), {{"depth_attention_stride", 3}, {"depth_attention_recent_window", nullptr}}),
                {{"depth_recent_window", 2}}, {{"depth_attention_recent_window", 2}}),
        same_as("depth_softmax_stride", patched(depth(), {{"depth_attention_stride", nullptr}}),
                {{"depth_softmax_stride", 2}}, {{"depth_attention_stride", 2}}),
        {"depth_attention_stride_wins", depth(), {{"depth_softmax_stride", 3}}, Effect::nothing},
        same_as("cross_layer_pattern", patched(depth(), {{"use_depth_attention", nullptr}}),
                {{"cross_layer_pattern", "depth_softmax"}}, {{"use_depth_attention", true}}),
        {"cross_layer_mode_alone",
         patched(depth(), {{"use_depth_attention", nullptr}}),
         {{"cross_layer_mode", "x"}},
         Effect::nothing},
        same_as("depth_recurrent_model_false", depth(), {{"recurrent_model", false}},
                {{"use_depth_attention", false}}),
        {"depth_scale_embeds", depth(), on},
        {"depth_scale_embeds_with_ponderlm", patched(depth(), pondering), on},
        {"depth_beside_a_baseline", baseline("mhc"), {{"use_depth_attention", true}}, Effect::refused},
        {"key_norm", patched(depth(), section("ponderlm")), {{"pondering", {{"key_norm", "before_rope"}}}}},
        {"nanbeige_depth_stride",
         patched(tiny_nanbeige(),
                 {{"enable_depth_attention", true}, {"depth_attention_stride", 1}, {"num_hidden_layers", 4}}),
         {{"depth_attention_stride", 2}}},
        {"nanbeige_depth_window",
         patched(tiny_nanbeige(), {{"enable_depth_attention", true}}),
         {{"depth_attention_recent_window", 1}},
         Effect::refused},
        {"nanbeige_static_anchor",
         patched(tiny_nanbeige(), {{"enable_depth_attention", true}}),
         {{"depth_attention_static_anchor_once", true}},
         Effect::nothing},
    };
}

std::vector<Key> baseline_keys() {
    return {
        {"mhc_scale_embeds", baseline("mhc"), on},
        {"attnres_scale_embeds", baseline("attnres"), on},
        {"denseformer_scale_embeds", baseline("denseformer"), on},
        {"mhc_scale_embeds_with_ponderlm", patched(baseline("mhc"), pondering), on},
        {"mhc_sinkhorn_iters",
         patched(baseline("mhc"), {{"mhc_sinkhorn_iters", 1}}),
         {{"mhc_sinkhorn_iters", 20}}},
        {"mhc_init_keys",
         baseline("mhc"),
         {{"mhc_pre_init", 3.0}, {"mhc_gating_factor", 0.5}},
         Effect::nothing},
        same_as("residual_baseline_num_streams", patched(baseline("mhc"), {{"mhc_num_streams", nullptr}}),
                {{"residual_baseline_num_streams", 3}}, {{"mhc_num_streams", 3}}),
        same_as("residual_baseline", patched(baseline("attnres"), {{"baseline_mode", nullptr}}),
                {{"residual_baseline", "block-attnres"}}, {{"baseline_mode", "attnres"}}),
        {"two_baselines", baseline("mhc"), {{"residual_baseline", "attnres"}}, Effect::refused},
        {"attnres_block_size", baseline("attnres"), {{"attnres_block_size", 2}}},
        same_as("densetransformer_dwa_dilation",
                patched(baseline("denseformer"), {{"denseformer_dwa_dilation", nullptr}}),
                {{"densetransformer_dwa_dilation", 2}}, {{"denseformer_dwa_dilation", 2}}),
        same_as("densetransformer_dwa_period",
                patched(baseline("denseformer"), {{"denseformer_dwa_period", nullptr}}),
                {{"densetransformer_dwa_period", 2}}, {{"denseformer_dwa_period", 2}}),
        {"densetransformer",
         baseline("denseformer"),
         {{"baseline_mode", "densetransformer"}},
         Effect::nothing},
    };
}

// Section 4.
std::vector<Key> method_keys() {
    const nlohmann::json ponderlm = patched(tiny_llama(), pondering);
    const nlohmann::json recurrent =
        patched(tiny_llama(), {{"recurrent_model", true}, {"num_latent_thoughts", 2}});
    const nlohmann::json neox_thoughts =
        patched(tiny_gpt_neox(), {{"recurrent_model", true}, {"num_latent_thoughts", 2}});
    std::vector<Key> all;
    const auto add = [&all](std::optional<MethodKind> method, std::vector<Key> keys) {
        for (Key& key : keys) {
            key.method = method;
            all.push_back(std::move(key));
        }
    };
    add({}, {
                {"ponderinglm", ponderlm, {{"ponderinglm", false}}},
                {"pondering_steps", ponderlm, {{"pondering_steps", 3}}},
                {"ponderlm_scale_embeds", ponderlm, on},
                {"mutiply_pondering_steps", ponderlm, {{"mutiply_pondering_steps", true}}},
                {"softmax_temperature", ponderlm, {{"softmax_temperature", 0.3}}},
                {"softmax_temperature_of_neox",
                 patched(tiny_gpt_neox(), pondering),
                 {{"softmax_temperature", 0.3}},
                 Effect::nothing},
                {"top_k_of_the_config", ponderlm, {{"top_k", 5}}, Effect::nothing},
            });
    add(MethodKind::looped, {
                                {"looped_always_scales", recurrent, on, Effect::nothing},
                                {"looped_recurrent_model", recurrent, {{"recurrent_model", false}}},
                                {"num_latent_thoughts", recurrent, {{"num_latent_thoughts", 3}}},
                            });
    add(MethodKind::pause,
        {
            {"pause_always_scales_llama", patched(recurrent, {{"pause_token_id", 7}}), on, Effect::nothing},
            {"pause_scale_embeds_neox", patched(neox_thoughts, {{"pause_token_id", 7}}), on},
            {"pause_token_id", patched(recurrent, {{"pause_token_id", 7}}), {{"pause_token_id", 8}}},
            {"pause_needs_no_recurrent_model",
             patched(recurrent, {{"pause_token_id", 7}}),
             {{"recurrent_model", false}},
             Effect::nothing},
        });
    add(MethodKind::ponderlm_reset,
        {
            {"ponderlm_reset_scale_embeds", recurrent, on},
            {"residual_interpolated_embeds", recurrent, {{"residual_interpolated_embeds", true}}},
        });
    add(MethodKind::ponderlm_hidden,
        {
            {"ponderlm_hidden_ignores_scale_embeds", neox_thoughts, on, Effect::nothing},
            {"ponderlm_hidden_recurrent_model", neox_thoughts, {{"recurrent_model", false}}},
        });
    add(MethodKind::ponderlm2,
        {
            {"ponderlm2_scale_embeds", ponderlm2_llama(), on},
            {"ponderlm2_num_jacobi_iterations", ponderlm2_llama(), {{"num_jacobi_iterations", 0}}},
            {"ponderlm2_num_jacobi_iterations_absent_is_3",
             patched(ponderlm2_llama(), {{"num_jacobi_iterations", nullptr}}),
             {{"num_jacobi_iterations", 3}},
             Effect::nothing},
            {"ponderlm2_recurrent_model", ponderlm2_llama(), {{"recurrent_model", false}}},
            {"ponderlm2_recurrent_model_of_neox",
             neox_thoughts,
             {{"recurrent_model", false}},
             Effect::nothing},
            {"interpolation", ponderlm2_llama(), {{"interpolation", true}}},
            {"interpolation_scale_embeds", interpolating(), {{"scale_embeds", false}}},
            {"interpolation_use_topk",
             patched(interpolating(), {{"interpolation_topk", 3}}),
             {{"interpolation_use_topk", true}}},
            {"interpolation_topk_alone", interpolating(), {{"interpolation_topk", 3}}, Effect::nothing},
            {"interpolation_topk",
             patched(interpolating(), {{"interpolation_use_topk", true}}),
             {{"interpolation_topk", 3}}},
        });
    return all;
}

// Section 8: our own section, every method.
std::vector<Key> own_keys() {
    std::vector<Key> all;
    for (const char* method : {"looped", "pause", "ponderlm", "ponderlm_reset", "ponderlm_hidden",
                               "ponderlm2", "adaponderlm", "ponderlm3", "adaptive_latent_cot", "vanilla"}) {
        const std::string name = std::string("own_") + method;
        nlohmann::json base = patched(tiny_llama(), section(method));
        base["pause_token_id"] = 7;
        all.push_back({name + "_embed_scale_sqrt_d", base, {{"pondering", {{"embed_scale", "sqrt_d"}}}}});
        all.push_back({name + "_embed_scale_sqrt_25d",
                       patched(base, {{"pondering", {{"embed_scale", "sqrt_d"}}}}),
                       {{"pondering", {{"embed_scale", "sqrt_2.5d"}}}}});
        all.push_back({name + "_scale_embeds_beside_it", base, on, Effect::nothing});
        all.push_back(
            {name + "_unknown_key", base, {{"pondering", {{"stop_early", true}}}}, Effect::refused});
        all.push_back(
            {name + "_unknown_value", base, {{"pondering", {{"embed_scale", "sqrt"}}}}, Effect::refused});
        if (std::string(method) != "vanilla" && std::string(method) != "adaponderlm" &&
            std::string(method) != "ponderlm3") { // there further steps have weights of their own
            all.push_back({name + "_max_steps", base, {{"pondering", {{"max_steps", 1}}}}});
        }
        const bool mixes = std::string(method) == "ponderlm" || std::string(method) == "adaponderlm";
        all.push_back({name + "_multiply_start",
                       base,
                       {{"pondering", {{"multiply_start", true}}}},
                       mixes ? Effect::changes : Effect::refused});
        all.push_back({name + "_top_k",
                       base,
                       {{"pondering", {{"top_k", 3}}}},
                       mixes ? Effect::changes : Effect::refused});
        const bool halts = std::string(method) == "adaponderlm" || std::string(method) == "ponderlm3" ||
                           std::string(method) == "adaptive_latent_cot";
        all.push_back({name + "_threshold",
                       base,
                       {{"pondering", {{"threshold", 0.5}}}},
                       halts ? Effect::changes : Effect::refused});
        const bool weighs = halts && std::string(method) != "adaponderlm";
        nlohmann::json stopping = base;
        if (weighs) {
            stopping["pondering"]["threshold"] = 0.5;
        }
        all.push_back({name + "_remainder",
                       stopping,
                       {{"pondering", {{"remainder", "drop"}}}},
                       weighs ? Effect::changes : Effect::refused});
        all.push_back({name + "_key_norm_without_mixing",
                       base,
                       {{"pondering", {{"key_norm", "after_rope"}}}},
                       Effect::refused});
    }
    return all;
}

const std::vector<Key>& keys() {
    static const std::vector<Key> all = [] {
        std::vector<Key> result;
        for (std::vector<Key> (*part)() :
             {backbone_keys, mixing_keys, baseline_keys, method_keys, own_keys}) {
            for (Key& key : part()) {
                result.push_back(std::move(key));
            }
        }
        return result;
    }();
    return all;
}

class ConfigKey : public ::testing::TestWithParam<std::size_t> {
protected:
    static constexpr std::int64_t tokens = 20;

    /// Logits of the config over the weights of \p weights, where they are for the same tensors.
    static std::vector<float> logits(const nlohmann::json& config, const std::optional<MethodKind>& method,
                                     const std::filesystem::path& folder) {
        std::filesystem::create_directories(folder);
        const Engine engine = load_engine(make_checkpoint(folder, config, 3, method));
        return engine.inspect_batch({random_ids(tokens, vocabulary, 71)}).at("logits").floats;
    }

    static double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
        EXPECT_EQ(a.size(), b.size());
        double largest = 0;
        for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
            largest = std::max(largest, std::abs(static_cast<double>(a[i]) - b[i]));
        }
        return largest;
    }
};

TEST_P(ConfigKey, ChangesTheResultAsItMust) {
    const Key& key = keys().at(GetParam());
    const TemporaryFolder folder;
    const std::vector<float> before = logits(key.base, key.method, folder / "base");
    const nlohmann::json config = patched(key.base, key.changed);
    if (key.effect == Effect::refused) {
        EXPECT_THROW((void)logits(config, key.method, folder / "changed"), InputError);
        return;
    }
    const std::vector<float> after = logits(config, key.method, folder / "changed");
    const double difference = largest_difference(before, after);
    if (key.effect == Effect::changes) {
        EXPECT_GT(difference, 1e-3) << "the key is read and does nothing";
    } else {
        EXPECT_EQ(difference, 0.0);
    }
    if (!key.same_as.is_null()) {
        EXPECT_EQ(
            largest_difference(after, logits(patched(key.base, key.same_as), key.method, folder / "same")),
            0.0)
            << "another name of the same";
    }
}

INSTANTIATE_TEST_SUITE_P(Methods, ConfigKey, ::testing::Range<std::size_t>(0, keys().size()),
                         [](const auto& one) { return keys().at(one.param).name; });

/// x_0 of a model with depth mixing is scaled by sqrt(d), whatever the method says of itself.
TEST(ScaleEmbeds, MultipliesTheEmbeddingOfDepthMixingBySqrtD) {
    for (const nlohmann::json& config :
         {depth(), baseline("mhc"), baseline("attnres"), baseline("denseformer")}) {
        const TemporaryFolder of_plain;
        const TemporaryFolder of_scaled;
        const Engine plain = load_engine(make_checkpoint(of_plain.path(), config));
        const Engine scaled =
            load_engine(make_checkpoint(of_scaled.path(), patched(config, {{"scale_embeds", true}})));
        const auto ids = random_ids(7, vocabulary, 72);
        const std::vector<float> before = plain.inspect_batch({ids}).at("embeds.step0").floats;
        const std::vector<float> after = scaled.inspect_batch({ids}).at("embeds.step0").floats;
        const double root = std::sqrt(static_cast<double>(plain.config().embed_dim));
        // fp32's own digits; beyond them what half precision rounds of a number as large.
        const double rounding = half_precision() ? within(0) / 64 : 0;
        for (std::size_t i = 0; i < before.size(); ++i) {
            EXPECT_NEAR(after[i], root * before[i], 1e-5 * root + rounding * std::abs(after[i]));
        }
    }
}

} // namespace
} // namespace ponderscope
