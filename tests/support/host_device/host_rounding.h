// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

/// How a GPU's products differ from the CPU's, for the tests' own device.
namespace ponderscope::testing {

bool is_product(const c10::OperatorHandle& operation);

/// The factors of a product as a GPU may take them where LibTorch was told so (TF32); other operations'
/// arguments stay.
void round_factors(const c10::OperatorHandle& operation, torch::jit::Stack& arguments);

/// A GPU adds a product's terms in an order that its shape decides: the same row among other rows comes out
/// otherwise in its last digits, and the same shape always comes out the same. In half precision that are few
/// numbers, and many where LibTorch lets partial sums be rounded.
void round_by_shape(const at::Tensor& product);

} // namespace ponderscope::testing
