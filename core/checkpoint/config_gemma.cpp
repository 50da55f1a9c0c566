// SPDX-License-Identifier: GPL-3.0-or-later
// Gemma 2 and 3: keys and defaults of transformers' Gemma2Config, Gemma3TextConfig and Gemma3Config. Of
// Gemma3Config, only the text part is read.
#include "core/checkpoint/config_reader.h"

#include <cmath>

namespace ponderscope {
namespace {

/// A softcap. null means no softcap (0). An absent key means the default.
double softcap(const ConfigReader& reader, std::string_view key, double otherwise) {
    return reader.is_null(key) ? 0.0 : reader.positive(key, otherwise);
}

void read_gemma(const ConfigReader& reader, ModelConfig& config, std::int64_t vocabulary,
                std::int64_t positions, double logit_cap) {
    read_sizes(reader, config,
               {.vocab_size = vocabulary,
                .hidden_size = 2304,
                .intermediate_size = 9216,
                .layers = 26,
                .heads = 8,
                .kv_heads = 4,
                .head_dim = 256,
                .max_positions = positions,
                .bos = 2,
                .eos = 1,
                .tied = true,
                .activation = Activation::gelu_tanh,
                .activation_key = "hidden_activation"});
    (void)reader.json().has("hidden_act"); // transformers reads hidden_activation instead
    (void)reader.json().has("cache_implementation");
    reader.refuse_unless("use_bidirectional_attention", false, "this build runs causal models only");
    config.attention_bias = reader.flag("attention_bias", false);
    config.norm_weight = NormWeight::one_plus;
    config.scales.embedding = std::sqrt(static_cast<double>(config.hidden_size));
    config.scales.attention = 1.0 / std::sqrt(reader.positive("query_pre_attn_scalar", 256.0));
    if (const double cap = softcap(reader, "final_logit_softcapping", logit_cap); cap > 0) {
        config.scales.logit_softcap = cap;
    }
}

void read_gemma3_part(const ConfigReader& reader, ModelConfig& config) {
    read_gemma(reader, config, 262208, 131072, 0.0);
    config.qk_norm = true;
    if (reader.json().has("attn_logit_softcapping")) {
        reader.notice(NoticeId::config_ignored,
                      "\"attn_logit_softcapping\" changes nothing: Gemma 3 stores it and never applies it.");
    }
    const std::int64_t pattern = reader.size_or_null("sliding_window_pattern", 6, config_limits::layers);
    read_windows(reader, config, 4096, [&](std::int64_t layer) { return (layer + 1) % pattern != 0; });
    read_rope_by_kind(reader, config, {"rope_theta", 1e6}, {"rope_local_base_freq", 1e4});
}

} // namespace

void read_gemma2(const ConfigReader& reader, ModelConfig& config) {
    read_gemma(reader, config, 256000, 8192, 30.0);
    config.scales.attention_softcap = softcap(reader, "attn_logit_softcapping", 50.0);
    read_windows(reader, config, 4096, [](std::int64_t layer) { return layer % 2 == 0; });
    read_rope(reader, config, {});
}

void read_gemma3_text(const ConfigReader& reader, ModelConfig& config) {
    read_gemma3_part(reader, config);
}

void read_gemma3(const ConfigReader& reader, ModelConfig& config) {
    JsonObject text = reader.json().required_object("text_config");
    if (const auto type = text.text("model_type"); type && type != "gemma3_text") {
        text.fail("model_type", "gemma3_text", cannot_run);
    }
    text.remember_asked();
    const ConfigReader inner(text, config.notices, [&] { return reader.tensors(); });
    read_gemma3_part(inner, config);
    if (config.scales.logit_softcap) {
        reader.notice(
            NoticeId::config_ignored,
            "\"final_logit_softcapping\" changes nothing: the class for text and images never applies it.");
        config.scales.logit_softcap.reset();
    }
    config.tied_embeddings = reader.flag("tie_word_embeddings", config.tied_embeddings);
    if (reader.json().has("bos_token_id") || reader.json().has("eos_token_id")) {
        const std::vector<std::int64_t> ends = config.eos_token_ids;
        const std::optional<std::int64_t> begin = config.bos_token_id;
        config.eos_token_ids.clear();
        read_token_ids(reader, config, begin, ends.empty() ? std::nullopt : std::optional(ends.front()));
    }
    for (const char* const key : {"vision_config", "boi_token_index", "eoi_token_index", "image_token_index",
                                  "image_token_id", "boi_token_id", "eoi_token_id", "mm_tokens_per_image"}) {
        (void)reader.json().has(key);
    }
    reader.notice(NoticeId::config_images,
                  "The checkpoint handles text and images: only its text part runs.");
}

} // namespace ponderscope
