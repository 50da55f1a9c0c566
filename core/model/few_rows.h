// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/core/Tensor.h>

namespace ponderscope {

/// Whether a product of x [n, in] with a weight [out, in] is one of a few rows, as decoding makes them: fp32
/// on the CPU, dense, n so small that reading the weight costs more than the arithmetic. The library's
/// products pack what they multiply, which is as much work as the product itself there.
bool few_rows(const at::Tensor& x, const at::Tensor& weight);

/// out [n, out] = x W^T + b, or added to what is there; the bias may be undefined. No gradient. A row is the
/// same whatever the other rows are, bit for bit.
void multiply_few_rows(at::Tensor& out, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                       bool add);

/// x W^T + b, of few rows as above where no graph is recorded and else the library's. The bias may be
/// undefined.
at::Tensor multiply_rows(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {});

} // namespace ponderscope
