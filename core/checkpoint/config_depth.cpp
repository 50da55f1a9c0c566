// SPDX-License-Identifier: GPL-3.0-or-later
// Depth mixing: Depth-Attention (arXiv 2606.05014) with its authors' present and older keys, and the three
// cross-layer baselines of that paper.
#include "core/checkpoint/config_reader.h"

#include <algorithm>

namespace ponderscope {
namespace {

/// The text of a selector key. No value: the key is absent, "" or "none".
std::optional<std::string> selected(const JsonObject& json, std::string_view key) {
    std::optional<std::string> text = json.text(key);
    return text && (text->empty() || *text == "none") ? std::nullopt : text;
}

DepthMixing baseline_of(const JsonObject& json, std::string_view key) {
    if (!selected(json, key)) {
        return DepthMixing::none;
    }
    return choice<DepthMixing>(json, key,
                               {{"mhc", DepthMixing::mhc},
                                {"attnres", DepthMixing::attnres},
                                {"block_attnres", DepthMixing::attnres},
                                {"block-attnres", DepthMixing::attnres},
                                {"attention_residual", DepthMixing::attnres},
                                {"attention-residual", DepthMixing::attnres},
                                {"denseformer", DepthMixing::denseformer},
                                {"densetransformer", DepthMixing::denseformer}},
                               std::nullopt, cannot_run);
}

DepthMixing read_baseline(const JsonObject& json) {
    const DepthMixing first = baseline_of(json, "baseline_mode");
    const DepthMixing second = baseline_of(json, "residual_baseline");
    if (first != DepthMixing::none && second != DepthMixing::none && first != second) {
        json.fail("residual_baseline",
                  "the value of \"baseline_mode\" (" + describe(json.value().at("baseline_mode")) + ")",
                  "remove one of the two keys");
    }
    return first != DepthMixing::none ? first : second;
}

std::int64_t first_of(const ConfigReader& reader, std::string_view key, std::string_view fallback,
                      std::int64_t otherwise) {
    return reader.size_or_null(key, reader.size_or_null(fallback, otherwise, config_limits::layers),
                               config_limits::layers);
}

void fill_baseline(const ConfigReader& reader, DepthMixingConfig& depth) {
    switch (depth.kind) {
    case DepthMixing::mhc:
        depth.streams = first_of(reader, "residual_baseline_num_streams", "mhc_num_streams", 4);
        depth.sinkhorn_iters = reader.count("mhc_sinkhorn_iters", 20, config_limits::layers);
        break;
    case DepthMixing::attnres:
        depth.block_size = reader.size("attnres_block_size", 12, config_limits::layers);
        break;
    case DepthMixing::denseformer:
        depth.dilation = first_of(reader, "denseformer_dwa_dilation", "densetransformer_dwa_dilation", 1);
        depth.period = first_of(reader, "denseformer_dwa_period", "densetransformer_dwa_period", 1);
        break;
    case DepthMixing::none:
    case DepthMixing::depth_attention:
        break;
    }
}

/// Whether the config selects Depth-Attention, by the present key or the older one.
bool depth_attention_selected(const ConfigReader& reader) {
    const JsonObject& json = reader.json();
    const std::optional<bool> flag = json.boolean("use_depth_attention");
    const std::optional<std::string> pattern = selected(json, "cross_layer_pattern");
    if (pattern && *pattern != "depth_softmax" && *pattern != "depth_attention") {
        json.fail("cross_layer_pattern", "none, depth_softmax or depth_attention", cannot_run);
    }
    if (pattern && flag == false) {
        json.fail("cross_layer_pattern", "no value beside \"use_depth_attention\": false",
                  "remove one of the two keys");
    }
    if (!pattern && flag != true) {
        if (selected(json, "cross_layer_mode")) {
            reader.notice(NoticeId::config_ignored,
                          "\"cross_layer_mode\" is ignored, because no key selects Depth-Attention.");
        }
        return false;
    }
    const std::optional<bool> running = json.boolean("recurrent_model");
    if (running == false) {
        reader.notice(
            NoticeId::config_switched_off,
            "\"recurrent_model\" is false, so Depth-Attention is switched off, as in its authors' code.");
        return false;
    }
    if (!running) {
        reader.notice(NoticeId::config_assumed,
                      "The config selects Depth-Attention without \"recurrent_model\": true, which the "
                      "authors' loader sets. Depth-Attention is on.");
    }
    return true;
}

/// The stride. In the authors' code 0 means "every earlier layer", as 1 does. A negative stride is an error.
std::optional<std::int64_t> stride_of(const JsonObject& json, std::string_view key) {
    const std::optional<std::int64_t> stride = json.integer(key, 0, config_limits::layers);
    return stride ? std::optional(std::max<std::int64_t>(*stride, 1)) : std::nullopt;
}

} // namespace

void read_depth_mixing(const ConfigReader& reader, ModelConfig& config) {
    const JsonObject& json = reader.json();
    DepthMixingConfig depth;
    const bool is_llama = config.architecture == Architecture::llama;
    // The authors' Llama has norms on q and k if `use_qk_norm` is true. Elsewhere the class decides.
    depth.use_qk_norm = is_llama ? reader.flag("use_qk_norm", false) : config.qk_norm;
    depth.key_norm_after_rope = is_llama;

    depth.kind = read_baseline(json);
    if (depth.kind != DepthMixing::none) {
        const char* const selector = selected(json, "baseline_mode") ? "baseline_mode" : "residual_baseline";
        if (!is_llama) {
            json.fail(selector, "none, since the cross-layer baselines are defined on Llama layers,",
                      cannot_run);
        }
        if (json.boolean("use_depth_attention") == true) {
            json.fail("use_depth_attention",
                      std::string("false beside \"") + selector + "\", which switches Depth-Attention off,",
                      "remove one of the two keys");
        }
        if (selected(json, "cross_layer_pattern")) {
            reader.notice(NoticeId::config_ignored, std::string("\"cross_layer_pattern\" is ignored: \"") +
                                                        selector + "\" switches Depth-Attention off.");
        }
        fill_baseline(reader, depth);
    } else if (depth_attention_selected(reader)) {
        depth.kind = DepthMixing::depth_attention;
        const std::optional<std::int64_t> stride = stride_of(json, "depth_attention_stride");
        const std::optional<std::int64_t> older = stride_of(json, "depth_softmax_stride");
        if (!stride && !older) {
            reader.notice(
                NoticeId::config_assumed,
                "The config gives no stride for Depth-Attention, so every earlier layer is a source, as in "
                "the authors' code. The models of the paper use half the number of layers.");
        }
        depth.stride = stride ? *stride : older.value_or(1);
        depth.recent_window = reader.count("depth_attention_recent_window",
                                           reader.count("depth_recent_window", 0, config_limits::layers),
                                           config_limits::layers);
    }
    config.depth = depth;
}

void read_nanbeige_depth(const ConfigReader& reader, ModelConfig& config) {
    DepthMixingConfig depth;
    depth.use_qk_norm = config.qk_norm;
    if (reader.flag("enable_depth_attention", false)) {
        depth.kind = DepthMixing::depth_attention;
        depth.stride = stride_of(reader.json(), "depth_attention_stride")
                           .value_or(std::max<std::int64_t>(config.layers / 2, 1));
        reader.refuse_unless("depth_attention_recent_window", 0, cannot_run);
    }
    config.depth = depth;
}

} // namespace ponderscope
