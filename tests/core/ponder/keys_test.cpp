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
    return with_keys(patched(tiny_llama(), {{"baseline_mode", name}}),
                     R"({"num_hidden_layers": 4, "mhc_num_streams": 3, "attnres_block_size": 4,
        "denseformer_dwa_dilation": 1, "denseformer_dwa_period": 1})");
}

nlohmann::json depth() {
    return patched(with_depth_attention(tiny_llama(), 1), {{"num_hidden_layers", 5}});
}

Key changes(std::string name, nlohmann::json base, nlohmann::json changed) {
    return {std::move(name), std::move(base), std::move(changed)};
}
Key nothing(std::string name, nlohmann::json base, nlohmann::json changed) {
    return {std::move(name), std::move(base), std::move(changed), Effect::nothing};
}
Key refused(std::string name, nlohmann::json base, nlohmann::json changed) {
    return {std::move(name), std::move(base), std::move(changed), Effect::refused};
}
Key same_as(std::string name, nlohmann::json base, nlohmann::json changed, nlohmann::json other) {
    return {std::move(name), std::move(base), std::move(changed), Effect::changes, {}, std::move(other)};
}

const nlohmann::json on = {{"scale_embeds", true}};
const nlohmann::json pondering = {{"ponderinglm", true}, {"pondering_steps", 2}};

// Section 1.
std::vector<Key> backbone_keys() {
    return {
        nothing("vanilla_ignores_scale_embeds", tiny_llama(), on),
        changes("hidden_act", tiny_llama(), {{"hidden_act", "relu"}}),
        changes("rms_norm_eps", tiny_llama(), {{"rms_norm_eps", 0.1}}),
        changes("rope_theta", tiny_llama(), {{"rope_theta", 500.0}}),
        changes("rope_scaling_linear", tiny_llama(),
                {{"rope_scaling", {{"type", "linear"}, {"factor", 3.0}}}}),
        changes("rotary_pct", tiny_gpt_neox(), {{"rotary_pct", 1.0}}),
        changes("rotary_emb_base", tiny_gpt_neox(), {{"rotary_emb_base", 300}}),
        nothing("lone_rope_theta_of_neox", tiny_gpt_neox(), {{"rope_theta", 300.0}}),
        changes("use_parallel_residual", tiny_gpt_neox(), {{"use_parallel_residual", false}}),
        changes("activation_function", tiny_gpt2(), {{"activation_function", "relu"}}),
        changes("scale_attn_weights", tiny_gpt2(), {{"scale_attn_weights", false}}),
        changes("scale_attn_by_inverse_layer_idx", tiny_gpt2(), {{"scale_attn_by_inverse_layer_idx", true}}),
        changes("sliding_window", tiny_mistral(), {{"sliding_window", 2}}),
        changes("max_window_layers", tiny_qwen2(), {{"max_window_layers", 0}}),
        changes("skip_loop_final_norm", patched(tiny_nanbeige(), {{"num_loops", 2}}),
                {{"skip_loop_final_norm", true}}),
        changes("num_loops", tiny_nanbeige(), {{"num_loops", 2}}),
        same_as("loop_loss_weights", tiny_nanbeige(), {{"loop_loss_weights", {0.5, 0.5}}},
                {{"num_loops", 3}}),
    };
}

// Section 3.
std::vector<Key> mixing_keys() {
    return {
        changes("use_depth_attention", depth(), {{"use_depth_attention", false}}),
        changes("depth_attention_stride", depth(), {{"depth_attention_stride", 2}}),
        nothing("depth_attention_stride_0_is_1", depth(), {{"depth_attention_stride", 0}}),
        refused("depth_attention_stride_negative", depth(), {{"depth_attention_stride", -1}}),
        changes("depth_attention_recent_window", patched(depth(), {{"depth_attention_stride", 3}}),
                {{"depth_attention_recent_window", 2}}),
        same_as("depth_recent_window",
                patched(depth(), {{"depth_attention_stride", 3}, {"depth_attention_recent_window", nullptr}}),
                {{"depth_recent_window", 2}}, {{"depth_attention_recent_window", 2}}),
        same_as("depth_softmax_stride", patched(depth(), {{"depth_attention_stride", nullptr}}),
                {{"depth_softmax_stride", 2}}, {{"depth_attention_stride", 2}}),
        nothing("depth_attention_stride_wins", depth(), {{"depth_softmax_stride", 3}}),
        same_as("cross_layer_pattern", patched(depth(), {{"use_depth_attention", nullptr}}),
                {{"cross_layer_pattern", "depth_softmax"}}, {{"use_depth_attention", true}}),
        nothing("cross_layer_mode_alone", patched(depth(), {{"use_depth_attention", nullptr}}),
                {{"cross_layer_mode", "x"}}),
        same_as("depth_recurrent_model_false", depth(), {{"recurrent_model", false}},
                {{"use_depth_attention", false}}),
        changes("depth_scale_embeds", depth(), on),
        changes("depth_scale_embeds_with_ponderlm", patched(depth(), pondering), on),
        refused("depth_beside_a_baseline", baseline("mhc"), {{"use_depth_attention", true}}),
        changes("key_norm", patched(depth(), section("ponderlm")),
                {{"pondering", {{"key_norm", "before_rope"}}}}),
        changes("nanbeige_depth_stride",
                patched(tiny_nanbeige(), {{"enable_depth_attention", true},
                                          {"depth_attention_stride", 1},
                                          {"num_hidden_layers", 4}}),
                {{"depth_attention_stride", 2}}),
        refused("nanbeige_depth_window", patched(tiny_nanbeige(), {{"enable_depth_attention", true}}),
                {{"depth_attention_recent_window", 1}}),
        nothing("nanbeige_static_anchor", patched(tiny_nanbeige(), {{"enable_depth_attention", true}}),
                {{"depth_attention_static_anchor_once", true}}),
    };
}

std::vector<Key> baseline_keys() {
    return {
        changes("mhc_scale_embeds", baseline("mhc"), on),
        changes("attnres_scale_embeds", baseline("attnres"), on),
        changes("denseformer_scale_embeds", baseline("denseformer"), on),
        changes("mhc_scale_embeds_with_ponderlm", patched(baseline("mhc"), pondering), on),
        changes("mhc_sinkhorn_iters", patched(baseline("mhc"), {{"mhc_sinkhorn_iters", 1}}),
                {{"mhc_sinkhorn_iters", 20}}),
        nothing("mhc_init_keys", baseline("mhc"), {{"mhc_pre_init", 3.0}, {"mhc_gating_factor", 0.5}}),
        same_as("residual_baseline_num_streams", patched(baseline("mhc"), {{"mhc_num_streams", nullptr}}),
                {{"residual_baseline_num_streams", 3}}, {{"mhc_num_streams", 3}}),
        same_as("residual_baseline", patched(baseline("attnres"), {{"baseline_mode", nullptr}}),
                {{"residual_baseline", "block-attnres"}}, {{"baseline_mode", "attnres"}}),
        refused("two_baselines", baseline("mhc"), {{"residual_baseline", "attnres"}}),
        changes("attnres_block_size", baseline("attnres"), {{"attnres_block_size", 2}}),
        same_as("densetransformer_dwa_dilation",
                patched(baseline("denseformer"), {{"denseformer_dwa_dilation", nullptr}}),
                {{"densetransformer_dwa_dilation", 2}}, {{"denseformer_dwa_dilation", 2}}),
        same_as("densetransformer_dwa_period",
                patched(baseline("denseformer"), {{"denseformer_dwa_period", nullptr}}),
                {{"densetransformer_dwa_period", 2}}, {{"denseformer_dwa_period", 2}}),
        nothing("densetransformer", baseline("denseformer"), {{"baseline_mode", "densetransformer"}}),
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
                changes("ponderinglm", ponderlm, {{"ponderinglm", false}}),
                changes("pondering_steps", ponderlm, {{"pondering_steps", 3}}),
                changes("ponderlm_scale_embeds", ponderlm, on),
                changes("mutiply_pondering_steps", ponderlm, {{"mutiply_pondering_steps", true}}),
                changes("softmax_temperature", ponderlm, {{"softmax_temperature", 0.3}}),
                nothing("softmax_temperature_of_neox", patched(tiny_gpt_neox(), pondering),
                        {{"softmax_temperature", 0.3}}),
                nothing("top_k_of_the_config", ponderlm, {{"top_k", 5}}),
            });
    add(MethodKind::looped, {
                                nothing("looped_always_scales", recurrent, on),
                                changes("looped_recurrent_model", recurrent, {{"recurrent_model", false}}),
                                changes("num_latent_thoughts", recurrent, {{"num_latent_thoughts", 3}}),
                            });
    add(MethodKind::pause,
        {
            nothing("pause_always_scales_llama", patched(recurrent, {{"pause_token_id", 7}}), on),
            changes("pause_scale_embeds_neox", patched(neox_thoughts, {{"pause_token_id", 7}}), on),
            changes("pause_token_id", patched(recurrent, {{"pause_token_id", 7}}), {{"pause_token_id", 8}}),
            nothing("pause_needs_no_recurrent_model", patched(recurrent, {{"pause_token_id", 7}}),
                    {{"recurrent_model", false}}),
        });
    add(MethodKind::ponderlm_reset,
        {
            changes("ponderlm_reset_scale_embeds", recurrent, on),
            changes("residual_interpolated_embeds", recurrent, {{"residual_interpolated_embeds", true}}),
        });
    add(MethodKind::ponderlm_hidden,
        {
            nothing("ponderlm_hidden_ignores_scale_embeds", neox_thoughts, on),
            changes("ponderlm_hidden_recurrent_model", neox_thoughts, {{"recurrent_model", false}}),
        });
    add(MethodKind::ponderlm2,
        {
            changes("ponderlm2_scale_embeds", ponderlm2_llama(), on),
            changes("ponderlm2_num_jacobi_iterations", ponderlm2_llama(), {{"num_jacobi_iterations", 0}}),
            nothing("ponderlm2_num_jacobi_iterations_absent_is_3",
                    patched(ponderlm2_llama(), {{"num_jacobi_iterations", nullptr}}),
                    {{"num_jacobi_iterations", 3}}),
            changes("ponderlm2_recurrent_model", ponderlm2_llama(), {{"recurrent_model", false}}),
            nothing("ponderlm2_recurrent_model_of_neox", neox_thoughts, {{"recurrent_model", false}}),
            changes("interpolation", ponderlm2_llama(), {{"interpolation", true}}),
            changes("interpolation_scale_embeds", interpolating(), {{"scale_embeds", false}}),
            changes("interpolation_use_topk", patched(interpolating(), {{"interpolation_topk", 3}}),
                    {{"interpolation_use_topk", true}}),
            nothing("interpolation_topk_alone", interpolating(), {{"interpolation_topk", 3}}),
            changes("interpolation_topk", patched(interpolating(), {{"interpolation_use_topk", true}}),
                    {{"interpolation_topk", 3}}),
        });
    return all;
}

// Section 8: our own section, every method.
std::vector<Key> own_keys() {
    std::vector<Key> all;
    for (const std::string method :
         {"looped", "pause", "ponderlm", "ponderlm_reset", "ponderlm_hidden", "ponderlm2", "adaponderlm",
          "ponderlm3", "adaptive_latent_cot", "vanilla"}) {
        const std::string name = "own_" + method;
        nlohmann::json base = patched(tiny_llama(), section(method.c_str()));
        base["pause_token_id"] = 7;
        const auto add = [&](const char* suffix, const nlohmann::json& of, const nlohmann::json& keys,
                             bool fits = true) {
            const nlohmann::json changed{{"pondering", keys}};
            all.push_back(fits ? changes(name + suffix, of, changed) : refused(name + suffix, of, changed));
        };
        const nlohmann::json sqrt_d{{"embed_scale", "sqrt_d"}};
        add("_embed_scale_sqrt_d", base, sqrt_d);
        add("_embed_scale_sqrt_25d", patched(base, {{"pondering", sqrt_d}}), {{"embed_scale", "sqrt_2.5d"}});
        all.push_back(nothing(name + "_scale_embeds_beside_it", base, on));
        add("_unknown_key", base, {{"stop_early", true}}, false);
        add("_unknown_value", base, {{"embed_scale", "sqrt"}}, false);
        const bool mixes = method == "ponderlm" || method == "adaponderlm";
        const bool weighs = method == "ponderlm3" || method == "adaptive_latent_cot";
        const bool halts = weighs || method == "adaponderlm";
        // In two of them further steps have weights of their own.
        if (method != "vanilla" && method != "adaponderlm" && method != "ponderlm3") {
            add("_max_steps", base, {{"max_steps", 1}});
        }
        add("_multiply_start", base, {{"multiply_start", true}}, mixes);
        add("_top_k", base, {{"top_k", 3}}, mixes);
        add("_threshold", base, {{"threshold", 0.5}}, halts);
        nlohmann::json stopping = base;
        if (weighs) {
            stopping["pondering"]["threshold"] = 0.5;
        }
        add("_remainder", stopping, {{"remainder", "drop"}}, weighs);
        add("_key_norm_without_mixing", base, {{"key_norm", "after_rope"}}, false);
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
