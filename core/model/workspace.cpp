// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/workspace.h"

#include <ATen/ATen.h>

namespace ponderscope {

at::Tensor Workspace::take(Use use, at::IntArrayRef shape, const at::TensorOptions& options) {
    at::Tensor& buffer = buffers_[static_cast<std::size_t>(use)];
    const std::int64_t needed = c10::multiply_integers(shape);
    if (!buffer.defined() || buffer.numel() < needed ||
        buffer.scalar_type() != c10::typeMetaToScalarType(options.dtype()) ||
        buffer.device() != options.device()) {
        buffer = at::Tensor(); // the old memory first, then the new
        buffer = at::empty({needed}, options);
    }
    return buffer.narrow(0, 0, needed).view(shape);
}

} // namespace ponderscope
