// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/depth_attention.h"

#include "core/model/blocks.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace ponderscope {

void DepthAttention::begin_pass(const Pass& pass) {
    ++pass_;
    const bool crosses = sources_cross_passes(config_);
    std::erase_if(kept_, [&](const Kept& one) { return !crosses || !is_anchor(one.id.layer); });
    if (!kept_.empty() && pass.tokens.defined() && !pass.tokens.is_same(tokens_)) {
        // Fewer tokens continue. Select their rows; both lists are ascending.
        const at::Tensor rows = tokens_.defined() ? at::searchsorted(tokens_, pass.tokens) : pass.tokens;
        for (Kept& one : kept_) {
            one.tensors = {one.tensors.key.index_select(0, rows), one.tensors.value.index_select(0, rows)};
        }
    }
    tokens_ = pass.tokens;
}

bool DepthAttention::is_source(std::int64_t layer) const {
    const bool last = layer + 1 == config_.layers;
    return is_anchor(layer) ? !last || sources_cross_passes(config_)
                            : !last && config_.depth.recent_window > 0;
}

at::Tensor DepthAttention::mix(std::int64_t layer, const at::Tensor& q, const at::Tensor& k,
                               const at::Tensor& v, const Pass& pass) {
    std::erase_if(kept_, [&](const Kept& one) {
        return !is_anchor(one.id.layer) && one.id.layer < layer - config_.depth.recent_window;
    });
    std::vector<DepthSource> sources;
    for (const DepthSourceId& id : depth_sources(config_, pass_, layer)) {
        const auto found =
            std::find_if(kept_.begin(), kept_.end(), [&](const Kept& one) { return one.id == id; });
        TORCH_CHECK(found != kept_.end(), "depth attention: layer ", id.layer, " of pass ", id.pass,
                    " was not kept for layer ", layer);
        sources.push_back(found->tensors);
    }
    const bool kept = is_source(layer);
    at::Tensor mixed = v;
    if (!sources.empty()) {
        const bool listening = pass.tap.wanted("depth_weights");
        DepthMixed result = depth_mix(q, k, v, sources, listening);
        mixed = result.value;
        if (listening) {
            // Above its exit, a token is mixed only for its keys and values, and is not a slot of this step.
            pass.tap("depth_weights", blocks::attending(result.weights, pass), layer);
        }
    }
    if (kept) {
        kept_.push_back(
            {{sources_cross_passes(config_) ? pass_ : 0, layer}, {k.contiguous(), mixed.contiguous()}});
    }
    return mixed;
}

} // namespace ponderscope
