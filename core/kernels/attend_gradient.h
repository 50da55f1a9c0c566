// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernels/attend.h"

namespace ponderscope {

/// attend() with a gradient: differentiable once in q, k, v and row_bias. Takes any ranges, window and bias.
/// The caller must check the arguments first. The forward pass is attend(). The backward pass computes the
/// weights again in fp32 (fp64 for fp64), block by block; a block is some queries and the rows that they see.
/// Its memory is O(block x rows), never [queries, rows]. On a GPU each backward pass copies the ranges to the
/// host once, to form the blocks.
at::Tensor attend_with_gradient(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                const Visibility& visibility, double scale, const at::Tensor& row_bias);

} // namespace ponderscope
