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
    // The part that each sentence must have; empty: the file is fine. All names begin with model_config.
    std::map<std::string, std::string> expected{{"_float_overflow", "\"rope_theta\""},
                                                {"_float_wrong_type", "\"rms_norm_eps\""},
                                                {"_kv_wrong_type", "\"num_key_value_heads\""},
                                                {"_num_negative", "\"vocab_size\""},
                                                {"_num_overflow", "\"max_position_embeddings\""},
                                                {"_num_wrong_type", "\"hidden_size\""},
                                                {"_num_zero", "\"num_hidden_layers\""},
                                                {"_rope_scaling_wrong_type", "\"rope_scaling\""},
                                                {"_hidden_act_wrong_type", "\"hidden_act\""},
                                                {"_root_array", "[json.value]"},
                                                {"_type_not_string", "\"model_type\""},
                                                {"_no_type", "\"model_type\""},
                                                {"_bad_json", "[json.syntax]"}};
    for (const char* const fine :
         {"", "_eos_array", "_eos_cap", "_gen_bad", "_llama3", "_mistral", "_qwen2", "_qwen3",
          "_rope_type_alias", "_too_many_layers", "_window_null", "_gemma3_eos_scalar", "_gemma3_no_pattern",
          "_gemma3_rope_null", "_gemma3_text"}) {
        expected[fine] = "";
    }
    for (const char* const quantised : {"_gemma3_mm", "_quant_affine", "_quant_mxfp4", "_quant_mxfp8",
                                        "_quant_no_mode", "_quant_nvfp4", "_quant_unknown"}) {
        expected[quantised] = "\"quantization\"";
    }
    std::size_t met = 0;
    for (const fs::path& folder : folders_in(root)) {
        const std::string name = folder.filename().string();
        const std::string said = sentence(folder, [&] { read_model_config(folder / "config.json"); });
        const std::string_view prefix = "model_config";
        const auto known =
            name.starts_with(prefix) ? expected.find(name.substr(prefix.size())) : expected.end();
        if (known != expected.end()) {
            EXPECT_EQ(said.empty(), known->second.empty()) << name << ": " << said;
            EXPECT_NE(said.find(known->second), std::string::npos) << name << ": " << said;
            ++met;
        } else {
            EXPECT_TRUE(said.ends_with("[checkpoint.architecture]")) << name << ": " << said;
        }
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
