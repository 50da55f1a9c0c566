// SPDX-License-Identifier: GPL-3.0-or-later
// Configurations that others wrote: the reference cases, and a collection of good and bad ones.
#include "core/base/json.h"
#include "core/checkpoint/checkpoint.h"
#include "tests/core/checkpoint/support.h"

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

// The collection's llama, mistral and qwen files, each with what must be said about it; everything else is
// another architecture, or not even that.
TEST(MalformedConfigs, EachGetsItsSentence) {
    PONDERSCOPE_REQUIRE_TEST_DATA("external/malformed/mlxd_configs");
    const fs::path root = testing::test_data() / "external" / "malformed" / "mlxd_configs";
    // The part of each sentence that must be there; empty: the file is fine.
    const std::map<std::string, std::string> expected{
        {"model_config", ""},
        {"model_config_eos_array", ""},
        {"model_config_eos_cap", ""},
        {"model_config_gen_bad", ""},
        {"model_config_llama3", ""},
        {"model_config_mistral", ""},
        {"model_config_qwen2", ""},
        {"model_config_qwen3", ""},
        {"model_config_rope_type_alias", ""},
        {"model_config_too_many_layers", ""},
        {"model_config_window_null", ""},
        {"model_config_gemma3_eos_scalar", ""},
        {"model_config_gemma3_no_pattern", ""},
        {"model_config_gemma3_rope_null", ""},
        {"model_config_gemma3_text", ""},
        {"model_config_gemma3_mm", "\"quantization\""},
        {"model_config_quant_affine", "\"quantization\""},
        {"model_config_quant_mxfp4", "\"quantization\""},
        {"model_config_quant_mxfp8", "\"quantization\""},
        {"model_config_quant_no_mode", "\"quantization\""},
        {"model_config_quant_nvfp4", "\"quantization\""},
        {"model_config_quant_unknown", "\"quantization\""},
        {"model_config_float_overflow", "\"rope_theta\""},
        {"model_config_float_wrong_type", "\"rms_norm_eps\""},
        {"model_config_kv_wrong_type", "\"num_key_value_heads\""},
        {"model_config_num_negative", "\"vocab_size\""},
        {"model_config_num_overflow", "\"max_position_embeddings\""},
        {"model_config_num_wrong_type", "\"hidden_size\""},
        {"model_config_num_zero", "\"num_hidden_layers\""},
        {"model_config_rope_scaling_wrong_type", "\"rope_scaling\""},
        {"model_config_hidden_act_wrong_type", "\"hidden_act\""},
        {"model_config_root_array", "config.json: expected a JSON object"},
        {"model_config_type_not_string", "\"model_type\""},
        {"model_config_no_type", "\"model_type\""},
        {"model_config_bad_json", "config.json: expected valid JSON"}};
    std::size_t met = 0;
    for (const fs::path& folder : folders_in(root)) {
        const std::string name = folder.filename().string();
        const std::string said = sentence(folder, [&] { read_model_config(folder / "config.json"); });
        if (const auto known = expected.find(name); known != expected.end()) {
            EXPECT_EQ(said == "", known->second.empty()) << name << ": " << said;
            EXPECT_TRUE(known->second.empty() || said.find(known->second) != std::string::npos)
                << name << ": " << said;
            ++met;
            continue;
        }
        EXPECT_EQ(testing::error_id<Error>([&] { read_model_config(folder / "config.json"); }),
                  "checkpoint.architecture")
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
        EXPECT_EQ(said(name), "") << name;
    }
    EXPECT_TRUE(Checkpoint::open(root / "stories260K_hf").vocabulary);
    EXPECT_FALSE(Checkpoint::open(root / "tiny_llama3").vocabulary);
    EXPECT_NE(said("unsupported_bert_tiniest").find("\"bert\""), std::string::npos);
    EXPECT_NE(said("hf2q_tiny_model").find("\"tiny_test\""), std::string::npos);
    for (const fs::path& folder : folders_in(root / "unsupported_mlx_4bit")) {
        EXPECT_NE(sentence(folder, [&] { Checkpoint::open(folder); }).find("\"quantization\""),
                  std::string::npos);
    }
}

} // namespace
} // namespace ponderscope
