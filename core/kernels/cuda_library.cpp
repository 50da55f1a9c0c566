// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/cuda_library.h"

#include "core/base/error.h"
#include "core/base/plugin.h"

#include <ATen/detail/CUDAHooksInterface.h>

#include <mutex>
#include <stdexcept>

namespace ponderscope {

namespace {

const CudaKernels* loaded = nullptr;
const CudaKernels* brought = nullptr; ///< by a registered backend

} // namespace

void load_cuda() {
    static std::mutex mutex;
    const std::scoped_lock lock(mutex);
    if (loaded != nullptr) {
        return;
    }
    std::string why;
    void* door = function_of_plugin("libponderscope_cuda.so", "ponderscope_cuda_kernels", why);
    if (door == nullptr) {
        throw InputError("cannot load the CUDA code of Ponderscope (" + why +
                         "). Use --device cpu, or build it with: ./run build --cuda");
    }
    // LibTorch looks for its CUDA half when it is asked for a GPU for the first time, as by a gradient, and
    // never again.
    if (!at::detail::getCUDAHooks().hasCUDART()) {
        throw std::logic_error(
            "load_cuda() comes too late: LibTorch was asked for a GPU before, by a gradient, "
            "at::manual_seed() or pinned memory, and now believes that there is none");
    }
    loaded = reinterpret_cast<const CudaKernels* (*)()>(door)();
}

void use_kernels(const CudaKernels& kernels) {
    brought = &kernels;
}

const CudaKernels* cuda_kernels(at::Device device) {
    return device.is_cuda() ? loaded : device.is_privateuseone() ? brought : nullptr;
}

const CudaKernels* cuda_kernels(const at::Tensor& tensor) {
    return cuda_kernels(tensor.device());
}

} // namespace ponderscope
