// SPDX-License-Identifier: GPL-3.0-or-later
// The library's one exported function.
#include "core/kernels/cuda/graph.h"
#include "core/kernels/cuda/kernels.h"
#include "core/kernels/cuda_library.h"

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAFunctions.h>

namespace ponderscope {

namespace {

std::string name_of(at::Device device) {
    return at::cuda::getDeviceProperties(device.index())->name;
}

int capability_of(at::Device device) {
    const auto* properties = at::cuda::getDeviceProperties(device.index());
    return 10 * properties->major + properties->minor;
}

std::string why_none() {
    try {
        (void)c10::cuda::device_count_ensure_non_zero();
    } catch (const c10::Error& error) {
        const std::string words = error.what_without_backtrace();
        return words.substr(0, words.find_first_of(".\n"));
    }
    return "no words";
}

} // namespace

extern "C" __attribute__((visibility("default"))) const CudaKernels* ponderscope_cuda_kernels() {
    static const CudaKernels kernels = [] {
        CudaKernels table;
        table.name_of = name_of;
        table.capability_of = capability_of;
        table.why_none = why_none;
        table.capture = capture_cuda;
        add_kernels(table);
        return table;
    }();
    return &kernels;
}

} // namespace ponderscope
