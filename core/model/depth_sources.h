// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/checkpoint/model_config.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ponderscope {

/// A source: a layer of a pass. Later layers may mix its key and (mixed) value. The first pass has the number
/// 0. Other passes are sources only if sources_cross_passes() (methods.md section 3).
struct DepthSourceId {
    std::int64_t pass = 0;
    std::int64_t layer = 0;
    friend bool operator==(const DepthSourceId&, const DepthSourceId&) = default;
};

/// Whether later passes mix the values of earlier passes (Nanbeige's loops). Otherwise each pass has its own
/// sources.
bool sources_cross_passes(const ModelConfig& config);

/// The sources S(l) that \p layer mixes, in order and without the layer itself: anchors (layers whose number
/// is a multiple of the stride) and the last config.depth.recent_window layers before \p layer, without
/// ablated sources. \p pass has an effect only if sources cross passes.
std::vector<DepthSourceId> depth_sources(const ModelConfig& config, std::int64_t pass, std::int64_t layer);

/// Removes a source from a model's depth attention, as an intervention. \p spec is SOURCE (in all layers that
/// read it) or SOURCE:LAYER (in one layer). Adds a notice to the config. Returns a short name for the run:
/// "without-source-3-in-layer-5". InputError: a model without Depth-Attention, a layer that does not read
/// this source, or text that is not a number.
std::string ablate_source(ModelConfig& config, const std::string& spec);

/// Assigns the sources of all layers to columns of one dense array of weights: the anchors (of every pass, if
/// sources cross passes), then the recent layers by distance, then the layer's own value.
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
    std::int64_t anchors_ = 0; ///< number of anchors in one pass
    std::int64_t recent_ = 0;  ///< number of columns for recent layers
};

} // namespace ponderscope
