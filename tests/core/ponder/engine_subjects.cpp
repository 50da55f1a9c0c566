// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/core/ponder/engine_subjects.h"

#include "tests/core/ponder/tiny_models.h"

#include <stdexcept>
#include <utility>

namespace ponderscope::testing {

nlohmann::json own_section(nlohmann::json config, nlohmann::json section) {
    config["pondering"] = std::move(section);
    return config;
}

nlohmann::json own_section(nlohmann::json config, const char* method, double threshold) {
    config["pondering"] = {{"method", method}, {"max_steps", 3}, {"threshold", threshold}};
    return config;
}

namespace {

nlohmann::json qwen3_of_five_layers() {
    return with_keys(tiny_qwen3(), R"({"layer_types": ["sliding_attention", "full_attention",
        "sliding_attention", "full_attention", "full_attention"]})");
}

nlohmann::json with_baseline(const char* name) {
    nlohmann::json config = tiny_llama();
    config["baseline_mode"] = name;
    return with_keys(config, R"({"use_qk_norm": true, "num_hidden_layers": 4, "mhc_num_streams": 3,
        "mhc_sinkhorn_iters": 5, "attnres_block_size": 4, "denseformer_dwa_dilation": 2,
        "denseformer_dwa_period": 2})");
}

nlohmann::json paused(const nlohmann::json& config) {
    nlohmann::json result = own_section(config, {{"method", "pause"}, {"max_steps", 2}});
    result["pause_token_id"] = 7;
    return result;
}

} // namespace

std::vector<Subject> subjects() {
    std::vector<Subject> all{{"gpt_neox", tiny_gpt_neox()},
                             {"llama", tiny_llama()},
                             {"gpt2", tiny_gpt2()},
                             {"ponderlm_gpt_neox", with_ponderlm(tiny_gpt_neox(), 3)},
                             {"ponderlm_llama", with_ponderlm(tiny_llama(), 2)}};
    const std::pair<const char*, nlohmann::json> backbones[] = {
        {"gpt_neox", tiny_gpt_neox()}, {"llama", tiny_llama()}, {"gpt2", tiny_gpt2()}};
    // Thresholds near the middle of what random gates say: some tokens stop at every step.
    const std::pair<const char*, nlohmann::json> sections[] = {
        {"ponderlm_top_k",
         {{"method", "ponderlm"}, {"max_steps", 2}, {"top_k", 5}, {"embed_scale", "sqrt_d"}}},
        {"looped", {{"method", "looped"}, {"max_steps", 2}, {"embed_scale", "sqrt_2.5d"}}},
        {"pause", {{"method", "pause"}, {"max_steps", 2}, {"embed_scale", "sqrt_d"}}},
        {"ponderlm_reset", {{"method", "ponderlm_reset"}, {"max_steps", 2}}},
        {"ponderlm_hidden", {{"method", "ponderlm_hidden"}, {"max_steps", 2}}},
        {"ponderlm2", {{"method", "ponderlm2"}, {"max_steps", 2}, {"embed_scale", "sqrt_2.5d"}}},
        {"adaponderlm",
         {{"method", "adaponderlm"}, {"max_steps", 3}, {"threshold", 0.5}, {"embed_scale", "sqrt_d"}}},
        {"ponderlm3", {{"method", "ponderlm3"}, {"max_steps", 3}, {"threshold", 0.35}}},
        {"ponderlm3_drop",
         {{"method", "ponderlm3"}, {"max_steps", 2}, {"threshold", 0.3}, {"remainder", "drop"}}},
        {"adaptive_latent_cot", {{"method", "adaptive_latent_cot"}, {"max_steps", 3}, {"threshold", 0.25}}}};
    for (const auto& [method, section] : sections) {
        for (const auto& [backbone, config] : backbones) {
            nlohmann::json one = own_section(config, section);
            one["pause_token_id"] = 7;
            all.push_back({std::string(method) + "_on_" + backbone, one});
        }
    }
    const nlohmann::json refreshed = with_keys(tiny_llama(), R"({"recurrent_model": true,
        "num_latent_thoughts": 2, "num_jacobi_iterations": 3, "interpolation": true,
        "interpolation_use_topk": true, "interpolation_topk": 9})");
    all.push_back({"ponderlm2_refreshed", refreshed, MethodKind::ponderlm2, true});
    const std::vector<Subject> others{
        // The other backbones, each with another way to ponder: a state may be fed back into all of them.
        {"mistral", tiny_mistral()},
        {"qwen2", tiny_qwen2()},
        {"qwen3", tiny_qwen3()},
        {"qwen3_moe", tiny_qwen3_moe()},
        {"looped_on_qwen3_moe", own_section(tiny_qwen3_moe(), {{"method", "looped"}, {"max_steps", 2}})},
        {"ponderlm3_on_qwen3_moe", own_section(tiny_qwen3_moe(), "ponderlm3", 0.35)},
        {"phi", tiny_phi()},
        {"opt", tiny_opt()},
        {"nanbeige", tiny_nanbeige()},
        {"adaponderlm_mistral", own_section(tiny_mistral(), "adaponderlm", 0.4)},
        {"adaptive_latent_cot_qwen3", own_section(tiny_qwen3(), "adaptive_latent_cot", 0.25)},
        {"adaponderlm_phi", own_section(tiny_phi(), "adaponderlm", 0.5)},
        {"ponderlm_opt", own_section(tiny_opt(), {{"method", "ponderlm"}, {"max_steps", 2}})},
        // Depth mixing, alone and below each way to ponder.
        {"depth_attention", with_depth_attention(tiny_llama(), 2, 2)},
        {"depth_attention_nanbeige", with_depth_attention(tiny_nanbeige(), 1)},
        {"depth_attention_qwen3", with_depth_attention(qwen3_of_five_layers(), 3)},
        {"depth_attention_ponderlm", with_ponderlm(with_depth_attention(tiny_llama(), 1), 2)},
        {"depth_attention_looped",
         own_section(with_depth_attention(tiny_llama(), 2), {{"method", "looped"}, {"max_steps", 2}})},
        {"depth_attention_adaptive_latent_cot",
         own_section(with_depth_attention(tiny_llama(), 4, 1), "adaptive_latent_cot", 0.25)},
        {"mhc", with_baseline("mhc")},
        {"attnres", with_baseline("attnres")},
        {"denseformer", with_baseline("denseformer")},
        {"mhc_adaponderlm", own_section(with_baseline("mhc"), "adaponderlm", 0.5)},
        {"attnres_ponderlm", with_ponderlm(with_baseline("attnres"), 2)},
        {"depth_attention_ponderlm2",
         own_section(with_depth_attention(tiny_llama(), 2), {{"method", "ponderlm2"}, {"max_steps", 2}}),
         {},
         true},
        {"depth_attention_ponderlm3",
         own_section(with_depth_attention(tiny_llama(), 2, 1), "ponderlm3", 0.35)},
        {"depth_attention_pause", paused(with_depth_attention(tiny_llama(), 1))},
        {"mhc_ponderlm2", own_section(with_baseline("mhc"), {{"method", "ponderlm2"}, {"max_steps", 2}})}};
    all.insert(all.end(), others.begin(), others.end());
    return all;
}

Subject subject_named(const std::string& name) {
    for (Subject& subject : subjects()) {
        if (subject.name == name) {
            return std::move(subject);
        }
    }
    throw std::logic_error("no subject " + name);
}

} // namespace ponderscope::testing
