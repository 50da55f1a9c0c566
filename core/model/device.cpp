// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/device.h"

#include "core/base/error.h"
#include "core/model/cuda_library.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/DeviceType.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <charconv>
#include <mutex>

#include <malloc.h>

namespace ponderscope {

namespace {

bool has_bfloat16_products() {
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512bf16") > 0;
#else
    return false;
#endif
}

} // namespace

std::string to_string(Precision precision) {
    switch (precision) {
    case Precision::float32:
        return "float32";
    case Precision::bfloat16:
        return "bfloat16";
    case Precision::float16:
        return "float16";
    }
    return {};
}

std::optional<Precision> precision_from_string(const std::string& name) {
    for (const Precision precision : {Precision::float32, Precision::bfloat16, Precision::float16}) {
        if (to_string(precision) == name) {
            return precision;
        }
    }
    return std::nullopt;
}

at::Device device_from_string(const std::string& name) {
    if (name == "cpu") {
        return at::kCPU;
    }
    if (c10::is_privateuse1_backend_registered() && name == c10::get_privateuse1_backend()) {
        return at::Device(at::kPrivateUse1, 0);
    }
    int index = 0;
    const bool numbered = name.starts_with("cuda:");
    if (numbered) {
        const auto [end, error] = std::from_chars(name.data() + 5, name.data() + name.size(), index);
        if (error != std::errc() || end != name.data() + name.size() || index < 0) {
            throw InputError("The device '" + name +
                             "' is not known; use cpu, cuda or cuda:N with N counted from 0.");
        }
    } else if (name != "cuda") {
        throw InputError("The device '" + name +
                         "' is not known; use cpu, cuda or cuda:N with N counted from 0.");
    }
    load_cuda();
    const int count = at::hasCUDA() ? at::detail::getCUDAHooks().getNumGPUs() : 0;
    if (count == 0) {
        throw InputError("The device '" + name +
                         "' needs a CUDA GPU and its driver, and none was found; use --device cpu.");
    }
    if (index >= count) {
        throw InputError("The device '" + name + "' is not there: this machine has " + std::to_string(count) +
                         (count == 1 ? " GPU" : " GPUs") + ", counted from 0.");
    }
    return {at::kCUDA, static_cast<c10::DeviceIndex>(index)};
}

bool has_cuda_gpu() {
    try {
        return device_from_string("cuda").is_cuda();
    } catch (const InputError&) {
        return false;
    }
}

std::string describe_device(at::Device device) {
    const CudaKernels* cuda = cuda_kernels(device);
    return cuda != nullptr ? device.str() + " " + cuda->name_of(device) : device.str();
}

at::ScalarType scalar_type_of(Precision precision) {
    switch (precision) {
    case Precision::bfloat16:
        return at::kBFloat16;
    case Precision::float16:
        return at::kHalf;
    default:
        return at::kFloat;
    }
}

std::string precision_hint(at::Device device, Precision precision) {
    if (!device.is_cpu()) {
        return {};
    }
    if (precision == Precision::float32 && has_bfloat16_products()) {
        return "This processor multiplies bfloat16 matrices several times faster than float32; --dtype "
               "bfloat16 uses that, at two to "
               "three significant digits.";
    }
    if (precision == Precision::float16) {
        return "float16 is slow on most processors; float32 is exact and bfloat16 is faster where the "
               "processor has it.";
    }
    if (precision == Precision::bfloat16 && !has_bfloat16_products()) {
        return "This processor has no bfloat16 instructions: float32 is both faster and exact here.";
    }
    return {};
}

void keep_host_memory() {
    static std::once_flag once;
    std::call_once(once, [] {
        // 32 MiB is the largest threshold that glibc accepts; larger blocks come from the system each time.
        mallopt(M_MMAP_THRESHOLD, 32 << 20);
        mallopt(M_TRIM_THRESHOLD, 512 << 20);
    });
}

std::optional<DeviceMemory> device_memory(at::Device device) {
    if (const CudaKernels* cuda = cuda_kernels(device)) {
        constexpr auto all = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
        const auto stats = at::getDeviceAllocator(at::kCUDA)->getDeviceStats(device.index());
        return DeviceMemory{stats.allocated_bytes[all].current, stats.allocated_bytes[all].peak,
                            cuda->memory_of(device)};
    }
    return std::nullopt;
}

void forget_peak_memory(at::Device device) {
    if (device.is_cuda()) {
        at::getDeviceAllocator(at::kCUDA)->resetPeakStats(device.index());
    }
}

MemoryExhausted memory_exhausted(at::Device device) {
    std::string size;
    if (const auto memory = device_memory(device)) {
        at::getDeviceAllocator(device.type())->emptyCache();
        size = " (" + std::to_string(memory->total >> 20) + " MiB)";
    }
    return MemoryExhausted("The memory of " + describe_device(device) + size + " is full.");
}

at::Tensor send(std::span<const std::int64_t> values, at::Device device) {
    at::Tensor host = at::empty({static_cast<std::int64_t>(values.size())},
                                at::TensorOptions(at::kLong).pinned_memory(!device.is_cpu()));
    std::copy(values.begin(), values.end(), host.mutable_data_ptr<std::int64_t>());
    return host.to(device, /*non_blocking=*/true);
}

HostCopy::HostCopy(const std::vector<at::Tensor>& tensors) : offsets_{0} {
    std::vector<at::Tensor> parts;
    for (const at::Tensor& tensor : tensors) {
        at::Tensor flat = tensor.reshape({-1}).contiguous();
        if (flat.scalar_type() == at::kHalf && flat.size(0) % 2 != 0) {
            flat = at::cat({flat, at::zeros({1}, flat.options())}); // they travel in pairs
        }
        parts.push_back(flat.scalar_type() == at::kLong ? flat.to(at::kInt) : flat.view(at::kInt));
        offsets_.push_back(offsets_.back() + parts.back().size(0));
    }
    packed_ = at::cat(parts);
    const at::Device device = packed_.device();
    if (device.is_cpu()) {
        host_ = packed_;
        return;
    }
    host_ = at::empty(packed_.sizes(), at::TensorOptions(at::kInt).pinned_memory(true));
    const c10::impl::VirtualGuardImpl guard(device.type());
    c10::Event computed(device.type());
    computed.record(guard.getStream(device));
    const c10::Stream side = guard.getStreamFromGlobalPool(device);
    computed.block(side);
    {
        const c10::StreamGuard on_side(side);
        host_.copy_(packed_, /*non_blocking=*/true);
        packed_.record_stream(side);
        arrived_.emplace(device.type());
        arrived_->record(side);
    }
}

void HostCopy::wait() {
    if (arrived_) {
        arrived_->synchronize();
        arrived_.reset();
    }
    packed_ = at::Tensor();
}

const std::int32_t* HostCopy::integers(std::size_t i) const {
    return host_.const_data_ptr<std::int32_t>() + offsets_[i];
}

const std::uint16_t* HostCopy::halves(std::size_t i) const {
    return reinterpret_cast<const std::uint16_t*>(integers(i));
}

const float* HostCopy::floats(std::size_t i) const {
    return reinterpret_cast<const float*>(integers(i));
}

} // namespace ponderscope
