// SPDX-License-Identifier: GPL-3.0-or-later
// Configurations that others wrote: the reference cases, and a collection of good and bad ones.
#include "core/base/json.h"
#include "core/checkpoint/checkpoint.h"
#include "tests/core/checkpoint/config_sentences.h"
#include "tests/core/checkpoint/support.h"
#include "tests/support/known_cases.h"

#include <algorithm>
#include <map>

namespace ponderscope {
namespace {

namespace fs = std::filesystem;
using testing::sentence;

std::vector<fs::path> folders_in(const fs::path& root) {
    std::vector<fs::path> folders;
    for (const auto& entry : fs::directory_iterator(root)) {
        if (entry.is_directory()) {
            folders.push_back(entry.path());
        }
    }
    std::sort(folders.begin(), folders.end());
    return folders;
}

// What each case says about itself must be what the reader finds, with the arguments that the case gives the
// command line.
TEST(ReferenceConfigs, MethodMixingAndBackboneAgree) {
    int cases = 0;
    for (const fs::path& folder : testing::golden_cases()) {
        SCOPED_TRACE(folder.filename().string());
        if (!testing::runs_here(folder)) {
            continue;
        }
        const nlohmann::json description = read_json_file(folder / "case.json");
        const JsonObject about(description, folder / "case.json");
        std::optional<MethodKind> method;
        if (const nlohmann::json* arguments = about.array("arguments")) {
            for (std::size_t i = 0; i + 1 < arguments->size(); ++i) {
                if (arguments->at(i) == "--method") {
                    method = method_from_string(arguments->at(i + 1).get<std::string>());
                    ASSERT_TRUE(method);
                }
            }
        }
        // With the weights: what kind of block a recurrent-depth model has, its tensors say.
        const ModelConfig config = Checkpoint::open(folder, method).config;
        EXPECT_EQ(to_string(config.ponder.method), about.required_text("method"));
        EXPECT_EQ(to_string(config.depth.kind), about.required_text("depth_mixing"));
        // Mistral's files with layer_types are read as the references read them, as Ministral.
        const std::string backbone = about.required_text("backbone");
        if (config.architecture != Architecture::mistral || backbone != "ministral") {
            EXPECT_EQ(to_string(config.architecture), backbone);
        }
        EXPECT_EQ(config.candidate_methods.size(), 1U);

        // And the weights have the shapes that the numbers promise.
        const Checkpoint checkpoint = Checkpoint::open(folder, method);
        const std::vector<std::string> names = checkpoint.weights.names();
        const auto embedding = std::find_if(names.begin(), names.end(), [](const std::string& name) {
            return name.find("embed_in.weight") != std::string::npos ||
                   name.find("embed_tokens.weight") != std::string::npos ||
                   name.find("backbone.embeddings.weight") != std::string::npos ||
                   name.find("wte.weight") != std::string::npos;
        });
        ASSERT_NE(embedding, names.end());
        EXPECT_EQ(checkpoint.weights.find(*embedding)->shape,
                  (std::vector<std::int64_t>{config.vocab_size, config.embed_dim}));
        ++cases;
    }
    EXPECT_GE(cases, 20);
}

// Where the case names no method on the command line, the config alone must name it; where it does, the
// config alone must ask.
TEST(ReferenceConfigs, AsksExactlyWhereTheCaseNeedsAnArgument) {
    for (const fs::path& folder : testing::golden_cases()) {
        SCOPED_TRACE(folder.filename().string());
        if (!testing::runs_here(folder)) {
            continue;
        }
        const nlohmann::json description = read_json_file(folder / "case.json");
        const auto arguments = description.find("arguments");
        const bool needs_method =
            arguments != description.end() && arguments->is_array() &&
            std::find(arguments->begin(), arguments->end(), "--method") != arguments->end();
        const ModelConfig config = Checkpoint::open(folder).config;
        EXPECT_EQ(config.candidate_methods.size() > 1, needs_method);
        if (needs_method) {
            const auto expected = method_from_string(description.at("method").get<std::string>());
            EXPECT_NE(std::find(config.candidate_methods.begin(), config.candidate_methods.end(), expected),
                      config.candidate_methods.end());
        }
    }
}

ModelConfig golden(const std::string& name, std::optional<MethodKind> method = std::nullopt) {
    return read_model_config(testing::test_data() / "golden" / name / "config.json", method);
}

TEST(ReferenceConfigs, NumbersOfSingleCases) {
    PONDERSCOPE_REQUIRE_TEST_DATA("golden");
    ModelConfig config = golden("vanilla_gpt_neox_sequential_pct100_nobias");
    EXPECT_FALSE(config.parallel_residual);
    EXPECT_FALSE(config.attention_bias);
    EXPECT_TRUE(config.mlp_bias);
    EXPECT_EQ(config.rope.rotary_dims, 12);
    EXPECT_EQ(config.rope.theta, 500.0);
    EXPECT_EQ(config.norm_eps, 0.02);

    config = golden("vanilla_gpt_neox_parallel_pct25_padded_exit");
    EXPECT_EQ(config.rope.rotary_dims, 4);
    EXPECT_EQ(config.vocab_size, 544);

    config = golden("vanilla_llama_minimal_config_f16");
    EXPECT_EQ(config.kv_heads, 4);
    EXPECT_EQ(config.head_dim, 16);
    EXPECT_EQ(config.norm_eps, 1e-6);
    EXPECT_EQ(config.rope.theta, 10000.0);
    EXPECT_EQ(config.declared_dtype, "float16");
    EXPECT_EQ(config.bos_token_id, 1);
    EXPECT_EQ(config.eos_token_ids, std::vector<std::int64_t>{2});

    config = golden("vanilla_llama_head_dim_biases_linear_tied");
    EXPECT_EQ(config.head_dim, 14);
    EXPECT_EQ(config.rope.kind, RopeConfig::Kind::linear);
    EXPECT_EQ(config.rope.factor, 4.0);
    EXPECT_TRUE(config.attention_bias && config.mlp_bias && config.tied_embeddings);

    config = golden("vanilla_llama_rope_llama3_sharded");
    EXPECT_EQ(config.rope.kind, RopeConfig::Kind::llama3);
    EXPECT_EQ(config.rope.original_max_positions, 32);
    EXPECT_EQ(config.rope.theta, 500.0);

    config = golden("vanilla_llama_rope_yarn");
    EXPECT_EQ(config.rope.kind, RopeConfig::Kind::yarn);
    EXPECT_EQ(config.rope.factor, 4.0);
    EXPECT_EQ(config.rope.original_max_positions, 24);
    EXPECT_TRUE(config.rope.truncate);

    config = golden("vanilla_llama_rope_dynamic");
    EXPECT_EQ(config.rope.kind, RopeConfig::Kind::dynamic);
    EXPECT_EQ(config.rope.original_max_positions, 16);
    EXPECT_EQ(config.notices.size(), 1U);

    config = golden("vanilla_mistral_sliding_window");
    EXPECT_EQ(config.sliding_windows, (std::vector<std::int64_t>{7, 7, 7}));
    config = golden("vanilla_qwen2_single_token_window_off");
    EXPECT_EQ(config.sliding_windows, (std::vector<std::int64_t>{0, 0, 0}));
    config = golden("vanilla_qwen2_sliding_upper_layers_tied");
    EXPECT_EQ(config.sliding_windows, (std::vector<std::int64_t>{0, 0, 6, 6}));
    EXPECT_TRUE(config.attention_bias);
    config = golden("vanilla_qwen3_head_dim_untied");
    EXPECT_TRUE(config.qk_norm);
    EXPECT_EQ(config.head_dim, 24);

    config = golden("vanilla_opt_post_ln_proj_relu");
    EXPECT_EQ(config.embed_dim, 40);
    EXPECT_FALSE(config.pre_norm);
    EXPECT_EQ(config.activation, Activation::relu);
    EXPECT_TRUE(config.tied_embeddings);
    config = golden("vanilla_opt_galactica_like_full_length");
    EXPECT_FALSE(config.norm_affine);
    EXPECT_FALSE(config.attention_bias);

    config = golden("vanilla_gpt2_inverse_layer_scale_exit");
    EXPECT_TRUE(config.scale_attn_by_inverse_layer_idx);
    EXPECT_EQ(config.intermediate_size, 131);
    EXPECT_EQ(golden("vanilla_gpt2_hub_names_full_length").intermediate_size, 256);
}

TEST(ReferenceConfigs, MethodsOfSingleCases) {
    PONDERSCOPE_REQUIRE_TEST_DATA("golden");
    PonderConfig ponder = golden("ponderlm_llama_s3_scaled_multiply_temp_untied_gqa").ponder;
    EXPECT_EQ(ponder.max_steps, 3);
    EXPECT_EQ(ponder.temperature, 0.7);
    EXPECT_EQ(ponder.embed_scale, EmbedScale::sqrt_d);
    EXPECT_TRUE(ponder.multiply_start);

    ponder = golden("ponderlm_gpt_neox_multiply_start").ponder;
    EXPECT_TRUE(ponder.multiply_start);
    EXPECT_EQ(ponder.max_steps, 3);

    ponder = golden("adaptive_latent_cot_stories_router_per_step").ponder;
    EXPECT_EQ(ponder.remainder, Remainder::drop);
    EXPECT_EQ(ponder.threshold, 0.001);
    EXPECT_EQ(ponder.max_steps, 4);

    ponder = golden("ponderlm3_llama_tau_1e4").ponder;
    EXPECT_EQ(ponder.embed_scale, EmbedScale::sqrt_2_5_d);
    EXPECT_EQ(ponder.jacobi_iterations, std::nullopt);

    ponder = golden("ponderlm2_llama_k3_j1_interpolation_scaled_gqa_tied", MethodKind::ponderlm2).ponder;
    EXPECT_EQ(ponder.embed_scale, EmbedScale::sqrt_d) << "scaled and interpolated";
    EXPECT_TRUE(ponder.interpolation && !ponder.interpolation_use_topk);
    EXPECT_EQ(ponder.jacobi_iterations, 1);
    ponder = golden("ponderlm2_llama_k1_j3_scaled", MethodKind::ponderlm2).ponder;
    EXPECT_EQ(ponder.embed_scale, EmbedScale::sqrt_2_5_d);
    ponder = golden("ponderlm2_llama_k1_j2_interpolation_topk_unscaled", MethodKind::ponderlm2).ponder;
    EXPECT_EQ(ponder.embed_scale, EmbedScale::none);
    EXPECT_TRUE(ponder.interpolation_use_topk);

    EXPECT_EQ(golden("loop_llama_k3", MethodKind::looped).ponder.embed_scale, EmbedScale::sqrt_2_5_d)
        << "always";
    ponder = golden("pause_llama_k2", MethodKind::pause).ponder;
    EXPECT_EQ(ponder.embed_scale, EmbedScale::sqrt_d) << "on Llama always";
    EXPECT_EQ(ponder.pause_token_id, 509);
    EXPECT_EQ(golden("pause_neox_k3_scaled", MethodKind::pause).ponder.embed_scale, EmbedScale::sqrt_d);
    EXPECT_EQ(golden("ponderlm_hidden_neox_k2", MethodKind::ponderlm_hidden).ponder.embed_scale,
              EmbedScale::none);
    EXPECT_EQ(golden("ponderlm_reset_llama_k3_scaled", MethodKind::ponderlm_reset).ponder.embed_scale,
              EmbedScale::sqrt_d);

    ModelConfig config = golden("ponderlm2code_vanilla_llama_stories_flag_off");
    EXPECT_EQ(config.ponder.max_steps, 0);
    EXPECT_EQ(config.ponder.embed_scale, EmbedScale::none);

    DepthMixingConfig depth = golden("da_llama_gqa_half_stride_released_keys").depth;
    EXPECT_EQ(depth.stride, 3);
    EXPECT_TRUE(depth.use_qk_norm && depth.key_norm_after_rope);
    EXPECT_EQ(golden("da_llama_gqa_half_stride_released_keys").notices.size(), 1U);
    config = golden("da_llama_gqa_no_stride_key");
    EXPECT_EQ(config.depth.stride, 1);
    EXPECT_EQ(config.notices.size(), 1U);
    EXPECT_EQ(golden("da_llama_gqa_stride2_window2").depth.recent_window, 2);
    EXPECT_EQ(golden("da_llama_mha_stride1_legacy_keys").depth.stride, 1);
    EXPECT_FALSE(golden("da_llama_stories260k_no_qknorm").depth.use_qk_norm);
    EXPECT_EQ(golden("mhc_llama_4streams").depth.streams, 4);
    EXPECT_EQ(golden("attnres_llama_block4").depth.block_size, 4);

    config = golden("nanbeige_loop2_da_default_stride");
    EXPECT_EQ(config.depth.stride, 2) << "half of five layers";
    EXPECT_FALSE(config.depth.key_norm_after_rope);
    EXPECT_EQ(config.ponder.max_steps, 1);
    EXPECT_TRUE(config.ponder.loop_final_norm_each_pass);
    EXPECT_EQ(config.ponder.embed_scale, EmbedScale::none);
    config = golden("nanbeige_loop3_norm_once");
    EXPECT_EQ(config.ponder.max_steps, 2);
    EXPECT_FALSE(config.ponder.loop_final_norm_each_pass);
    EXPECT_TRUE(config.qk_norm && config.attention_bias);
}

// The collection's llama, mistral and qwen files, each with what must be said about it; everything else is
// another architecture, or not even that.
TEST(MalformedConfigs, EachGetsItsSentence) {
    PONDERSCOPE_REQUIRE_TEST_DATA("external/malformed/mlxd_configs");
    const fs::path root = testing::test_data() / "external" / "malformed" / "mlxd_configs";
    const std::string fine = "(no error)";
    const std::string correct = "; correct the file.";
    const std::string quantised =
        "config.json: expected nothing, since quantised weights are not read, for \"quantization\", found an "
        "object; get the checkpoint before quantisation.";
    const std::map<std::string, std::string> expected{
        {"model_config", fine},
        {"model_config_eos_array", fine},
        {"model_config_eos_cap", fine},
        {"model_config_gen_bad", fine},
        {"model_config_llama3", fine},
        {"model_config_mistral", fine},
        {"model_config_qwen2", fine},
        {"model_config_qwen3", fine},
        {"model_config_rope_type_alias", fine},
        {"model_config_too_many_layers", fine},
        {"model_config_window_null", fine},
        {"model_config_gemma3_eos_scalar", "(no error)"},
        {"model_config_gemma3_mm", quantised},
        {"model_config_gemma3_no_pattern", "(no error)"},
        {"model_config_gemma3_rope_null", "(no error)"},
        {"model_config_gemma3_text", "(no error)"},
        {"model_config_quant_affine", quantised},
        {"model_config_quant_mxfp4", quantised},
        {"model_config_quant_mxfp8", quantised},
        {"model_config_quant_no_mode", quantised},
        {"model_config_quant_nvfp4", quantised},
        {"model_config_quant_unknown", quantised},
        {"model_config_float_overflow",
         "config.json: expected a number above 0, up to 3.4e38 for \"rope_theta\", found 1e+39" + correct},
        {"model_config_float_wrong_type",
         "config.json: expected a number for \"rms_norm_eps\", found \"1e-6\"" + correct},
        {"model_config_kv_wrong_type",
         "config.json: expected a whole number from 1 to 65536 for \"num_key_value_heads\", found \"8\"" +
             correct},
        {"model_config_num_negative",
         "config.json: expected a whole number from 1 to 2147483647 for \"vocab_size\", found -32000" +
             correct},
        {"model_config_num_overflow", "config.json: expected a whole number from 1 to 2147483647 for "
                                      "\"max_position_embeddings\", found 5000000000" +
                                          correct},
        {"model_config_num_wrong_type",
         "config.json: expected a whole number from 1 to 16777216 for \"hidden_size\", found \"4096\"" +
             correct},
        {"model_config_num_zero",
         "config.json: expected a whole number from 1 to 65536 for \"num_hidden_layers\", found 0" + correct},
        {"model_config_rope_scaling_wrong_type",
         "config.json: expected an object for \"rope_scaling\", found 42" + correct},
        {"model_config_hidden_act_wrong_type",
         "config.json: expected a text for \"hidden_act\", found 42" + correct},
        {"model_config_root_array", "config.json: expected a JSON object, found an array of 3" + correct},
        {"model_config_type_not_string",
         "config.json: expected a text for \"model_type\", found 42" + correct},
        {"model_config_no_type",
         "config.json: expected one of the architectures " + every_architecture() +
             " for "
             "\"model_type\", found no such key; check that it is a Hugging Face model's config.json."},
        {"model_config_bad_json", "config.json: expected valid JSON, found syntax error while parsing object "
                                  "- unexpected end of input; expected '}' at line 1, "
                                  "byte 23; correct the file or get it again."},
    };
    std::size_t met = 0;
    for (const fs::path& folder : folders_in(root)) {
        const std::string name = folder.filename().string();
        const std::string said = sentence(folder, [&] { read_model_config(folder / "config.json"); });
        if (const auto known = expected.find(name); known != expected.end()) {
            EXPECT_EQ(said, known->second) << name;
            ++met;
            continue;
        }
        EXPECT_EQ(said.rfind(": expected one of the architectures gpt2, gpt_neox, llama, ", 0), 0U)
            << name << ": " << said;
        EXPECT_NE(said.find("this build cannot run the checkpoint."), std::string::npos)
            << name << ": " << said;
    }
    EXPECT_EQ(met, expected.size());
}

TEST(MalformedConfigs, ValuesOfTheGoodOnes) {
    PONDERSCOPE_REQUIRE_TEST_DATA("external/malformed/mlxd_configs");
    const fs::path root = testing::test_data() / "external" / "malformed" / "mlxd_configs";
    const auto read = [&](const std::string& name) { return read_model_config(root / name / "config.json"); };
    EXPECT_EQ(read("model_config_eos_array").eos_token_ids, (std::vector<std::int64_t>{151643, 151645}));
    EXPECT_EQ(read("model_config_eos_cap").eos_token_ids.size(), 10U);
    EXPECT_EQ(read("model_config_mistral").sliding_windows.at(31), 4096);
    EXPECT_EQ(read("model_config_window_null").sliding_windows.at(31), 0);
    EXPECT_EQ(read("model_config").kv_heads, 32);
    EXPECT_EQ(read("model_config_rope_type_alias").rope.kind, RopeConfig::Kind::linear);
    EXPECT_EQ(read("model_config_llama3").rope.high_freq_factor, 4.0);
}

TEST(OtherCheckpoints, OpenOrSayWhyNot) {
    PONDERSCOPE_REQUIRE_TEST_DATA("external/checkpoints");
    const fs::path root = testing::test_data() / "external" / "checkpoints";
    const auto said = [&](const std::string& name) {
        return sentence(root / name, [&] { Checkpoint::open(root / name); });
    };
    for (const char* const name : {"stories260K_hf", "tiny_llama3", "tiny_qwen3", "fake_gpt2", "tiny_gpt2"}) {
        EXPECT_EQ(said(name), "(no error)") << name;
    }
    EXPECT_TRUE(Checkpoint::open(root / "stories260K_hf").vocabulary);
    EXPECT_FALSE(Checkpoint::open(root / "tiny_llama3").vocabulary);
    const std::string architectures =
        ": expected one of the architectures " + every_architecture() + " for \"model_type\", found ";
    EXPECT_EQ(said("unsupported_bert_tiniest"),
              architectures + "\"bert\"; this build cannot run the checkpoint.");
    EXPECT_EQ(said("hf2q_tiny_model"),
              architectures + "\"tiny_test\"; this build cannot run the checkpoint.");
    for (const fs::path& folder : folders_in(root / "unsupported_mlx_4bit")) {
        EXPECT_EQ(sentence(folder, [&] { Checkpoint::open(folder); }),
                  "config.json: expected nothing, since quantised weights are not read, for "
                  "\"quantization\", found an object; get the "
                  "checkpoint before quantisation.");
    }
}

} // namespace
} // namespace ponderscope
