// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/backbone.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>

/// The operations of layers, as plain tensor operations: differentiable, on any device. Shapes: n packed
/// slots, d hidden, n_q query and g KV heads of d_h elements.
namespace ponderscope::blocks {

/// y = x W^T + b, W as Hugging Face stores it: [out, in]. The bias may be undefined.
struct Linear {
    at::Tensor weight;
    at::Tensor bias;
    /// Outputs [first, first + count) of a fused projection.
    [[nodiscard]] Linear part(std::int64_t first, std::int64_t count) const;
};

/// LayerNorm (with bias), RMSNorm or unit length. Computed in fp32; the result is rounded once.
struct Norm {
    NormKind kind = NormKind::layer_norm;
    at::Tensor weight; ///< undefined: no weight
    at::Tensor bias;
    double eps = 1e-5;
    bool one_plus = false; ///< the factor is 1 + weight
};

at::Tensor linear(const at::Tensor& x, const Linear& weights);
at::Tensor normalise(const at::Tensor& x, const Norm& norm);
/// x ⊙ scale. The scale is fp32; the result is rounded once.
at::Tensor scaled_by(const at::Tensor& x, const at::Tensor& scale);

/// The elementwise activation with the config's name.
at::Tensor activate(const at::Tensor& x, Activation activation);

/// Norms and scales of queries and keys, and attention sinks.
struct HeadExtras {
    std::optional<Norm> query, key;  ///< norms over the d_h elements of each head
    bool key_after_rotation = false; ///< the query's norm always comes before the rotation
    at::Tensor query_scale;          ///< [n_q, d_h], factor on the rotated queries; undefined: none
    at::Tensor sinks;                ///< [n_q], see attend.h; undefined: none
};

/// The rows of \p x that belong to the pass's queries.
at::Tensor attending(const at::Tensor& x, const Pass& pass);

/// Applies norms per head, the layer's rotation and depth mixing, stores K/V rows, and attends with softcap
/// and score scale (\p scale replaces the config's). q [n, n_q, d_h], k and v [n, g, d_h] may have any layout
/// with a dense last axis (a tensor with a norm per head: fully dense). If the pass has queries, q may have
/// only the rows of the queries, unless depth mixing needs all rows of q. Returns [m, n_q·d_h] for m queries.
at::Tensor self_attention(std::int64_t layer, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                          const ModelConfig& config, const Pass& pass, const HeadExtras& extras = {},
                          std::optional<double> scale = std::nullopt);

} // namespace ponderscope::blocks
