// SPDX-License-Identifier: GPL-3.0-or-later
// What the engine finds behind the library's one exported name.
#include "core/model/cuda_library.h"

#include <ATen/cuda/CUDAContext.h>
#ifdef PONDERSCOPE_WITH_CUDA
#include "core/model/cuda/kernels.h"
#endif

namespace ponderscope {

namespace {

std::string name_of(at::Device device) {
    return at::cuda::getDeviceProperties(device.index())->name;
}

std::int64_t memory_of(at::Device device) {
    return static_cast<std::int64_t>(at::cuda::getDeviceProperties(device.index())->totalGlobalMem);
}

} // namespace

extern "C" __attribute__((visibility("default"))) const CudaKernels* ponderscope_cuda_kernels() {
    static const CudaKernels kernels = [] {
        CudaKernels table;
        table.name_of = name_of;
        table.memory_of = memory_of;
#ifdef PONDERSCOPE_WITH_CUDA
        table.attend_fits = attend_cuda_fits;
        table.attend = attend_cuda;
        table.depth_mix_fits = depth_mix_cuda_fits;
        table.depth_mix = depth_mix_cuda;
        table.read_out_fits = read_out_cuda_fits;
        table.read_out = read_out_cuda;
#endif
        return table;
    }();
    return &kernels;
}

} // namespace ponderscope
