// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/flops.h"

#include <algorithm>

namespace ponderscope {

std::vector<std::int64_t> count_flops(const Backbone& backbone, const Method& method,
                                      std::span<const std::int64_t> steps) {
    const ModelConfig& config = backbone.config();
    const std::int64_t slot = 2 * backbone.block_matrix_elements();
    const std::int64_t key = 4 * config.query_heads * config.head_dim; // a layer: q·k and p·v
    const std::int64_t read_out = 2 * config.vocab_size * config.embed_dim;
    const std::int64_t last = method.max_steps();
    // Keys over all layers that a query with \p visible rows reads.
    const auto keys = [&](std::int64_t visible) {
        if (config.sliding_windows.empty()) {
            return config.layers * visible;
        }
        std::int64_t sum = 0;
        for (const std::int64_t window : config.sliding_windows) {
            sum += window > 0 ? std::min(window, visible) : visible;
        }
        return sum;
    };
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
            flops += slot + key * keys(visible);
        }
        slots_before += stop + 1;
        flops += stop * method.input_flops() + read_out;
        for (std::int64_t k = 0; k < std::min(stop + 1, last); ++k) {
            flops += method.decision_flops(k); // the refused one is asked too
        }
        result.push_back(flops);
    }
    return result;
}

} // namespace ponderscope
