// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/checkpoint/model_config.h"

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace ponderscope {

/// The factor on cos and sin: 1, except for yarn and longrope.
double rope_attention_factor(const RopeConfig& rope);

/// cos and sin of positions [0, positions), fp32 [positions, rotary_dims / 2]. Dynamic scaling and longrope
/// depend on the sequence's number of tokens, \p length. Computed with the fp32 operations of transformers'
/// modeling_rope_utils, so that large positions agree with transformers to the last bit.
std::pair<at::Tensor, at::Tensor> rope_table(const RopeConfig& rope, std::int64_t max_positions,
                                             std::int64_t length, std::int64_t positions);

/// Rotates the first 2·r elements of every head, r = cos.size(1). The pairs are (i, i + r) (the halves of
/// GPT-NeoX and Llama), or (2i, 2i + 1) with \p neighbours (Huginn, Parcae). x: [n, heads, d_h]; row i
/// rotates by row rows[i] of cos and sin. Computed in fp32; the result is rounded once. Differentiable.
at::Tensor rotate(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin, const at::Tensor& rows,
                  bool neighbours = false);

} // namespace ponderscope
