// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/checkpoint/model_config.h"
#include "core/model/workspace.h"

#include <ATen/core/Tensor.h>

namespace ponderscope {

/// What a product's rows still go through: the activation, then the other tensor [n, out], contiguous.
struct AfterProduct {
    Activation activation = Activation::linear;
    at::Tensor other = {};   ///< undefined: none
    bool multiplies = false; ///< by the other one instead of adding it
};

/// Whether unit_linear computes this product and is the faster way: contiguous bfloat16 on a CPU with a
/// matrix unit, without gradients, of so many rows that packing the weight for them pays.
bool unit_multiplies(const at::Tensor& x, const at::Tensor& weight);

/// out = x W^T + b and what follows; x: [n, in], weight: [out, in], bias: [out] or undefined, out: [n, out],
/// contiguous, and may be the other tensor. Sums and what follows are fp32, rounded once; a row does not
/// depend on the other rows, bit for bit. The activation must be one that fused::has.
void unit_linear(at::Tensor& out, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                 Workspace& workspace, const AfterProduct& after = {});

} // namespace ponderscope
