// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/attend.h"

namespace ponderscope {

/// Whether attend_cuda was compiled in and takes these queries: on a GPU, fp32, bf16 or fp16, heads of at
/// most 256 elements.
bool attend_cuda_fits(const at::Tensor& q);

/// attend by our kernel, for checked arguments, without gradient. Nothing is read back from the device;
/// causal blocks are sent to it as ranges. A query's result depends on nothing but what it sees.
at::Tensor attend_cuda(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                       const Visibility& visibility, double scale, const at::Tensor& row_bias);

} // namespace ponderscope
