// SPDX-License-Identifier: GPL-3.0-or-later
// Configs of released recurrent-depth models: defaults, what is refused and by which sentence, and the
// entries of methods.
#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/method_info.h"
#include "tests/core/checkpoint/support.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

namespace ponderscope {
namespace {

using namespace testing;

std::string with(const char* type, const std::string& keys) {
    return std::string(R"({"model_type":")") + type + "\"" + (keys.empty() ? "" : ",") + keys + "}";
}
std::string ouro(const std::string& keys = "") {
    return with("ouro", keys);
}
std::string huginn(const std::string& keys = "") {
    return with("huginn_raven", keys);
}
std::string parcae(const std::string& keys = "") {
    return R"({"_class_name":"ParcaeConfig")" + (keys.empty() ? "" : "," + keys) + "}";
}

/// Each of these is refused by the key that stands first.
void expect_each_refused(std::string (*config)(const std::string& keys),
                         const std::vector<std::string>& wrong) {
    for (const std::string& keys : wrong) {
        expect_refused(config(keys), keys.substr(0, keys.find('"', 1)));
    }
}

TEST(Released, OuroHasItsOwnDefaults) {
    ModelConfig c = read_config(ouro());
    EXPECT_EQ(c.architecture, Architecture::ouro);
    EXPECT_EQ(c.ponder.method, MethodKind::ouro);
    EXPECT_EQ(c.ponder.max_steps, 3);
    EXPECT_EQ(c.ponder.threshold, 1.0);
    EXPECT_FALSE(c.ponder.own.contains("exit_step"));
    EXPECT_EQ(c.vocab_size, 151936);
    EXPECT_EQ(c.kv_heads, 32);
    EXPECT_EQ(c.max_positions, 32768);
    EXPECT_TRUE(std::isinf(read_config(ouro(R"("early_exit_threshold":null)")).ponder.threshold));
    EXPECT_EQ(read_config(ouro(R"("early_exit_threshold":-2)")).ponder.threshold, -2.0) << "not checked";
    EXPECT_EQ(read_config(ouro(R"("early_exit_step":0)")).ponder.own.at("exit_step"), 0);
    EXPECT_TRUE(read_config(ouro(R"("early_exit_step":4)")).ponder.own.empty()) << "no step of four";
    EXPECT_TRUE(read_config(ouro(R"("early_exit_step":-1)")).ponder.own.empty());
    EXPECT_EQ(read_config(ouro(), MethodKind::looped).ponder.max_steps, 3);
    EXPECT_EQ(read_config(ouro(), MethodKind::vanilla).ponder.max_steps, 0);
    EXPECT_EQ(read_config(ouro(R"("vocab_size":49152,"bos_token_id":0,"eos_token_id":0)")).eos_token_ids,
              (std::vector<std::int64_t>{0, 2}))
        << "chat text ends at <|im_end|>";
    c = read_config(ouro(R"("use_sliding_window":true,"sliding_window":8,"num_hidden_layers":2,)"
                         R"("layer_types":["full_attention","sliding_attention"])"));
    EXPECT_EQ(c.sliding_windows, (std::vector<std::int64_t>{0, 8}));
}

TEST(Released, OuroRefusesByName) {
    expect_each_refused(ouro, {R"("total_ut_steps":0)", R"("attention_bias":true)", R"("mlp_bias":true)",
                               R"("pondering":{"method":"adaponderlm","max_steps":2})"});
}

TEST(Released, HuginnHasItsOwnDefaults) {
    const ModelConfig c = read_config(huginn());
    EXPECT_EQ(c.ponder.method, MethodKind::huginn);
    EXPECT_EQ(c.ponder.max_steps, 31);
    EXPECT_EQ(c.layers, 8);
    EXPECT_EQ(c.core_begin(), 2);
    EXPECT_EQ(c.core_end(), 6);
    EXPECT_EQ(c.head_dim, 96);
    EXPECT_EQ(c.rope.theta, 50000.0);
    EXPECT_TRUE(c.rope.pairs);
    EXPECT_TRUE(c.released.qk_bias);
    EXPECT_TRUE(c.tied_embeddings);
    EXPECT_DOUBLE_EQ(c.scales.embedding, std::sqrt(5280.0));
    EXPECT_DOUBLE_EQ(c.sandwich.state_deviation, std::sqrt(2.0 / (5 * 5280.0)));
    EXPECT_DOUBLE_EQ(c.sandwich.state_scale, std::sqrt(5280.0));
    EXPECT_EQ(c.eos_token_ids, (std::vector<std::int64_t>{65505, 65504, 65508}));
    EXPECT_EQ(read_config(huginn(R"("init_scale":0)")).sandwich.state_deviation, 0.0);
}

TEST(Released, HuginnRefusesByName) {
    expect_each_refused(huginn, {R"("num_key_value_heads":11)", R"("test_time_noise":0.1)",
                                 R"("injection_type":"add")", R"("nonlin_name":"GELU")",
                                 R"("norm_class_name":"LayerNorm")", R"("mlp_class_name":"BaseMLP")",
                                 R"("block_class_name":"TransformerPreNormBlock")",
                                 R"("tie_word_embeddings":false,"tie_embeddings":true)",
                                 R"("initial_state_mode":"zero")", R"("mean_recurrence":0)"});
}

TEST(Released, RetrofitsAreToldApartByTheirTensors) {
    const TemporaryFolder folder;
    put_file(folder / "config.json",
             huginn(R"("n_embd":48,"n_heads":4,"num_key_value_heads":2,"head_dim":16,"rope_theta":500,)"
                    R"("rope_base":7,"tie_embeddings":false,"init_values":{"std":0.01,"embed_scale":1.0})"));
    const auto read = [&](const std::vector<std::string>& names) {
        return read_model_config(folder / "config.json", std::nullopt, std::nullopt,
                                 [&names] { return names; });
    };
    const ModelConfig llama = read({"transformer.core_block.0.norm_1.weight"});
    EXPECT_EQ(llama.released.block, RavenBlock::llama);
    EXPECT_EQ(llama.head_dim, 12) << "head_dim is not read";
    EXPECT_EQ(llama.kv_heads, 2);
    EXPECT_EQ(llama.rope.theta, 500.0);
    EXPECT_FALSE(llama.rope.pairs);
    EXPECT_FALSE(llama.sandwich.norm_before_coda);
    EXPECT_EQ(llama.scales.embedding, 1.0);
    EXPECT_EQ(llama.sandwich.state_deviation, 0.01);
    const ModelConfig olmo = read({"transformer.core_block.0.attn.q_norm.weight"});
    EXPECT_EQ(olmo.released.block, RavenBlock::olmo2);
    EXPECT_EQ(olmo.head_dim, 16);
}

TEST(Released, ParcaeIsReadByItsClass) {
    const ModelConfig c = read_config(parcae(R"("vocab_size":500,"padded_vocab_size":512)"));
    EXPECT_EQ(c.architecture, Architecture::parcae);
    EXPECT_EQ(c.ponder.method, MethodKind::parcae);
    EXPECT_EQ(c.vocab_size, 512) << "the padding belongs to the softmax";
    EXPECT_EQ(c.sandwich.state_scale, 1.0);
    EXPECT_EQ(c.sandwich.injection, SandwichConfig::Injection::diagonal);
    EXPECT_EQ(c.activation, Activation::half_relu_squared);
    expect_refused(R"({"_class_name":"GPTConfig"})", "\"_class_name\"");
}

TEST(Released, ParcaeRefusesByName) {
    expect_each_refused(parcae,
                        {R"("recurrent_embedding_dimension":64)", R"("recurrent_num_attention_heads":3)",
                         R"("num_key_value_heads":3)", R"("clip_qkv":8)", R"("mup_model_scaling_factor":2)",
                         R"("block_class_name":"SandwichBlock")", R"("norm_class_name":"LayerNorm")",
                         R"("state_init":"normal")", R"("injection_type":"gate")",
                         R"("init_strategy":"takase")", R"("init_strategy":"takase-x")",
                         R"("init_strategy":"scaled-logit-scale")", R"("init_strategy":"llama-by-dim-ls")",
                         R"("init_strategy":"deepnorm")", R"("init_strategy":"shaped")"});
    expect_refused(parcae(R"("rope_settings":{"rope_base":10000})"), "rope_settings.rope_base");
    expect_refused(parcae(R"("rope_settings":{"use_rope":false})"), "rope_settings.use_rope");
}

TEST(Released, AnAdapterAloneIsToBeMerged) {
    const TemporaryFolder folder;
    put_file(folder / "adapter_config.json", R"({"peft_type":"LORA"})");
    put_file(folder / "adapter_model.safetensors", safetensors("{}"));
    const std::string sentence =
        testing::sentence(folder.path(), [&] { (void)Checkpoint::open(folder.path()); });
    EXPECT_TRUE(sentence.ends_with("[checkpoint.files]")) << sentence;
    EXPECT_NE(sentence.find("merge_and_unload"), std::string::npos) << sentence;
}

constexpr const char* tah_config =
    R"({"max_iter":2,"iter_decider":"MLPIterDecider","iter_decider_kwargs":{"topk":10,)"
    R"("hidden_states_layer_nums":[0,1],"hidden_dims":[8,8],"threshold":0.6}})";

TEST(Released, ThinkAtHardsGateAsAPickleIsToBeConverted) {
    const TemporaryFolder folder;
    put_file(folder / "config.json", R"({"model_type":"qwen3","num_hidden_layers":2,"hidden_size":64})");
    put_file(folder / "tah_config.json", tah_config);
    put_file(folder / "iter_decider.bin", "PK");
    const auto sentence = [&] {
        return testing::sentence(folder.path(), [&] { (void)read_model_config(folder / "config.json"); });
    };
    EXPECT_TRUE(sentence().starts_with("iter_decider.bin: ")) << sentence();
    EXPECT_TRUE(sentence().ends_with("[checkpoint.files]")) << sentence();
    std::filesystem::remove(folder / "iter_decider.bin");
    EXPECT_NE(sentence().find("iter_decider.safetensors"), std::string::npos) << sentence();
    EXPECT_TRUE(sentence().ends_with("[checkpoint.files]")) << sentence();
    EXPECT_EQ(read_model_config(folder / "config.json", MethodKind::vanilla).ponder.method,
              MethodKind::vanilla);
}

TEST(Released, ThinkAtHardRefusesByName) {
    const auto sentence = [](const std::string& tah, const std::string& adapter) {
        const TemporaryFolder folder;
        put_file(folder / "config.json", R"({"model_type":"qwen3","num_hidden_layers":2,"hidden_size":64})");
        put_file(folder / "tah_config.json", tah);
        put_file(folder / "iter_decider.safetensors", safetensors("{}"));
        std::filesystem::create_directory(folder / "lora");
        put_file(folder / "lora/adapter_config.json", adapter);
        put_file(folder / "lora/adapter_model.safetensors", safetensors("{}"));
        return testing::sentence(folder.path(), [&] { (void)read_model_config(folder / "config.json"); });
    };
    const std::string adapter = R"({"r":4,"lora_alpha":8})";
    EXPECT_EQ(sentence(tah_config, adapter), "");
    for (const char* const wrong :
         {R"("use_dora":true)", R"("use_rslora":true)", R"("bias":"all")", R"("rank_pattern":{"q_proj":2})",
          R"("modules_to_save":["lm_head"])", R"("fan_in_fan_out":true)", R"("alpha_pattern":{"a":1})"}) {
        const std::string key = std::string(wrong).substr(0, std::string(wrong).find("\":"));
        EXPECT_NE(sentence(tah_config, R"({"r":4,"lora_alpha":8,)" + std::string(wrong) + "}").find(key),
                  std::string::npos)
            << wrong;
    }
    EXPECT_NE(
        sentence(R"({"max_iter":2,"iter_decider":"IterLabelDecider","iter_decider_kwargs":{}})", adapter)
            .find("--method vanilla"),
        std::string::npos);
}

TEST(Entries, EveryMethodIsInTheDocumentation) {
    const std::string page =
        read_file(std::filesystem::path(PONDERSCOPE_SOURCE) / "resources" / "docs" / "methods.md");
    for (const MethodInfo& info : method_infos()) {
        EXPECT_EQ(info.kind, method_info(info.kind).kind);
        EXPECT_EQ(method_info(to_string(info.kind)), &info);
        const std::string row = "- `" + to_string(info.kind) + "`: " + info.summary + "\n";
        EXPECT_NE(page.find(row), std::string::npos) << "resources/docs/methods.md lacks the row\n" << row;
    }
    EXPECT_EQ(method_info("nothing"), nullptr);
}

/// A method is two files and one line: no other source names it. The plain model and the stack that runs
/// several times are what others are told apart from.
TEST(Entries, NoFilesButItsOwnNameAMethod) {
    namespace fs = std::filesystem;
    const fs::path root(PONDERSCOPE_SOURCE);
    const auto own_files = [&](const std::string& name) {
        return std::array{root / "core" / "checkpoint" / "methods" / (name + "_info.cpp"),
                          root / "core" / "ponder" / "methods" / (name + ".cpp")};
    };
    int files = 0;
    for (const char* const part : {"core", "app", "views"}) {
        for (const auto& entry : fs::recursive_directory_iterator(root / part)) {
            const fs::path& path = entry.path();
            if (path.extension() != ".cpp" && path.extension() != ".h") {
                continue;
            }
            ++files;
            const std::string source = read_file(path);
            for (const MethodInfo& info : method_infos()) {
                const std::string name = to_string(info.kind);
                const auto own = own_files(name);
                if (info.kind == MethodKind::vanilla || info.kind == MethodKind::looped ||
                    std::find(own.begin(), own.end(), path) != own.end()) {
                    continue;
                }
                for (std::size_t at = 0;
                     (at = source.find("MethodKind::" + name, at)) != std::string::npos;) {
                    at += std::string_view("MethodKind::").size() + name.size();
                    const char next = at < source.size() ? source[at] : ' ';
                    EXPECT_TRUE(std::isalnum(static_cast<unsigned char>(next)) != 0 || next == '_')
                        << path << " names " << name;
                }
            }
        }
    }
    EXPECT_GT(files, 400);
    for (const MethodInfo& info : method_infos()) {
        for (const fs::path& file : own_files(to_string(info.kind))) {
            EXPECT_TRUE(fs::exists(file)) << file;
        }
    }
}

} // namespace
} // namespace ponderscope
