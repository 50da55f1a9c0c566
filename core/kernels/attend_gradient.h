// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernels/attend.h"

namespace ponderscope {

/// attend for checked arguments, any ranges, window and bias, differentiable once in q, k, v and row_bias.
/// The forward is attend's own without a gradient; the backward computes the weights again, a block of
/// queries against the rows that block sees, in fp32 (fp64 for fp64): memory O(block x rows), never [queries,
/// rows]. On a GPU the ranges are read back once a backward, to cut the blocks.
at::Tensor attend_with_gradient(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                const Visibility& visibility, double scale, const at::Tensor& row_bias);

} // namespace ponderscope
