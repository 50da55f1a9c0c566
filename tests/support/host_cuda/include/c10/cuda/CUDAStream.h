// SPDX-License-Identifier: GPL-3.0-or-later
// What the kernels' callers use of LibTorch's header of this name, on the host: a launch returns when it is
// done.
#pragma once

#include <c10/core/Device.h>

namespace c10::cuda {

struct CUDAStream {
    [[nodiscard]] void* stream() const { return nullptr; }
};
inline CUDAStream getCurrentCUDAStream(DeviceIndex = -1) {
    return {};
}

} // namespace c10::cuda
