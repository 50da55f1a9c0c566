// SPDX-License-Identifier: GPL-3.0-or-later
// How the kernels' sources start a kernel. The tests compile the same sources without a CUDA compiler, over
// the small host form of CUDA in tests/support/host_cuda; here alone they differ.
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

/// Null, or what the CUDA runtime says is wrong with the kernels started so far.
inline const char* launch_error() {
    const cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

} // namespace ponderscope::kernels
