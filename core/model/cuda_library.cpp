// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/cuda_library.h"

#include "core/base/error.h"

#include <mutex>

#include <dlfcn.h>

namespace ponderscope {

namespace {

const CudaKernels* loaded = nullptr;

} // namespace

void load_cuda() {
    static std::mutex mutex;
    const std::scoped_lock lock(mutex);
    if (loaded != nullptr) {
        return;
    }
#ifdef PONDERSCOPE_TORCH_HAS_CUDA
    // By name: the program's run path says where. It stays loaded: LibTorch keeps what registers itself.
    void* library = dlopen("libponderscope_cuda.so", RTLD_NOW | RTLD_LOCAL);
    void* door = library != nullptr ? dlsym(library, "ponderscope_cuda_kernels") : nullptr;
    if (door == nullptr) {
        throw InputError(std::string("The CUDA library of Ponderscope could not be loaded (") + dlerror() +
                         "); use --device cpu, or build or install it anew.");
    }
    loaded = reinterpret_cast<const CudaKernels* (*)()>(door)();
#else
    throw InputError("This build has no CUDA: its LibTorch is one for CPUs alone; use --device cpu.");
#endif
}

const CudaKernels* cuda_kernels(at::Device device) {
    return device.is_cuda() ? loaded : nullptr;
}

const CudaKernels* cuda_kernels(const at::Tensor& tensor) {
    return cuda_kernels(tensor.device());
}

} // namespace ponderscope
