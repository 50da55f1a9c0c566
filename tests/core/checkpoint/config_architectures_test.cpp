// SPDX-License-Identifier: GPL-3.0-or-later
// config.json of each architecture: defaults of the configuration classes, precedence of keys, and what is
// refused.
#include "tests/core/checkpoint/support.h"

#include <algorithm>

namespace ponderscope {
namespace {

using namespace testing;

/// A small Llama or GPT-NeoX with more keys.
std::string llama(const std::string& more = {}) {
    return R"({"model_type":"llama","hidden_size":64,"num_hidden_layers":4,"num_attention_heads":4,"vocab_size":100)" +
           (more.empty() ? "" : "," + more) + "}";
}
ModelConfig read_llama(const std::string& more) {
    return read_config(llama(more));
}

std::string neox(const std::string& more = {}) {
    return R"({"model_type":"gpt_neox","hidden_size":64,"num_hidden_layers":4,"num_attention_heads":4,"vocab_size":100)" +
           (more.empty() ? "" : "," + more) + "}";
}
ModelConfig read_neox(const std::string& more) {
    return read_config(neox(more));
}

TEST(ConfigDefaults, Llama) {
    const ModelConfig c = read_config(R"({"model_type":"llama"})");
    EXPECT_EQ(c.architecture, Architecture::llama);
    EXPECT_EQ(c.vocab_size, 32000);
    EXPECT_EQ(c.hidden_size, 4096);
    EXPECT_EQ(c.layers, 32);
    EXPECT_EQ(c.query_heads, 32);
    EXPECT_EQ(c.kv_heads, 32);
    EXPECT_EQ(c.head_dim, 128);
    EXPECT_EQ(c.intermediate_size, 11008);
    EXPECT_EQ(c.max_positions, 2048);
    EXPECT_EQ(c.norm, NormKind::rms_norm);
    EXPECT_EQ(c.norm_eps, 1e-6);
    EXPECT_EQ(c.activation, Activation::silu);
    EXPECT_FALSE(c.attention_bias || c.mlp_bias || c.tied_embeddings || c.parallel_residual || c.qk_norm);
    EXPECT_EQ(c.rope.kind, RopeConfig::Kind::standard);
    EXPECT_EQ(c.rope.theta, 10000.0);
    EXPECT_EQ(c.rope.rotary_dims, 128);
    EXPECT_EQ(c.embed_dim, 4096);
    EXPECT_EQ(c.sliding_windows, std::vector<std::int64_t>(32, 0));
    EXPECT_EQ(c.ponder.method, MethodKind::vanilla);
    EXPECT_EQ(c.candidate_methods, std::vector{MethodKind::vanilla});
    EXPECT_EQ(c.depth.kind, DepthMixing::none);
    EXPECT_TRUE(c.notices.empty());
}

TEST(ConfigDefaults, GptNeoX) {
    const ModelConfig c = read_config(R"({"model_type":"gpt_neox"})");
    EXPECT_EQ(c.vocab_size, 50432);
    EXPECT_EQ(c.hidden_size, 6144);
    EXPECT_EQ(c.layers, 44);
    EXPECT_EQ(c.query_heads, 64);
    EXPECT_EQ(c.head_dim, 96);
    EXPECT_EQ(c.intermediate_size, 24576);
    EXPECT_EQ(c.norm, NormKind::layer_norm);
    EXPECT_EQ(c.norm_eps, 1e-5);
    EXPECT_EQ(c.activation, Activation::gelu);
    EXPECT_TRUE(c.parallel_residual && c.attention_bias && c.mlp_bias);
    EXPECT_FALSE(c.tied_embeddings);
    EXPECT_EQ(c.rope.rotary_dims, 24);
    EXPECT_EQ(c.rope.theta, 10000.0);
    EXPECT_EQ(c.bos_token_id, 0);
    EXPECT_EQ(c.eos_token_ids, std::vector<std::int64_t>{2});
    EXPECT_TRUE(c.notices.empty());
}

TEST(ConfigDefaults, Gpt2) {
    const ModelConfig c = read_config(R"({"model_type":"gpt2"})");
    EXPECT_EQ(c.vocab_size, 50257);
    EXPECT_EQ(c.hidden_size, 768);
    EXPECT_EQ(c.intermediate_size, 3072);
    EXPECT_EQ(c.max_positions, 1024);
    EXPECT_EQ(c.activation, Activation::gelu_tanh);
    EXPECT_TRUE(c.tied_embeddings && c.scale_attn_weights && c.attention_bias && c.mlp_bias);
    EXPECT_FALSE(c.scale_attn_by_inverse_layer_idx);
    EXPECT_EQ(c.rope.kind, RopeConfig::Kind::none);
    EXPECT_EQ(read_config(R"({"model_type":"gpt2","hidden_size":24})").hidden_size, 24) << "the common name";
    expect_refused(R"({"model_type":"gpt2","n_embd":12,"hidden_size":24})", "\"hidden_size\"");
}

TEST(ConfigDefaults, TheOthers) {
    ModelConfig c = read_config(R"({"model_type":"mistral"})");
    EXPECT_EQ(c.kv_heads, 8);
    EXPECT_EQ(c.sliding_windows, std::vector<std::int64_t>(32, 4096));
    EXPECT_EQ(read_config(R"({"model_type":"mistral","sliding_window":null})").sliding_windows,
              std::vector<std::int64_t>(32, 0));
    EXPECT_EQ(read_config(R"({"model_type":"mistral","num_key_value_heads":null})").kv_heads, 32);
    c = read_config(R"({"model_type":"qwen2"})");
    EXPECT_TRUE(c.attention_bias);
    EXPECT_EQ(c.bos_token_id, std::nullopt);
    EXPECT_TRUE(c.eos_token_ids.empty());
    EXPECT_EQ(c.sliding_windows, std::vector<std::int64_t>(32, 0));
    c = read_config(R"({"model_type":"qwen3"})");
    EXPECT_EQ(c.head_dim, 128);
    EXPECT_TRUE(c.qk_norm);
    EXPECT_FALSE(c.attention_bias);
    c = read_config(R"({"model_type":"phi"})");
    EXPECT_EQ(c.rope.rotary_dims, 32);
    EXPECT_TRUE(c.parallel_residual && c.attention_bias && c.mlp_bias);
    EXPECT_EQ(c.activation, Activation::gelu_tanh);
    c = read_config(R"({"model_type":"opt"})");
    EXPECT_EQ(c.intermediate_size, 3072);
    EXPECT_EQ(c.activation, Activation::relu);
    EXPECT_TRUE(c.tied_embeddings && c.pre_norm && !c.remove_final_norm);
    EXPECT_EQ(c.norm_eps, 1e-5);
    EXPECT_EQ(c.rope.kind, RopeConfig::Kind::none);
    c = read_config(R"({"model_type":"nanbeige"})");
    EXPECT_EQ(c.norm_eps, 1e-6);
    EXPECT_EQ(c.ponder.method, MethodKind::vanilla);
}

TEST(ConfigValues, NullsAreAbsentExceptWhereTheyMeanNone) {
    const ModelConfig c =
        read_llama(R"("rms_norm_eps":null,"rope_theta":null,"rope_scaling":null,"head_dim":null,
        "num_key_value_heads":null,"tie_word_embeddings":null,"bos_token_id":null,"eos_token_id":null,"quantization_config":null)");
    EXPECT_EQ(c.norm_eps, 1e-6);
    EXPECT_EQ(c.kv_heads, 4);
    EXPECT_EQ(c.head_dim, 16);
    EXPECT_EQ(c.bos_token_id, std::nullopt);
    EXPECT_TRUE(c.eos_token_ids.empty());
}

TEST(ConfigValues, TokenIds) {
    EXPECT_EQ(read_llama(R"("eos_token_id":[3,1,3])").eos_token_ids, (std::vector<std::int64_t>{3, 1}));
    EXPECT_TRUE(read_llama(R"("eos_token_id":-1)").eos_token_ids.empty());
    expect_refused(llama(R"("eos_token_id":"</s>")"), "\"eos_token_id\"");
    expect_refused(llama(R"("eos_token_id":[1,"x"])"), "\"eos_token_id\"");
    expect_refused(llama(R"("bos_token_id":18446744073709551615)"), "\"bos_token_id\"");
}

TEST(ConfigValues, ActivationsByEveryName) {
    const std::vector<std::pair<std::string, Activation>> names{{"gelu", Activation::gelu},
                                                                {"gelu_python", Activation::gelu},
                                                                {"gelu_new", Activation::gelu_tanh},
                                                                {"gelu_fast", Activation::gelu_tanh},
                                                                {"gelu_pytorch_tanh", Activation::gelu_tanh},
                                                                {"quick_gelu", Activation::quick_gelu},
                                                                {"relu", Activation::relu},
                                                                {"relu2", Activation::relu_squared},
                                                                {"silu", Activation::silu},
                                                                {"swish", Activation::silu},
                                                                {"sigmoid", Activation::sigmoid},
                                                                {"tanh", Activation::tanh},
                                                                {"mish", Activation::mish},
                                                                {"linear", Activation::linear}};
    for (const auto& [name, activation] : names) {
        EXPECT_EQ(read_llama("\"hidden_act\":\"" + name + "\"").activation, activation) << name;
    }
    expect_refused(llama(R"("hidden_act":"laplace")"), "\"hidden_act\"");
}

TEST(ConfigErrors, NameTheKey) {
    const std::pair<std::string, const char*> cases[]{
        {"{}", "\"model_type\""},
        {llama(R"("quantization_config":{"quant_method":"gptq"})"), "\"quantization_config\""},
        {llama(R"("is_causal":false)"), "\"is_causal\""},
        {llama(R"("num_key_value_heads":3)"), "\"num_key_value_heads\""},
        {R"({"model_type":"mistral","num_attention_heads":4})", "\"num_key_value_heads\""},
        {R"({"model_type":"llama","hidden_size":65})", "\"hidden_size\""},
        {neox(R"("head_dim":32)"), "\"head_dim\""},
        {llama(R"("rms_norm_eps":-1)"), "\"rms_norm_eps\""},
        {llama(R"("rms_norm_eps":1e39)"), "\"rms_norm_eps\""},
        {llama(R"("rope_theta":0)"), "\"rope_theta\""},
        {llama(R"("tie_word_embeddings":"yes")"), "\"tie_word_embeddings\""},
        {llama(R"("head_dim":15)"), " 15 "},
        {llama(R"("partial_rotary_factor":0.5)"), "\"partial_rotary_factor\""},
        {llama(R"("rope_parameters":{"partial_rotary_factor":0.5})"),
         "\"rope_parameters.partial_rotary_factor\""},
        {neox(R"("rotary_pct":1.5)"), "\"rotary_pct\""},
        {neox(R"("rotary_pct":0.33)"), " 5 "},
        {llama(R"("rope_scaling":{"type":"ntk","factor":2})"), "\"rope_scaling.type\""},
        {llama(R"("rope_scaling":{"type":"linear"})"), "\"rope_scaling.factor\""},
        {llama(
             R"("rope_parameters":{"rope_type":"llama3","factor":8,"low_freq_factor":4,"high_freq_factor":4})"),
         "\"rope_parameters.high_freq_factor\""},
        {llama(R"("rope_scaling":{"type":"yarn","factor":2,"rope_theta":1})"), "\"rope_scaling.rope_theta\""},
        {R"({"model_type":"phi","qk_layernorm":true})", "\"qk_layernorm\""},
        {R"({"model_type":"qwen2","num_hidden_layers":2,"layer_types":["full_attention"]})",
         "\"layer_types\""},
        {R"({"model_type":"qwen2","num_hidden_layers":1,"layer_types":["linear_attention"]})",
         "\"layer_types\""},
        {R"({"model_type":"qwen2","num_hidden_layers":1,"layer_types":["sliding_attention"]})",
         "\"use_sliding_window\""},
        {R"({"model_type":"nanbeige","enable_mhc":true})", "\"enable_mhc\""},
        {R"({"model_type":"nanbeige","loop_middle_layers":2})", "\"loop_middle_layers\""},
        {R"({"model_type":"nanbeige","insert_ngram_layer_idx":[1]})", "\"insert_ngram_layer_idx\""},
        {R"({"model_type":"nanbeige","enable_depth_attention":true,"depth_attention_recent_window":1})",
         "\"depth_attention_recent_window\""}};
    for (const auto& [text, part] : cases) {
        expect_refused(text, part);
    }
    expect_refused(std::string(100'000, '['), "64");
    expect_refused(std::string("{\"model_type\":\"llama\"} \0", 24), "line 1, byte 24");
}

TEST(ConfigErrors, TheFileItself) {
    TemporaryFolder folder;
    EXPECT_EQ(error_id([&] { read_model_config(folder / "config.json"); }), "file.missing");
    expect_refused("", "[json.syntax]");
    EXPECT_EQ(read_config("{\"model_type\":\"llama\",\"model_type\":\"opt\"}").architecture,
              Architecture::opt)
        << "as Python reads it";
}

TEST(Rope, LlamaTakesTheInnerKeysFirst) {
    RopeConfig rope =
        read_llama(R"("rope_theta":1000,"rope_parameters":{"rope_theta":500,"rope_type":"default"})").rope;
    EXPECT_EQ(rope.theta, 500.0);
    rope = read_llama(R"("rope_theta":1000,"rope_parameters":{"rope_type":"linear","factor":2})").rope;
    EXPECT_EQ(rope.theta, 1000.0);
    EXPECT_EQ(rope.kind, RopeConfig::Kind::linear);
    rope = read_llama(R"("rope_theta":1000,"rope_scaling":{})").rope;
    EXPECT_EQ(rope.theta, 1000.0);
    EXPECT_EQ(read_llama(R"("rope_scaling":{"type":"linear","rope_type":"dynamic","factor":2})").rope.kind,
              RopeConfig::Kind::dynamic)
        << "the newer name wins";
}

TEST(Rope, ScalingReplacesParameters) {
    const ModelConfig c = read_llama(
        R"("rope_theta":1000,"rope_scaling":{"type":"linear","factor":2},"rope_parameters":{"rope_theta":5,"rope_type":"default"})");
    EXPECT_EQ(c.rope.kind, RopeConfig::Kind::linear);
    EXPECT_EQ(c.rope.theta, 1000.0) << "the other's base is ignored with it";
    EXPECT_EQ(ids_of(c.notices), NoticeIds{NoticeId::config_overridden});
    EXPECT_EQ(read_llama(R"("rope_scaling":{},"rope_parameters":{"rope_theta":5,"rope_type":"default"})")
                  .rope.theta,
              5.0)
        << "an empty one replaces nothing";
}

TEST(Rope, OriginalLength) {
    const std::string llama3 = R"("rope_type":"llama3","factor":8,"low_freq_factor":1,"high_freq_factor":4)";
    const auto original = [](const std::string& more) {
        return read_llama(R"("max_position_embeddings":4096,)" + more).rope.original_max_positions;
    };
    EXPECT_EQ(original("\"rope_scaling\":{" + llama3 + ",\"original_max_position_embeddings\":512}"), 512);
    EXPECT_EQ(original("\"rope_scaling\":{" + llama3 + "}"), 4096) << "missing: the maximum, for llama3 too";
    EXPECT_EQ(original("\"original_max_position_embeddings\":256,\"rope_scaling\":{" + llama3 +
                       ",\"original_max_position_embeddings\":512}"),
              256)
        << "transformers gives the top level priority here";
    EXPECT_EQ(original(R"("rope_scaling":{"type":"yarn","factor":4})"), 4096);
    EXPECT_EQ(
        original(R"("rope_scaling":{"type":"dynamic","factor":4,"original_max_position_embeddings":512})"),
        4096)
        << "dynamic goes by max_position_embeddings";
}

TEST(Rope, SaysWhichOfTwoValuesCounts) {
    const auto notices = [](const std::string& more) { return ids_of(read_llama(more).notices); };
    const std::string llama3 = R"("rope_type":"llama3","factor":8,"low_freq_factor":1,"high_freq_factor":4)";
    const auto lengths = [&](int inside, int beside) {
        return notices("\"rope_scaling\":{" + llama3 +
                       ",\"original_max_position_embeddings\":" + std::to_string(inside) +
                       "},\"original_max_position_embeddings\":" + std::to_string(beside));
    };
    EXPECT_EQ(lengths(512, 256), NoticeIds{NoticeId::config_overridden});
    EXPECT_TRUE(lengths(512, 512).empty());
    EXPECT_EQ(notices(R"("rope_theta":5,"rope_parameters":{"rope_theta":6})"),
              NoticeIds{NoticeId::config_overridden});
    EXPECT_TRUE(notices(R"("rope_theta":5,"rope_parameters":{"rope_theta":5})").empty());
    EXPECT_EQ(notices(R"("rope_scaling":{"type":"linear","rope_type":"yarn","factor":2})"),
              NoticeIds{NoticeId::config_ignored});
}

TEST(Rope, NamesKeysThatItsKindDoesNotRead) {
    const auto notices = [](const std::string& section) {
        return read_llama("\"rope_scaling\":{" + section + "}").notices;
    };
    const Notices unknown =
        notices(R"("type":"linear","factor":2,"alpha":1,"mrope_section":[2,1,1],"beta_fast":3)");
    ASSERT_EQ(ids_of(unknown), NoticeIds{NoticeId::config_unread});
    EXPECT_NE(unknown[0].text.find("alpha, beta_fast, mrope_section"), std::string::npos) << unknown[0].text;
    EXPECT_TRUE(notices(R"("type":"yarn","factor":2,"beta_fast":3,"finetuned":true)").empty());
}

TEST(Rope, Yarn) {
    const RopeConfig rope =
        read_llama(R"("rope_scaling":{"type":"yarn","factor":4,"attention_factor":1.5,"beta_fast":16,
        "beta_slow":2,"mscale":0.7,"mscale_all_dim":0.8,"truncate":false})")
            .rope;
    EXPECT_EQ(rope.attention_factor, 1.5);
    EXPECT_EQ(rope.beta_fast, 16.0);
    EXPECT_EQ(rope.beta_slow, 2.0);
    EXPECT_EQ(rope.mscale, 0.7);
    EXPECT_EQ(rope.mscale_all_dim, 0.8);
    EXPECT_FALSE(rope.truncate);
    const RopeConfig plain = read_llama(R"("rope_scaling":{"type":"yarn","factor":4})").rope;
    EXPECT_EQ(plain.attention_factor, std::nullopt);
    EXPECT_EQ(plain.beta_fast, 32.0);
    EXPECT_TRUE(plain.truncate);
}

TEST(Rope, DynamicIsAnnounced) {
    EXPECT_EQ(ids_of(read_llama(R"("rope_scaling":{"type":"dynamic","factor":2})").notices),
              NoticeIds{NoticeId::config_length});
    expect_refused(llama(R"("head_dim":2,"rope_scaling":{"type":"dynamic","factor":2})"),
                   "\"rope_scaling.type\"");
}

TEST(Rope, GptNeoXHasItsOwnNames) {
    ModelConfig c = read_neox(R"("rotary_pct":0.5,"rotary_emb_base":500)");
    EXPECT_EQ(c.rope.theta, 500.0);
    EXPECT_EQ(c.rope.rotary_dims, 8);
    c = read_neox(R"("rope_theta":777)");
    EXPECT_EQ(c.rope.theta, 10000.0) << "a lone rope_theta is not read";
    EXPECT_EQ(ids_of(c.notices), NoticeIds{NoticeId::config_ignored});
    c = read_neox(R"("partial_rotary_factor":1.0)");
    EXPECT_EQ(c.rope.rotary_dims, 4);
    EXPECT_EQ(ids_of(c.notices), NoticeIds{NoticeId::config_ignored});
    c = read_neox(R"("rotary_emb_base":500,"rotary_pct":0.25,"rope_theta":500,"partial_rotary_factor":0.25)");
    EXPECT_TRUE(c.notices.empty()) << "they agree";
    c = read_neox(
        R"("rotary_emb_base":500,"rotary_pct":0.5,"rope_parameters":{"rope_theta":30,"partial_rotary_factor":1.0})");
    EXPECT_EQ(c.rope.theta, 30.0) << "inside wins";
    EXPECT_EQ(c.rope.rotary_dims, 16);
    EXPECT_EQ(read_neox(R"("rotary_pct":0.5,"rope_scaling":{"type":"linear","factor":3})").rope.rotary_dims,
              8);
    EXPECT_EQ(read_neox(R"("rotary_pct":0)").rope.kind, RopeConfig::Kind::none);
}

TEST(SlidingWindows, LayerTypesWinOverMaxWindowLayers) {
    const ModelConfig c = read_config(
        R"({"model_type":"qwen3","num_hidden_layers":3,"use_sliding_window":true,"sliding_window":9,
        "max_window_layers":0,"layer_types":["full_attention","sliding_attention","full_attention"]})");
    EXPECT_EQ(c.sliding_windows, (std::vector<std::int64_t>{0, 9, 0}));
    const ModelConfig mistral = read_config(
        R"({"model_type":"mistral","num_hidden_layers":3,"sliding_window":9,
        "layer_types":["sliding_attention","full_attention","sliding_attention"]})");
    EXPECT_EQ(mistral.sliding_windows, (std::vector<std::int64_t>{9, 0, 9}));
    const std::string sliding = R"("layer_types":["sliding_attention"]})";
    expect_refused(R"({"model_type":"mistral","num_hidden_layers":1,"sliding_window":null,)" + sliding,
                   "\"sliding_window\"");
    expect_refused(R"({"model_type":"mistral","num_hidden_layers":2,)" + sliding, "\"layer_types\"");
}

TEST(ConfigErrors, AnotherArchitectureIsNamedAndNotTheFile) {
    const std::string said = config_sentence(R"({"model_type":"mamba2","time_step_limit":[0.0,Infinity]})");
    EXPECT_NE(said.find("\"mamba2\""), std::string::npos) << said;
    EXPECT_EQ(said.find("config.json"), std::string::npos) << said;
}

TEST(UnreadKeys, AreNamed) {
    const auto named = [](const std::string& config, const std::string& key) {
        return std::ranges::any_of(read_config(config).notices, [&](const Notice& notice) {
            return notice.id == NoticeId::config_unread && notice.text.find(key) != std::string::npos;
        });
    };
    EXPECT_TRUE(named(llama(R"("sliding_window":7)"), "sliding_window"));
    EXPECT_TRUE(named(llama(R"("layer_types":["sliding_attention"])"), "layer_types"));
    EXPECT_TRUE(named(llama(R"("attention_multiplier":0.5)"), "attention_multiplier"));
    EXPECT_TRUE(named(R"({"model_type":"gpt2","layer_types":["full_attention"]})", "layer_types"));
    EXPECT_TRUE(read_llama(R"("transformers_version":"5","use_cache":true,"sliding_window":null,
                                  "use_something":false,"pad_token_id":3,"torch_dtype":"float32")")
                    .notices.empty());
}

TEST(NullSizes, AreRefused) {
    for (const char* const key : {"hidden_size", "vocab_size", "num_hidden_layers", "num_attention_heads",
                                  "intermediate_size", "max_position_embeddings"}) {
        expect_refused("{\"model_type\":\"gpt_neox\",\"" + std::string(key) + "\":null}", key);
    }
    EXPECT_EQ(read_config(R"({"model_type":"gpt2","n_inner":null,"n_embd":24})").intermediate_size, 96);
    EXPECT_EQ(ids_of(read_config(R"({"model_type":"gpt2","tie_word_embeddings":null})").notices),
              NoticeIds{NoticeId::config_assumed});
}

} // namespace
} // namespace ponderscope
