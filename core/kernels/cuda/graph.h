// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernels/cuda_library.h"

namespace ponderscope {

/// CudaKernels::capture by LibTorch's CUDA graph. Tensors that the capture makes come from a separate memory
/// pool.
std::unique_ptr<DeviceGraph> capture_cuda(at::Device device, const std::function<void()>& work);

} // namespace ponderscope
