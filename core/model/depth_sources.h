// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/checkpoint/model_config.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ponderscope {

/// A layer of a pass whose key and (already mixed) value a later layer may mix: pass 0 is the first one. Only
/// looped stacks whose sources live for the whole forward have others (methods.md section 3).
struct DepthSourceId {
    std::int64_t pass = 0;
    std::int64_t layer = 0;
    friend bool operator==(const DepthSourceId&, const DepthSourceId&) = default;
};

/// Whether later passes mix the values of earlier passes: Nanbeige's loops. Otherwise every pass stands
/// alone.
bool sources_cross_passes(const ModelConfig& config);

/// S(l) of Depth-Attention in order, the layer itself not included: anchors (layers that the stride divides)
/// and the recent window, without ablated sources. \p pass counts only if sources cross passes.
std::vector<DepthSourceId> depth_sources(const ModelConfig& config, std::int64_t pass, std::int64_t layer);

/// Takes a source out of a model's depth attention, as an intervention: \p spec is SOURCE or SOURCE:LAYER
/// (all layers that read it, or one layer). The config then has a notice. Returns a short name for the run:
/// "without-source-3-in-layer-5". InputError: a model without Depth-Attention, a layer that does not read
/// that source, anything else than numbers.
std::string ablate_source(ModelConfig& config, const std::string& spec);

/// The sources of all layers as columns of one array, to store weights densely: the anchors (of every pass,
/// where they live on), then the recent layers by distance, then the layer's own value.
class DepthColumns {
public:
    explicit DepthColumns(const ModelConfig& config);
    [[nodiscard]] std::int64_t size() const { return own() + 1; }
    [[nodiscard]] std::int64_t own() const { return anchors_ * passes_ + recent_; }
    [[nodiscard]] std::int64_t of(const DepthSourceId& source, std::int64_t layer) const;
    /// "0", "12", "pass 1 layer 0", "2 before", "own".
    [[nodiscard]] std::vector<std::string> labels() const;

private:
    std::int64_t stride_ = 1, passes_ = 1;
    std::int64_t anchors_ = 0; ///< of one pass
    std::int64_t recent_ = 0;  ///< distances that are not anchors anyway
};

} // namespace ponderscope
