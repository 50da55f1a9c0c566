// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/flops.h"

#include "core/model/depth_sources.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace ponderscope {

SlotCost::SlotCost(const Backbone& backbone)
    : fixed_(2 * backbone.block_matrix_elements()),
      per_key_(4 * backbone.config().query_heads * backbone.config().head_dim),
      read_out_(2 * backbone.config().vocab_size * backbone.config().embed_dim) {
    const std::vector<std::int64_t>& windows = backbone.config().sliding_windows;
    for (std::int64_t l = 0; l < backbone.config().layers; ++l) {
        ++layers_[windows.empty() ? 0 : windows[static_cast<std::size_t>(l)]];
    }
    const ModelConfig& config = backbone.config();
    for (std::int64_t step = 0; step <= config.ponder.max_steps; ++step) {
        // Scores and mixture of every KV head, over the sources and the layer's own value.
        std::int64_t values = 0;
        for (std::int64_t l = 0; config.depth.kind == DepthMixing::depth_attention && l < config.layers;
             ++l) {
            values += static_cast<std::int64_t>(depth_sources(config, step, l).size()) + 1;
        }
        mixing_.push_back(4 * config.kv_heads * config.head_dim * values);
    }
}

std::int64_t SlotCost::of_slot(std::int64_t visible, std::int64_t step) const {
    std::int64_t keys = 0;
    for (const auto& [window, layers] : layers_) {
        keys += layers * (window > 0 ? std::min(window, visible) : visible);
    }
    return fixed_ + mixing_.at(static_cast<std::size_t>(step)) + per_key_ * keys;
}

at::Tensor SlotCost::of_slots(const at::Tensor& visible) const {
    at::Tensor cost = at::full_like(visible, fixed_ + mixing_.front());
    for (const auto& [window, layers] : layers_) {
        cost = cost + (window > 0 ? visible.clamp_max(window) : visible) * (per_key_ * layers);
    }
    return cost;
}

std::vector<std::int64_t> count_flops(const Backbone& backbone, const Method& method,
                                      std::span<const std::int64_t> steps) {
    const SlotCost cost(backbone);
    const std::int64_t last = method.max_steps();
    std::vector<std::int64_t> seen(static_cast<std::size_t>(last) + 1,
                                   0); // slots of each step so far, this token's included
    std::vector<std::int64_t> result;
    result.reserve(steps.size());
    std::int64_t slots_before = 0;
    for (std::size_t t = 0; t < steps.size(); ++t) {
        const std::int64_t stop = steps[t];
        std::int64_t flops = 0;
        std::int64_t below = 0; // two-dimensional: visible slots of steps up to k
        for (std::int64_t k = 0; k <= stop; ++k) {
            std::int64_t visible = 0;
            switch (method.visibility()) {
            case VisibilityRule::per_step:
                visible = static_cast<std::int64_t>(t) + 1;
                break;
            case VisibilityRule::interleaved:
                visible = slots_before + k + 1;
                break;
            case VisibilityRule::two_dimensional:
                below += ++seen[static_cast<std::size_t>(k)];
                visible = below;
                break;
            }
            flops += cost.of_slot(visible, k);
        }
        slots_before += stop + 1;
        flops += stop * method.input_flops() + cost.of_read_out();
        for (std::int64_t k = 0; k < std::min(stop + 1, last); ++k) {
            flops += method.decision_flops(k); // the refused one is asked too
        }
        result.push_back(flops);
    }
    return result;
}

} // namespace ponderscope
