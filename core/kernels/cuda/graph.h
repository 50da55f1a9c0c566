// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernels/cuda_library.h"

namespace ponderscope {

/// Implements CudaKernels::capture with a CUDA graph of LibTorch. Tensors of the capture have their own pool.
std::unique_ptr<DeviceGraph> capture_cuda(at::Device device, const std::function<void()>& work);

} // namespace ponderscope
