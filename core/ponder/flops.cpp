// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/flops.h"

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
}

std::int64_t SlotCost::of_slot(std::int64_t visible) const {
    std::int64_t keys = 0;
    for (const auto& [window, layers] : layers_) {
        keys += layers * (window > 0 ? std::min(window, visible) : visible);
    }
    return fixed_ + per_key_ * keys;
}

at::Tensor SlotCost::of_slots(const at::Tensor& visible) const {
    at::Tensor cost = at::full_like(visible, fixed_);
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
            flops += cost.of_slot(visible);
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
