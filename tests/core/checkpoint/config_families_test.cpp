// SPDX-License-Identifier: GPL-3.0-or-later
// Configs of Llama's newer relatives and of Dory and HRM-Text: what is read, what is refused by name, and the
// page that lists every architecture.
#include "core/base/files.h"
#include "core/checkpoint/checkpoint.h"
#include "tests/core/checkpoint/support.h"

#include <nlohmann/json.hpp>

#include <cmath>

namespace ponderscope {
namespace {

using testing::config_sentence;
using testing::read_config;

ModelConfig read(const nlohmann::json& config) {
    return read_config(config.dump());
}

nlohmann::json family(const char* type, const nlohmann::json& keys = nlohmann::json::object()) {
    nlohmann::json config = nlohmann::json::parse(R"({"vocab_size": 61, "hidden_size": 24,
        "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 40, "num_hidden_layers": 6,
        "head_dim": 8, "max_position_embeddings": 64})");
    config["model_type"] = type;
    config.update(keys);
    return config;
}

nlohmann::json dory(const nlohmann::json& keys = nlohmann::json::object()) {
    nlohmann::json config = family("dory", {{"n_input_layers", 2}, {"n_output_layers", 1}});
    config.update(keys);
    return config;
}

nlohmann::json exported_dory(const nlohmann::json& keys = nlohmann::json::object()) {
    nlohmann::json config = family("dory", nlohmann::json::parse(R"({"dory_format_version": 1,
        "hybrid_layer_pattern": "S-*-S-", "rope_profile_layers": [2, 0, 1, 0, 2, 0], "n_input_layers": 2,
        "n_output_layers": 2})"));
    config.update(keys);
    return config;
}

nlohmann::json phi3(const nlohmann::json& scaling) {
    return family("phi3", {{"rope_scaling", scaling}, {"original_max_position_embeddings", 16}});
}

TEST(Families, ReadTheirDefaults) {
    const ModelConfig gemma2 = read_config(R"({"model_type": "gemma2"})");
    EXPECT_EQ(gemma2.norm_weight, NormWeight::one_plus);
    EXPECT_EQ(gemma2.scales.attention_softcap, 50.0);
    EXPECT_EQ(gemma2.scales.logit_softcap, 30.0);
    EXPECT_DOUBLE_EQ(*gemma2.scales.attention, 1.0 / 16.0);
    EXPECT_DOUBLE_EQ(gemma2.scales.embedding, std::sqrt(2304.0));
    EXPECT_TRUE(gemma2.tied_embeddings);
    EXPECT_EQ(gemma2.head_dim, 256);
    EXPECT_EQ(gemma2.sliding_windows[0], 4096);
    EXPECT_EQ(gemma2.sliding_windows[1], 0);
    const ModelConfig off = read_config(
        R"({"model_type": "gemma2", "attn_logit_softcapping": null, "final_logit_softcapping": null})");
    EXPECT_EQ(off.scales.attention_softcap, 0.0);
    EXPECT_FALSE(off.scales.logit_softcap.has_value());

    const ModelConfig gemma3 = read_config(R"({"model_type": "gemma3_text", "attn_logit_softcapping": 2.0})");
    EXPECT_EQ(gemma3.scales.attention_softcap, 0.0) << "it is stored and never applied";
    EXPECT_EQ(gemma3.layer_rope[4], LayerRope::local);
    EXPECT_EQ(gemma3.layer_rope[5], LayerRope::main);
    EXPECT_EQ(gemma3.rope.theta, 1e6);
    EXPECT_EQ(gemma3.local_rope.theta, 1e4);

    const ModelConfig olmo3 = read_config(R"({"model_type": "olmo3", "rope_theta": 7.0})");
    EXPECT_EQ(olmo3.rope.theta, 7.0);
    EXPECT_TRUE(olmo3.layer_rope.empty()) << "one base for both kinds";
    EXPECT_EQ(olmo3.norm_eps, 1e-5);
    EXPECT_EQ(olmo3.sliding_windows[3], 0);
    EXPECT_EQ(olmo3.sliding_windows[2], 4096);

    const ModelConfig smollm3 = read_config(R"({"model_type": "smollm3"})");
    EXPECT_EQ(smollm3.rope.theta, 2e6);
    EXPECT_EQ(smollm3.layer_rope[3], LayerRope::none);
    EXPECT_EQ(smollm3.layer_rope[2], LayerRope::main);
    EXPECT_EQ(smollm3.kv_heads, 4);

    const ModelConfig nanochat = read_config(R"({"model_type": "nanochat"})");
    EXPECT_EQ(nanochat.scales.logit_softcap, 15.0);
    EXPECT_EQ(nanochat.norm_weight, NormWeight::none);
    EXPECT_TRUE(nanochat.rope.reversed);

    const ModelConfig granite =
        read_config(R"({"model_type": "granite", "logits_scaling": 8, "residual_multiplier": 0.25})");
    EXPECT_EQ(granite.scales.attention, 1.0);
    EXPECT_EQ(granite.scales.logits, 0.125);
    EXPECT_EQ(granite.scales.residual, 0.25);

    EXPECT_EQ(read_config(R"({"model_type": "ministral"})").sliding_windows[0], 4096);
    EXPECT_EQ(read_config(R"({"model_type": "phi3"})").sliding_windows[0], 0);

    const ModelConfig hrm = read_config(R"({"model_type": "hrm_text", "num_hidden_layers": 64,
                                           "num_layers_per_stack": 8})");
    EXPECT_EQ(hrm.ponder.method, MethodKind::hrm_text);
    EXPECT_EQ(hrm.ponder.max_steps, 1);
    EXPECT_EQ(hrm.layers, 8 * 4) << "passes of layers in a cycle";
    EXPECT_EQ(hrm.scales.embedding, 50.0);
}

TEST(Families, PhiOneGivesLongropeItsOlderNames) {
    const nlohmann::json lists{{"short_factor", {1.0, 1.1, 1.2, 1.3}}, {"long_factor", {2.0, 3.0, 4.0, 5.0}}};
    for (const char* const name : {"longrope", "su", "yarn"}) {
        nlohmann::json scaling = lists;
        scaling["type"] = name;
        const ModelConfig config = read(phi3(scaling));
        EXPECT_EQ(config.rope.kind, RopeConfig::Kind::longrope) << name;
        EXPECT_EQ(config.rope.original_max_positions, 16);
        EXPECT_EQ(config.rope.factor, 4.0) << "64 positions of 16";
        EXPECT_EQ(config.rope.long_factor.size(), 4U);
    }
}

TEST(Families, RotationByKindOfLayer) {
    const ModelConfig nested = read(family(
        "gemma3_text",
        {{"sliding_window_pattern", 2},
         {"rope_parameters",
          {{"full_attention", {{"rope_theta", 100.0}}}, {"sliding_attention", {{"rope_theta", 7.0}}}}}}));
    EXPECT_EQ(nested.rope.theta, 100.0);
    EXPECT_EQ(nested.local_rope.theta, 7.0);
    // A kind that no layer has may be missing.
    EXPECT_EQ(
        read(family("gemma3_text", {{"sliding_window_pattern", 9},
                                    {"rope_parameters", {{"sliding_attention", {{"rope_theta", 7.0}}}}}}))
            .rope.theta,
        7.0);
    const ModelConfig flat = read(family(
        "olmo3", {{"rope_parameters", {{"rope_type", "linear"}, {"factor", 3.0}, {"rope_theta", 50.0}}}}));
    EXPECT_EQ(flat.rope.kind, RopeConfig::Kind::linear);
    EXPECT_EQ(flat.local_rope.kind, RopeConfig::Kind::standard);
    EXPECT_EQ(flat.local_rope.theta, 50.0);
}

TEST(Families, DoryCountsBlocksOrLayers) {
    const nlohmann::json doubled{
        {"num_hidden_layers", 12},
        {"n_input_layers", 4},
        {"n_recurrent_layers", nullptr},
        {"n_output_layers", 2},
        {"layer_types",
         {"sliding_attention", "mlp", "full_attention", "mlp", "sliding_attention", "mlp", "full_attention",
          "mlp", "sliding_attention", "mlp", "full_attention", "mlp"}}};
    for (const ModelConfig& config : {read(dory()), read(dory(doubled))}) {
        EXPECT_EQ(config.layers, 6);
        EXPECT_EQ(config.core_begin(), 2);
        EXPECT_EQ(config.core_end(), 5);
        EXPECT_EQ(config.ponder.method, MethodKind::dory);
        EXPECT_EQ(config.ponder.max_steps, 1);
    }
    const ModelConfig exported = read(exported_dory());
    EXPECT_EQ(exported.layers, 3);
    EXPECT_EQ(exported.core_begin(), 1);
    EXPECT_EQ(exported.ponder.max_steps, 0) << "the default of this spelling";
    EXPECT_EQ(exported.released.deviation, 0.02);
    EXPECT_EQ(exported.layer_rope[1], LayerRope::main);
    EXPECT_EQ(exported.layer_rope[2], LayerRope::local);
}

TEST(Families, RefuseByName) {
    const nlohmann::json factors{{"rope_type", "longrope"},
                                 {"short_factor", {1.0, 1.0, 1.0, 1.0}},
                                 {"long_factor", {1.0, 1.0, 1.0, 1.0}}};
    const auto without = [](nlohmann::json json, const char* key) {
        json.erase(key);
        return json;
    };
    const auto changed = [](nlohmann::json json, const char* key, nlohmann::json value) {
        json[key] = std::move(value);
        return json;
    };
    const std::pair<nlohmann::json, const char*> wrong[] = {
        {family("mistral3"), "model_type"},
        {family("gemma2", {{"sliding_window", nullptr}}), "sliding_window"},
        {family("gemma2", {{"use_bidirectional_attention", true}}), "use_bidirectional_attention"},
        {family("gemma2", {{"layer_types", nlohmann::json::array({"full_attention"})}}), "layer_types"},
        {family("gemma2", {{"layer_types", nlohmann::json(6, "chunked_attention")}}), "layer_types"},
        {family("gemma3"), "text_config"},
        {nlohmann::json{{"model_type", "gemma3"}, {"text_config", {{"model_type", "qwen2"}}}},
         "text_config.model_type"},
        {family("gemma3_text", {{"rope_parameters", {{"rope_theta", 5.0}}}}), "rope_parameters"},
        {family("olmo2", {{"clip_qkv", 8.0}}), "clip_qkv"},
        {family("olmo3", {{"sliding_window", nullptr}}), "sliding_window"},
        {family("smollm3", {{"no_rope_layers", {1, 0}}}), "no_rope_layers"},
        {family("smollm3", {{"no_rope_layers", {1, 0, 1, 1, 1, 2}}}), "no_rope_layers"},
        {family("smollm3", {{"sliding_window", 4}, {"layer_types", nlohmann::json(6, "sliding_attention")}}),
         "use_sliding_window"},
        {phi3(without(factors, "short_factor")), "rope_scaling.short_factor"},
        {phi3(without(factors, "long_factor")), "rope_scaling.long_factor"},
        {phi3(changed(factors, "long_factor", {1.0, 2.0})), "rope_scaling.long_factor"},
        {phi3(changed(factors, "rope_type", "linear")), "rope_scaling.rope_type"},
        {family("phi3", {{"attention_bias", true}}), "attention_bias"},
        {family("granite", {{"logits_scaling", 0.0}}), "logits_scaling"},
        {dory({{"recurrent_kv_cache_mode", "first_loop"}}), "recurrent_kv_cache_mode"},
        {dory({{"n_recurrent_layers", 2}}), "n_recurrent_layers"},
        {dory({{"n_recurrent_loops", 0}}), "n_recurrent_loops"},
        {dory({{"dory_format_version", 2}}), "dory_format_version"},
        {dory({{"rope_parameters", {{"rope_theta", 5.0}}}}), "rope_parameters"},
        {dory({{"quantization_config", {{"quant_algo", "NVFP4"}}}}), "quantization_config"},
        {exported_dory({{"hybrid_layer_pattern", "S*S-*-"}}), "hybrid_layer_pattern"},
        {exported_dory({{"rope_profile_layers", {0, 0, 1, 0, 2, 0}}}), "rope_profile_layers"},
        {without(exported_dory(), "rope_profile_layers"), "rope_profile_layers"},
        {exported_dory({{"num_hidden_layers", 5}}), "num_hidden_layers"},
        {exported_dory({{"ngpt", false}}), "ngpt"},
        {exported_dory({{"fngpt", false}}), "fngpt"},
        {exported_dory({{"ngpt_enable_final_norm", true}}), "ngpt_enable_final_norm"},
        {exported_dory({{"attention_output_gate", false}}), "attention_output_gate"},
        {exported_dory({{"attention_output_gate_logit_scale_init", 2.0}}),
         "attention_output_gate_logit_scale_init"},
        {exported_dory({{"no_rope_layers", {0, 1}}}), "no_rope_layers"},
        {exported_dory({{"partial_rotary_factor_2", 0.5}}), "partial_rotary_factor_2"},
        {exported_dory({{"swa_num_attention_heads", 2}}), "swa_num_attention_heads"},
        {exported_dory({{"initial_state", "zeros"}}), "initial_state"},
        {exported_dory({{"input_transform", "replace"}}), "input_transform"},
        {exported_dory({{"output_transform", "residual"}}), "output_transform"},
        {exported_dory({{"mixer_type", "mamba"}}), "mixer_type"},
        {exported_dory({{"attention_head_dim", 6}}), "attention_head_dim"},
        {family("hrm_text", {{"attention_bias", true}, {"num_key_value_heads", 4}}), "attention_bias"},
        {family("hrm_text"), "num_key_value_heads"},
        {family("hrm_text", {{"num_key_value_heads", 4}, {"L_cycles", 0}}), "L_cycles"}};
    for (const auto& [config, key] : wrong) {
        testing::expect_refused(config.dump(), '"' + std::string(key));
    }
}

/// The names of sizes in the configs of an architecture.
std::vector<std::string> size_keys(const std::string& type) {
    if (type == "gpt2") {
        return {"vocab_size", "n_embd", "n_layer", "n_head", "n_inner", "n_positions"};
    }
    if (type == "huginn_raven" || type == "parcae") {
        return {"vocab_size",        "n_embd",    "n_layers_in_recurrent_block", "n_heads",
                "intermediate_size", "block_size"};
    }
    return {"vocab_size",          "hidden_size",
            "num_hidden_layers",   type == "opt" ? "ffn_dim" : "intermediate_size",
            "num_attention_heads", "max_position_embeddings"};
}

TEST(Families, ASizeThatNoModelHasIsRefusedByItsNameInEveryArchitecture) {
#define PONDERSCOPE_ARCHITECTURE(name) #name,
    for (const std::string type : {
#include "core/checkpoint/architectures.def"
         }) {
#undef PONDERSCOPE_ARCHITECTURE
        const auto with = [&](const std::string& key, const nlohmann::json& value) {
            nlohmann::json config{{"model_type", type}};
            if (type == "gemma3") {
                config["text_config"] = nlohmann::json::object();
            }
            (type == "gemma3" ? config["text_config"] : config)[key] = value;
            return config.dump();
        };
        for (const std::string& key : size_keys(type)) {
            for (const nlohmann::json& value :
                 {nlohmann::json("text"), nlohmann::json(-1), nlohmann::json(0), nlohmann::json(1.5),
                  nlohmann::json(1e18), nlohmann::json::array()}) {
                testing::expect_refused(with(key, value), key + '"');
            }
        }
        // A key that is absent has the default of transformers' class.
        EXPECT_EQ(config_sentence(with("use_cache", true)), "") << type;
    }
}

TEST(Families, AQuantisedCheckpointIsToldWhatToDo) {
    for (const char* const method : {"gptq", "awq", "fp8", "bitsandbytes"}) {
        const std::string sentence =
            config_sentence(family("gemma2", {{"quantization_config", {{"quant_method", method}}}}).dump());
        EXPECT_TRUE(sentence.starts_with("config.json: ")) << sentence;
        EXPECT_TRUE(sentence.ends_with("[checkpoint.quantised]")) << sentence;
    }
}

TEST(Families, TheFirstLayersAlone) {
    ModelConfig config = read(family("smollm3"));
    keep_first_layers(config, 4);
    EXPECT_EQ(config.layers, 4);
    EXPECT_EQ(config.layers_left_out, 2);
    EXPECT_EQ(config.layer_rope.size(), 4U);
    EXPECT_EQ(config.sliding_windows.size(), 4U);
    ModelConfig same = read(family("smollm3"));
    EXPECT_THROW(keep_first_layers(same, 7), InputError);
    EXPECT_THROW(keep_first_layers(same, 0), InputError);
    ModelConfig looped = read(dory());
    EXPECT_THROW(keep_first_layers(looped, 2), InputError);
}

TEST(Families, ThePageListsEveryArchitecture) {
    const std::string page =
        read_file(std::filesystem::path(PONDERSCOPE_SOURCE) / "resources" / "docs" / "architectures.md");
#define PONDERSCOPE_ARCHITECTURE(name)                                                                       \
    EXPECT_NE(page.find("`" + to_string(Architecture::name) + "`: "), std::string::npos) << #name;
#include "core/checkpoint/architectures.def"
#undef PONDERSCOPE_ARCHITECTURE
}

} // namespace
} // namespace ponderscope
