// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

namespace ponderscope {

/// Whether results computed from this tensor will be differentiated.
inline bool wants_gradient(const at::Tensor& tensor) {
    return at::GradMode::is_enabled() && tensor.defined() && tensor.requires_grad();
}

} // namespace ponderscope
