// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/cuda_library.h"

#include "core/base/error.h"

#include <ATen/detail/CUDAHooksInterface.h>

#include <dlfcn.h>

#include <mutex>
#include <stdexcept>
#include <string>

namespace ponderscope {

namespace {

const CudaKernels* loaded = nullptr;
const CudaKernels* brought = nullptr; ///< the kernels of a registered backend

} // namespace

void load_cuda() {
    static std::mutex mutex;
    const std::scoped_lock lock(mutex);
    if (loaded != nullptr) {
        return;
    }
    void* opened = dlopen("libponderscope_cuda.so", RTLD_NOW | RTLD_LOCAL); // stays loaded
    void* door = opened != nullptr ? dlsym(opened, "ponderscope_cuda_kernels") : nullptr;
    if (door == nullptr) {
        const char* why = dlerror(); // NOLINT(concurrency-mt-unsafe): the message is per thread
        throw InputError(ErrorId::environment_program,
                         "cannot load the CUDA code of Ponderscope (" +
                             std::string(why != nullptr ? why : "the file is missing") +
                             "). Use --device cpu, or build it with: ./run build --cuda");
    }
    // LibTorch searches for its CUDA libraries only once: at the first use of a GPU or of a gradient.
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
