// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernels/depth_mix.h"
#include "core/model/backbone.h"
#include "core/model/depth_sources.h"

#include <vector>

namespace ponderscope {

/// Depth-Attention (methods.md section 3) over the slots of one forward: keeps the keys and mixed values of
/// layers that later layers read, and mixes the values of each layer. A slot mixes only its own rows, so the
/// result depends neither on a cache nor on the rest of the batch.
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
    /// Whether a layer after this one reads it.
    [[nodiscard]] bool is_source(std::int64_t layer) const;

    const ModelConfig& config_;
    std::int64_t pass_ = -1;
    at::Tensor tokens_; ///< whose rows `kept_` holds; undefined: everybody's
    std::vector<Kept> kept_;
};

} // namespace ponderscope
