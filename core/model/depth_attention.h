// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/backbone.h"
#include "core/model/depth_mix.h"
#include "core/model/depth_sources.h"

#include <vector>

namespace ponderscope {

/// Depth-Attention (methods.md section 3) over the slots of one forward. Mixes the values of each layer, and
/// keeps the keys and mixed values that later layers read. A slot mixes only its own rows, so a cache and the
/// other rows of the batch do not change its result.
class DepthAttention final : public ValueMixer {
public:
    explicit DepthAttention(const ModelConfig& config) : config_(config) {}

    void begin_pass(const Pass& pass) override;
    at::Tensor mix(std::int64_t layer, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                   const Pass& pass) override;

private:
    struct Kept {
        DepthSourceId id;
        DepthSource tensors;
    };
    [[nodiscard]] bool is_anchor(std::int64_t layer) const { return layer % config_.depth.stride == 0; }
    /// Whether a later layer reads this layer.
    [[nodiscard]] bool is_source(std::int64_t layer) const;

    const ModelConfig& config_;
    std::int64_t pass_ = -1;
    at::Tensor tokens_; ///< the tokens of the rows in `kept_`; undefined: all tokens
    std::vector<Kept> kept_;
};

} // namespace ponderscope
