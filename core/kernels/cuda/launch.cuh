// SPDX-License-Identifier: GPL-3.0-or-later
// Starts a kernel. The tests compile the kernels without a CUDA compiler, with a small replacement of CUDA on
// the host (tests/support/host_cuda). Code that differs is under __CUDACC__.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

namespace ponderscope::kernels {

template <typename... Parameters, typename... Arguments>
void launch_kernel(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared,
                   cudaStream_t stream, const Arguments&... arguments) {
#if defined(__CUDACC__)
    kernel<<<grid, block, shared, stream>>>(arguments...);
#else
    host_cuda::launch(grid, block, shared, stream, [=] { kernel(arguments...); });
#endif
}

/// Null, or the CUDA runtime's error for the kernels started so far.
inline const char* launch_error() {
    const cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

} // namespace ponderscope::kernels
