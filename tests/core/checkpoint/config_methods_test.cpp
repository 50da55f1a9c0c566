// SPDX-License-Identifier: GPL-3.0-or-later
// Which method and which depth mixing the keys of a config mean.
#include "tests/core/checkpoint/support.h"

namespace ponderscope {
namespace {

using namespace testing;
using Methods = std::vector<MethodKind>;

std::string model(const std::string& type, const std::string& more) {
    return "{\"model_type\":\"" + type +
           R"(","hidden_size":64,"num_hidden_layers":4,"num_attention_heads":4,"vocab_size":60000,)" + more +
           "}";
}
std::string llama_with(const std::string& more) {
    return model("llama", more);
}
ModelConfig read_llama_with(const std::string& more, std::optional<MethodKind> method = std::nullopt) {
    return read_config(llama_with(more), method);
}
std::string neox_with(const std::string& more) {
    return model("gpt_neox", more);
}
ModelConfig read_neox_with(const std::string& more, std::optional<MethodKind> method = std::nullopt) {
    return read_config(neox_with(more), method);
}
std::string own(const std::string& section) {
    return llama_with("\"pondering\":{" + section + "}");
}
ModelConfig read_own(const std::string& section, std::optional<MethodKind> method = std::nullopt) {
    return read_config(own(section), method);
}

TEST(PublicKeys, PonderLm) {
    ModelConfig c = read_llama_with(
        R"("ponderinglm":true,"pondering_steps":3,"mutiply_pondering_steps":true,"scale_embeds":true,
        "softmax_temperature":0.5,"top_k":50)");
    EXPECT_EQ(c.candidate_methods, Methods{MethodKind::ponderlm});
    EXPECT_EQ(c.ponder.method, MethodKind::ponderlm);
    EXPECT_EQ(c.ponder.max_steps, 3);
    EXPECT_TRUE(c.ponder.multiply_start);
    EXPECT_EQ(c.ponder.embed_scale, EmbedScale::sqrt_d);
    EXPECT_EQ(c.ponder.temperature, 0.5);
    EXPECT_EQ(c.ponder.top_k, 0) << "the sampling default of that name is never read";
    EXPECT_TRUE(c.notices.empty());

    c = read_neox_with(R"("ponderinglm":true,"pondering_steps":2,"softmax_temperature":0.5)");
    EXPECT_EQ(c.ponder.temperature, 1.0);
    EXPECT_EQ(ids_of(c.notices), NoticeIds{NoticeId::config_ignored});
    EXPECT_EQ(read_llama_with(R"("ponderinglm":true,"pondering_steps":0,"mutiply_pondering_steps":true)")
                  .ponder.max_steps,
              0);
}

TEST(PublicKeys, PonderLmRunsOnlyWhenItSaysSo) {
    EXPECT_EQ(read_llama_with(R"("ponderinglm":false,"pondering_steps":3)").ponder.method,
              MethodKind::vanilla);
    ModelConfig c = read_llama_with(R"("pondering_steps":3)");
    EXPECT_EQ(c.ponder.method, MethodKind::vanilla);
    EXPECT_EQ(ids_of(c.notices), NoticeIds{NoticeId::config_ignored});
    c = read_llama_with(R"("pondering_steps":3)", MethodKind::ponderlm);
    EXPECT_EQ(c.ponder.method, MethodKind::ponderlm) << "the user says so where the config is silent";
    c = read_llama_with(R"("ponderinglm":false,"pondering_steps":3)", MethodKind::ponderlm);
    EXPECT_EQ(c.ponder.method, MethodKind::vanilla);
    EXPECT_EQ(ids_of(c.notices), NoticeIds{NoticeId::config_switched_off});
    expect_refused(llama_with(R"("ponderinglm":true)"), "\"pondering_steps\"");
    expect_refused(llama_with(R"("ponderinglm":true,"pondering_steps":-1)"), "\"pondering_steps\"");
    expect_refused(llama_with(R"("ponderinglm":true,"pondering_steps":1,"softmax_temperature":0)"),
                   "\"softmax_temperature\"");
}

TEST(PublicKeys, Gpt2PondersByEitherFlag) {
    const std::string base = R"({"model_type":"gpt2","n_embd":64,"n_head":4,)";
    ModelConfig c = read_config(base + R"("ponderinglm":true,"pondering_steps":2})");
    EXPECT_EQ(c.ponder.method, MethodKind::ponderlm);
    EXPECT_EQ(ids_of(c.notices), NoticeIds{NoticeId::config_assumed}) << "theirs would not";
    c = read_config(base + R"("recurrent_model":true,"pondering_steps":2})");
    EXPECT_EQ(c.ponder.method, MethodKind::ponderlm);
    EXPECT_TRUE(c.notices.empty());
    EXPECT_EQ(c.ponder.max_steps, 2);
}

TEST(PublicKeys, FiveMethodsShareKeysAndTheReaderAsks) {
    const std::string keys = R"("num_latent_thoughts":2,"scale_embeds":true)";
    EXPECT_EQ(
        read_llama_with(keys + ",\"recurrent_model\":true").candidate_methods,
        (Methods{MethodKind::ponderlm2, MethodKind::looped, MethodKind::pause, MethodKind::ponderlm_reset}));
    EXPECT_EQ(
        read_neox_with(keys + ",\"recurrent_model\":true").candidate_methods,
        (Methods{MethodKind::ponderlm2, MethodKind::looped, MethodKind::pause, MethodKind::ponderlm_hidden}));
    EXPECT_EQ(read_neox_with(keys).candidate_methods, (Methods{MethodKind::ponderlm2, MethodKind::pause}))
        << "on GPT-NeoX these two do not ask for the flag";
    const ModelConfig off = read_llama_with(keys);
    EXPECT_EQ(off.candidate_methods, Methods{MethodKind::vanilla});
    EXPECT_EQ(off.ponder.embed_scale, EmbedScale::none);
    EXPECT_EQ(off.notices.size(), 2U);
}

TEST(PublicKeys, TheFlagSwitchesOff) {
    const std::string keys = R"("num_latent_thoughts":2,"scale_embeds":true)";
    for (const MethodKind method : {MethodKind::looped, MethodKind::ponderlm_reset,
                                    MethodKind::ponderlm_hidden, MethodKind::ponderlm2}) {
        const ModelConfig c = read_llama_with(keys, method);
        EXPECT_EQ(c.ponder.method, MethodKind::vanilla) << to_string(method);
        EXPECT_EQ(c.ponder.embed_scale, EmbedScale::none);
        EXPECT_EQ(c.ponder.max_steps, 0);
        EXPECT_EQ(c.notices.at(0).id, NoticeId::config_switched_off);
    }
    EXPECT_EQ(read_llama_with(keys, MethodKind::pause).ponder.method, MethodKind::pause);
    EXPECT_EQ(read_neox_with(keys, MethodKind::ponderlm2).ponder.method, MethodKind::ponderlm2);
}

TEST(PublicKeys, ScalesOfTheRelatives) {
    const auto scale = [](const std::string& text, MethodKind method) {
        return read_config(text, method).ponder.embed_scale;
    };
    const std::string on = R"("num_latent_thoughts":2,"recurrent_model":true)";
    const std::string scaled = on + ",\"scale_embeds\":true";
    EXPECT_EQ(scale(llama_with(on), MethodKind::looped), EmbedScale::sqrt_2_5_d);
    EXPECT_EQ(scale(llama_with(on), MethodKind::pause), EmbedScale::sqrt_d);
    EXPECT_EQ(scale(neox_with(on), MethodKind::pause), EmbedScale::none);
    EXPECT_EQ(scale(neox_with(scaled), MethodKind::pause), EmbedScale::sqrt_d);
    EXPECT_EQ(scale(llama_with(on), MethodKind::ponderlm_reset), EmbedScale::none);
    EXPECT_EQ(scale(llama_with(scaled), MethodKind::ponderlm_reset), EmbedScale::sqrt_d);
    EXPECT_EQ(scale(neox_with(scaled), MethodKind::ponderlm_hidden), EmbedScale::none);
    EXPECT_EQ(scale(llama_with(scaled), MethodKind::ponderlm2), EmbedScale::sqrt_2_5_d);
    EXPECT_EQ(scale(llama_with(scaled + ",\"interpolation\":true"), MethodKind::ponderlm2),
              EmbedScale::sqrt_d);
    EXPECT_EQ(scale(llama_with(on), MethodKind::ponderlm2), EmbedScale::none);
    const ModelConfig plain = read_llama_with("\"scale_embeds\":true");
    EXPECT_EQ(plain.ponder.embed_scale, EmbedScale::none);
    EXPECT_EQ(ids_of(plain.notices), NoticeIds{NoticeId::config_ignored});
}

TEST(PublicKeys, PonderLm2AndPauseDetails) {
    const std::string on = R"("num_latent_thoughts":2,"recurrent_model":true)";
    PonderConfig p = read_llama_with(on, MethodKind::ponderlm2).ponder;
    EXPECT_EQ(p.jacobi_iterations, 3) << "where the key is absent";
    EXPECT_EQ(p.interpolation_topk, 100);
    p = read_llama_with(
            on +
                R"(,"num_jacobi_iterations":0,"interpolation":true,"interpolation_use_topk":true,"interpolation_topk":7)",
            MethodKind::ponderlm2)
            .ponder;
    EXPECT_EQ(p.jacobi_iterations, 0);
    EXPECT_TRUE(p.interpolation && p.interpolation_use_topk);
    EXPECT_EQ(p.interpolation_topk, 7);
    EXPECT_TRUE(read_llama_with(on + ",\"residual_interpolated_embeds\":true", MethodKind::ponderlm_reset)
                    .ponder.residual_interpolated_embeds);
    EXPECT_EQ(read_llama_with(on, MethodKind::pause).ponder.pause_token_id, 50288);
    expect_refused(llama_with(on + ",\"pause_token_id\":60000"), "\"pause_token_id\"", MethodKind::pause);
    expect_refused(llama_with("\"recurrent_model\":true"), "\"num_latent_thoughts\"", MethodKind::looped);
    expect_refused(llama_with("\"rope_theta\":5"), "\"pondering\"", MethodKind::adaponderlm);
}

TEST(OwnSection, EveryKey) {
    ModelConfig c = read_own(R"("method":"adaponderlm","max_steps":3,"threshold":0.25,"embed_scale":"sqrt_d",
        "multiply_start":true,"top_k":10)");
    EXPECT_EQ(c.ponder.method, MethodKind::adaponderlm);
    EXPECT_EQ(c.candidate_methods, Methods{MethodKind::adaponderlm});
    EXPECT_EQ(c.ponder.max_steps, 3);
    EXPECT_EQ(c.ponder.threshold, 0.25);
    EXPECT_EQ(c.ponder.embed_scale, EmbedScale::sqrt_d);
    EXPECT_TRUE(c.ponder.multiply_start);
    EXPECT_EQ(c.ponder.top_k, 10);
    EXPECT_EQ(c.ponder.temperature, 1.0);

    c = read_own(
        R"("method":"ponderlm3","max_steps":2,"threshold":0,"embed_scale":"sqrt_2.5d","remainder":"drop")");
    EXPECT_EQ(c.ponder.threshold, 0.0);
    EXPECT_EQ(c.ponder.embed_scale, EmbedScale::sqrt_2_5_d);
    EXPECT_EQ(c.ponder.remainder, Remainder::drop);
    EXPECT_EQ(c.ponder.jacobi_iterations, std::nullopt);

    c = read_own(R"("method":"adaptive_latent_cot","max_steps":2)");
    EXPECT_EQ(c.ponder.threshold, 1e-4);
    EXPECT_EQ(c.ponder.embed_scale, EmbedScale::none);
    EXPECT_EQ(c.ponder.remainder, Remainder::last);

    EXPECT_EQ(read_own(R"("method":"looped","pondering_steps":2)").ponder.max_steps, 2);
    EXPECT_EQ(read_own(R"("method":"ponderlm2","num_latent_thoughts":2)").ponder.max_steps, 2);
    EXPECT_EQ(read_own(R"("method":"looped","max_steps":2)").ponder.embed_scale, EmbedScale::none)
        << "embed_scale alone decides here";
    EXPECT_EQ(read_own(R"("method":"vanilla")").ponder.max_steps, 0);
    c = read_llama_with(R"("pause_token_id":5,"pondering":{"method":"pause","max_steps":2})");
    EXPECT_EQ(c.ponder.pause_token_id, 5);
    c = read_own(R"("method":"adaponderlm","max_steps":3)", MethodKind::vanilla);
    EXPECT_EQ(c.ponder.method, MethodKind::vanilla) << "--method wins";
}

TEST(OwnSection, EveryFaultNamesItsKey) {
    const std::pair<std::string, const char*> cases[]{
        {R"("method":"ponder")", "\"pondering.method\""},
        {R"("max_steps":3)", "\"pondering.method\""},
        {R"("method":"ponderlm")", "\"pondering.max_steps\""},
        {R"("method":"ponderlm","max_steps":-1)", "\"pondering.max_steps\""},
        {R"("method":"looped","max_steps":1000000000)", "\"pondering.max_steps\""},
        {R"("method":"ponderlm","max_steps":1,"pondering_steps":2)", "\"pondering.pondering_steps\""},
        {R"("method":"ponderlm","max_steps":1,"lambda":0.1)", "\"lambda\""},
        {R"("method":"ponderlm3","max_steps":1,"threshold":-0.1)", "\"pondering.threshold\""},
        {R"("method":"ponderlm3","max_steps":1,"threshold":2)", "\"pondering.threshold\""},
        {R"("method":"ponderlm3","max_steps":1,"threshold":1)", "\"pondering.threshold\""},
        {R"("method":"ponderlm","max_steps":1,"embed_scale":"sqrt_2.5_d")", "\"pondering.embed_scale\""},
        {R"("method":"ponderlm3","max_steps":1,"remainder":"first")", "\"pondering.remainder\""},
        {R"("method":"ponderlm","max_steps":1,"top_k":60001)", "\"pondering.top_k\""},
        {R"("method":"ponderlm","max_steps":1,"threshold":0.5)", "\"pondering.threshold\""},
        {R"("method":"ponderlm3","max_steps":1,"multiply_start":true)", "\"pondering.multiply_start\""},
        {R"("method":"ponderlm3","max_steps":1,"key_norm":"after_rope")", "\"pondering.key_norm\""},
        {R"("method":"pause","max_steps":1,"top_k":5)", "\"pondering.top_k\""}};
    for (const auto& [section, part] : cases) {
        expect_refused(own(section), part);
    }
    expect_refused(llama_with("\"pondering\":true"), "\"pondering\"");
    EXPECT_EQ(
        config_sentence(own(R"("method":"ponderlm","max_steps":1,"threshold":1e-4,"remainder":"last")")), "")
        << "a default does no harm";
}

TEST(OwnSection, PublicKeysBesideItAreIgnoredAloud) {
    const ModelConfig c =
        read_llama_with(R"("scale_embeds":true,"pondering":{"method":"ponderlm","max_steps":1})");
    EXPECT_EQ(c.ponder.embed_scale, EmbedScale::none);
    EXPECT_EQ(ids_of(c.notices), NoticeIds{NoticeId::config_ignored});
}

TEST(DepthAttention, PresentAndOlderKeys) {
    ModelConfig c =
        read_llama_with(R"("recurrent_model":true,"use_depth_attention":true,"depth_attention_stride":2,
        "depth_softmax_stride":3,"depth_attention_recent_window":1,"depth_recent_window":4,"use_qk_norm":true,"scale_embeds":true)");
    EXPECT_EQ(c.depth.kind, DepthMixing::depth_attention);
    EXPECT_EQ(c.depth.stride, 2);
    EXPECT_EQ(c.depth.recent_window, 1);
    EXPECT_TRUE(c.depth.use_qk_norm && c.depth.key_norm_after_rope);
    EXPECT_EQ(c.ponder.method, MethodKind::vanilla);
    EXPECT_EQ(c.ponder.embed_scale, EmbedScale::sqrt_d);
    EXPECT_TRUE(c.notices.empty());
    for (const char* const pattern : {"depth_softmax", "depth_attention"}) {
        c = read_llama_with("\"recurrent_model\":true,\"depth_softmax_stride\":3,\"depth_recent_window\":4,"
                            "\"cross_layer_pattern\":\"" +
                            std::string(pattern) + "\"");
        EXPECT_EQ(c.depth.kind, DepthMixing::depth_attention);
        EXPECT_EQ(c.depth.stride, 3);
        EXPECT_EQ(c.depth.recent_window, 4);
        EXPECT_FALSE(c.depth.use_qk_norm);
    }
}

TEST(DepthAttention, WhatIsSilentIsSaid) {
    ModelConfig c = read_llama_with(R"("use_depth_attention":true,"depth_attention_stride":2)");
    EXPECT_EQ(c.depth.kind, DepthMixing::depth_attention);
    EXPECT_EQ(ids_of(c.notices), NoticeIds{NoticeId::config_assumed}) << "recurrent_model is absent";
    c = read_llama_with(R"("use_depth_attention":true,"recurrent_model":true,"depth_attention_stride":null)");
    EXPECT_EQ(c.depth.stride, 1);
    EXPECT_EQ(ids_of(c.notices), NoticeIds{NoticeId::config_assumed}) << "no stride";
    for (const char* const stride : {"0", "1"}) {
        EXPECT_EQ(
            read_llama_with("\"use_depth_attention\":true,\"depth_attention_stride\":" + std::string(stride))
                .depth.stride,
            1);
    }
    c = read_llama_with(R"("use_depth_attention":true,"recurrent_model":false,"depth_attention_stride":2)");
    EXPECT_EQ(c.depth.kind, DepthMixing::none);
    EXPECT_EQ(ids_of(c.notices), (NoticeIds{NoticeId::config_switched_off, NoticeId::config_unread}))
        << "the stride is not read";
    c = read_llama_with(R"("cross_layer_mode":"depth_softmax")");
    EXPECT_EQ(c.depth.kind, DepthMixing::none);
    EXPECT_EQ(ids_of(c.notices), NoticeIds{NoticeId::config_ignored});
}

TEST(DepthAttention, KeyNorm) {
    const std::string mix =
        R"("recurrent_model":true,"use_depth_attention":true,"depth_attention_stride":2,"use_qk_norm":true,)";
    EXPECT_FALSE(read_llama_with(mix + R"("pondering":{"method":"vanilla","key_norm":"before_rope"})")
                     .depth.key_norm_after_rope);
    EXPECT_TRUE(read_llama_with(mix + R"("pondering":{"method":"vanilla","key_norm":"after_rope"})")
                    .depth.key_norm_after_rope);
    EXPECT_TRUE(read_llama_with(mix + R"("pondering":{"method":"vanilla"})").depth.key_norm_after_rope);
    const ModelConfig qwen = read_config(
        model("qwen3", R"("num_key_value_heads":2,"use_depth_attention":true,"depth_attention_stride":2)"));
    EXPECT_EQ(qwen.depth.kind, DepthMixing::depth_attention);
    EXPECT_FALSE(qwen.depth.key_norm_after_rope);
    EXPECT_TRUE(qwen.depth.use_qk_norm);
}

TEST(Baselines, EveryName) {
    const std::vector<std::pair<std::string, DepthMixing>> names{
        {"mhc", DepthMixing::mhc},
        {"attnres", DepthMixing::attnres},
        {"block_attnres", DepthMixing::attnres},
        {"block-attnres", DepthMixing::attnres},
        {"attention_residual", DepthMixing::attnres},
        {"attention-residual", DepthMixing::attnres},
        {"denseformer", DepthMixing::denseformer},
        {"densetransformer", DepthMixing::denseformer},
        {"none", DepthMixing::none},
    };
    for (const char* const key : {"baseline_mode", "residual_baseline"}) {
        for (const auto& [name, kind] : names) {
            EXPECT_EQ(read_llama_with("\"" + std::string(key) + "\":\"" + name + "\"").depth.kind, kind)
                << name;
        }
    }
    EXPECT_EQ(read_llama_with(R"("baseline_mode":"none","residual_baseline":"mhc")").depth.kind,
              DepthMixing::mhc);
    EXPECT_EQ(read_llama_with(R"("baseline_mode":"attnres","residual_baseline":"block_attnres")").depth.kind,
              DepthMixing::attnres);
}

TEST(Baselines, NumbersAndTheirFallbacks) {
    DepthMixingConfig d = read_llama_with(R"("baseline_mode":"mhc")").depth;
    EXPECT_EQ(d.streams, 4);
    EXPECT_EQ(d.sinkhorn_iters, 20);
    d = read_llama_with(R"("baseline_mode":"mhc","mhc_num_streams":3,"mhc_sinkhorn_iters":5)").depth;
    EXPECT_EQ(d.streams, 3);
    EXPECT_EQ(d.sinkhorn_iters, 5);
    EXPECT_EQ(
        read_llama_with(R"("baseline_mode":"mhc","mhc_num_streams":3,"residual_baseline_num_streams":2)")
            .depth.streams,
        2);
    EXPECT_EQ(read_llama_with(R"("baseline_mode":"attnres")").depth.block_size, 12);
    const std::string dense = R"("baseline_mode":"denseformer","densetransformer_dwa_dilation":2,)";
    d = read_llama_with(dense + R"("densetransformer_dwa_period":3)").depth;
    EXPECT_EQ(d.dilation, 2);
    EXPECT_EQ(d.period, 3);
    d = read_llama_with(dense + R"("denseformer_dwa_dilation":4)").depth;
    EXPECT_EQ(d.dilation, 4);
    EXPECT_EQ(d.period, 1);
}

TEST(Baselines, ContradictionsAreNamed) {
    const std::pair<std::string, const char*> cases[]{
        {llama_with(R"("baseline_mode":"mhc","residual_baseline":"attnres")"), "\"residual_baseline\""},
        {llama_with(R"("baseline_mode":"mhc","use_depth_attention":true)"), "\"use_depth_attention\""},
        {llama_with(R"("residual_baseline":"hyper")"), "\"residual_baseline\""},
        {neox_with(R"("baseline_mode":"mhc")"), "\"baseline_mode\""},
        {llama_with(R"("cross_layer_pattern":"v0_mix")"), "\"cross_layer_pattern\""},
        {llama_with(R"("cross_layer_pattern":"depth_softmax","use_depth_attention":false)"),
         "\"cross_layer_pattern\""},
        {llama_with(R"("use_depth_attention":1)"), "\"use_depth_attention\""},
        {llama_with(R"("pondering":{"method":"vanilla","key_norm":"before_rope"})"),
         "\"pondering.key_norm\""}};
    for (const auto& [text, part] : cases) {
        expect_refused(text, part);
    }
    for (const auto& [key, value] : {std::pair{"depth_attention_stride", "-2"},
                                     {"depth_attention_stride", "1.5"},
                                     {"depth_attention_stride", "\"two\""},
                                     {"depth_softmax_stride", "-1"},
                                     {"depth_attention_recent_window", "-1"},
                                     {"depth_attention_recent_window", "0.5"},
                                     {"depth_recent_window", "-4"}}) {
        const std::string name = "\"" + std::string(key) + "\"";
        expect_refused(
            llama_with(R"("recurrent_model":true,"use_depth_attention":true,)" + name + ":" + value),
            name.c_str());
    }
    const ModelConfig c = read_llama_with(R"("baseline_mode":"mhc","cross_layer_pattern":"depth_softmax")");
    EXPECT_EQ(ids_of(c.notices), NoticeIds{NoticeId::config_ignored});
}

TEST(Nanbeige, LoopsAndTheirNorm) {
    ModelConfig c = read_config(model("nanbeige", R"("num_loops":3)"));
    EXPECT_EQ(c.ponder.method, MethodKind::looped);
    EXPECT_EQ(c.ponder.max_steps, 2);
    EXPECT_EQ(c.ponder.embed_scale, EmbedScale::none);
    EXPECT_TRUE(c.ponder.loop_final_norm_each_pass);
    c = read_config(
        model("nanbeige", R"("num_loops":3,"loop_loss_weights":[0.5],"skip_loop_final_norm":true)"));
    EXPECT_EQ(c.ponder.max_steps, 1);
    EXPECT_FALSE(c.ponder.loop_final_norm_each_pass);
    EXPECT_EQ(ids_of(c.notices), NoticeIds{NoticeId::config_overridden});
    EXPECT_EQ(read_config(model("nanbeige", R"("num_loops":3)"), MethodKind::vanilla).ponder.max_steps, 0);
    expect_refused(model("nanbeige", R"("num_loops":3)"), "--method looped", MethodKind::ponderlm);
    c = read_config(model(
        "nanbeige", R"("enable_depth_attention":true,"depth_attention_stride":null,"qk_layernorm":true)"));
    EXPECT_EQ(c.depth.stride, 2);
    EXPECT_TRUE(c.depth.use_qk_norm && !c.depth.key_norm_after_rope);
    EXPECT_EQ(read_config(model("nanbeige", R"("enable_depth_attention":true,"depth_attention_stride":0)"))
                  .depth.stride,
              1);
    EXPECT_EQ(
        read_config(
            model("nanbeige",
                  R"("num_residual_streams":7,"mhc_sinkhorn_iterations":3,"ngram_fused_mode":"concat")"))
            .depth.kind,
        DepthMixing::none)
        << "inert keys";
}

TEST(Names, RoundTrip) {
    for (int i = 0; i <= static_cast<int>(MethodKind::tah); ++i) {
        const auto method = static_cast<MethodKind>(i);
        EXPECT_EQ(method_from_string(to_string(method)), method);
    }
    EXPECT_EQ(method_from_string("Vanilla"), std::nullopt);
    EXPECT_EQ(to_string(Architecture::gpt_neox), "gpt_neox");
    EXPECT_EQ(to_string(DepthMixing::depth_attention), "depth_attention");
}

} // namespace
} // namespace ponderscope
