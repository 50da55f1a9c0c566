// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/checkpoint/model_config.h"

#include <ATen/core/Tensor.h>

/// Products on the CPU together with what follows them: bias, activation, residual or gate, applied while a
/// tile of the result is still in the cache. They are oneDNN's, inside LibTorch (operators of the library
/// `mkldnn`); its fp32 kernels use the whole width of processors on which MKL does not, and a tenth is gained
/// even without anything to fuse. Strict fp32; no gradients but where the name says so.
namespace ponderscope::fused {

/// Whether a product of x [n, in] (contiguous) with a weight [out, in] is worth it and possible: fp32 on the
/// CPU, an operator of the expected form in the library, and enough work to pay for the kernel that oneDNN
/// makes for every new shape. \p recurring: the shape comes again and again, as in training.
bool suits(const at::Tensor& x, const at::Tensor& weight, bool recurring = false);

/// Whether that activation can be fused.
bool has(Activation activation);

/// x W^T + b, [n, out], fresh memory. The bias may be undefined.
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);
/// The same with gradients, for training: the product and that of x's gradient by oneDNN, that of the
/// weight's by the library's own, which is no slower there.
at::Tensor linear_with_gradient(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);
/// activation(x W^T + b); only where has(activation).
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                  Activation activation);
/// other + x W^T + b, other [n, out] contiguous.
at::Tensor linear_add(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                      const at::Tensor& other);
/// other * (x W^T + b).
at::Tensor linear_multiply(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                           const at::Tensor& other);

} // namespace ponderscope::fused
