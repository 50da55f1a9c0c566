// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/schedule/flops.h"

#include "core/model/depth_sources.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace ponderscope {

namespace {

/// FLOPs of depth attention in a layer: for each KV head, scores and mixture over the sources and the own
/// value. 0 without sources.
std::int64_t mixing_flops(const ModelConfig& config, std::int64_t pass, std::int64_t layer) {
    if (config.depth.kind != DepthMixing::depth_attention) {
        return 0;
    }
    const auto sources = static_cast<std::int64_t>(depth_sources(config, pass, layer).size());
    return sources == 0 ? 0 : 4 * config.kv_heads * config.head_dim * (sources + 1);
}

/// FLOPs that mHC, Block AttnRes or DenseFormer add to one pass, without the matrices that
/// Backbone::block_matrix_elements counts (such as mHC's maps).
std::int64_t joining_flops(const ModelConfig& config) {
    const std::int64_t d = config.hidden_size;
    const DepthMixingConfig& depth = config.depth;
    std::int64_t total = 0;
    switch (depth.kind) {
    case DepthMixing::mhc: {
        // For each sublayer: its input, the mixing of the streams, writing back. Once: the reduction.
        const std::int64_t n = depth.streams;
        return 2 * config.layers * (2 * n * d + 2 * (n * n + n) * d) + 2 * n * d;
    }
    case DepthMixing::attnres: {
        // Scores and sum over the snapshots and the running stream, before each sublayer and at the end.
        const std::int64_t layers_a_block = (depth.block_size + 1) / 2;
        for (std::int64_t l = 0; l < config.layers; ++l) {
            total += 2 * 4 * d * (1 + l / layers_a_block + 1);
        }
        return total + 4 * d * (1 + config.layers / layers_a_block + 1);
    }
    case DepthMixing::denseformer:
        for (std::int64_t l = depth.period - 1; l < config.layers; l += depth.period) {
            total += 2 * d * ((l + 1) / depth.dilation + 1);
        }
        return total;
    case DepthMixing::none:
    case DepthMixing::depth_attention:
        break;
    }
    return total;
}

FlopsModel::Visibility visibility_of(VisibilityRule rule) {
    switch (rule) {
    case VisibilityRule::per_step:
        return FlopsModel::Visibility::per_step;
    case VisibilityRule::interleaved:
        return FlopsModel::Visibility::interleaved;
    case VisibilityRule::two_dimensional:
        break;
    }
    return FlopsModel::Visibility::two_dimensional;
}

} // namespace

FlopsModel flops_model(const Backbone& backbone, const Method& method, const RunPlan& plan) {
    const ModelConfig& config = backbone.config();
    FlopsModel model;
    const bool skips = method.visibility() == VisibilityRule::per_step && !method.layers_are_steps() &&
                       plan.kv_policy(method) == KvPolicy::skip;
    model.visibility = skips ? FlopsModel::Visibility::skip : visibility_of(method.visibility());
    model.key = 4 * config.query_heads * config.head_dim;
    model.windows = config.sliding_windows;
    model.windows.resize(static_cast<std::size_t>(config.layers), 0);
    model.read_out = 2 * config.vocab_size * config.embed_dim;
    model.input = method.input_flops();
    model.input_reads_out = method.mixture().has_value();
    if (method.layers_are_steps()) {
        // Blocks above an exit compute the token's keys and values, with depth attention also its query.
        const bool mixes = config.depth.kind == DepthMixing::depth_attention;
        const std::int64_t heads = 2 * config.kv_heads + (mixes ? config.query_heads : 0);
        for (std::int64_t l = 0; l < config.layers; ++l) {
            const std::int64_t mixing = mixing_flops(config, 0, l);
            model.steps.push_back(2 * backbone.block_matrix_elements() / config.layers + mixing);
            model.exited.push_back(2 * heads * config.head_dim * config.hidden_size + mixing);
        }
        return model;
    }
    std::int64_t each_step = 2 * backbone.block_matrix_elements();
    if (config.recurs()) {
        const Backbone::PartElements& parts = backbone.part_elements();
        each_step = 2 * parts.core + backbone.injection_flops();
        model.prelude = 2 * parts.prelude;
        model.prelude_layers = config.sandwich.prelude;
        model.coda_layers = config.sandwich.coda;
        model.read_out += 2 * parts.coda + backbone.before_coda_flops();
        const auto begin = model.windows.begin() + config.core_begin();
        const auto end = model.windows.begin() + config.core_end();
        if (std::any_of(model.windows.begin(), model.windows.end(), [](auto window) { return window > 0; })) {
            model.prelude_windows.assign(model.windows.begin(), begin);
            model.coda_windows.assign(end, model.windows.end());
        }
        model.windows = {begin, end};
    }
    for (std::int64_t step = 0; step <= method.max_steps(); ++step) {
        std::int64_t products = each_step + joining_flops(config);
        for (std::int64_t l = 0; l < config.layers; ++l) {
            products += mixing_flops(config, step, l);
        }
        const bool last = step == method.max_steps();
        if (last && method.values_last_step()) {
            products += method.decision_flops(step);
        }
        model.steps.push_back(products);
        if (!last) {
            model.decisions.push_back(method.decision_flops(step));
        }
    }
    return model;
}

} // namespace ponderscope
