// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/checkpoint/model_config.h"

#include <ATen/core/Tensor.h>

namespace ponderscope {

/// LayerNorm or RMSNorm of contiguous fp32 rows [n, d] on the CPU, without gradient, into \p out. The
/// library's own norm has no form that writes into memory of ours. Weight and bias may be undefined.
void norm_rows(at::Tensor& out, const at::Tensor& x, NormKind kind, const at::Tensor& weight,
               const at::Tensor& bias, double eps);

} // namespace ponderscope
