// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/core/Tensor.h>

#include <span>

namespace ponderscope {

/// A layer whose key and value enter the mix of a later layer. n slots, g KV heads of d_h elements.
struct DepthSource {
    at::Tensor key;   ///< [n, g, d_h], as in the attention of that layer
    at::Tensor value; ///< [n, g, d_h], already mixed
};

struct DepthMixed {
    at::Tensor value;   ///< [n, g, d_h]
    at::Tensor weights; ///< fp32 [n, g, S + 1], the layer's own value last; undefined unless requested
};

/// Depth-Attention (arXiv 2606.05014; methods.md section 3) mixes the values of one layer:
///   qbar = mean of the group's queries,  e_j = qbar·k_j / sqrt(d_h),  alpha = softmax(e) in fp32,
///   vhat = Σ_j alpha_j · v_j over the S sources and the layer itself.
/// q [n, n_q, d_h], k and v [n, g, d_h] of the layer, all of one dtype and device; n_q is a multiple of g.
/// Sums are fp32, rounded once. Each slot is mixed separately. Differentiable.
DepthMixed depth_mix(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     std::span<const DepthSource> sources, bool want_weights);

} // namespace ponderscope
