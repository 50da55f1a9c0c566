// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernels/cuda_library.h"

namespace ponderscope {

/// CudaKernels::capture, as LibTorch's CUDA graph. The memory of what is made while it is captured comes from
/// a pool of its own.
std::unique_ptr<DeviceGraph> capture_cuda(at::Device device, const std::function<void()>& work);

} // namespace ponderscope
