// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/device.h"

#include "core/base/error.h"
#include "core/base/words.h"
#include "core/kernels/cuda_library.h"
#include "core/model/local_gpu.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/DeviceType.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include <algorithm>

namespace ponderscope {

namespace {

bool sums_in_half(at::CuBLASReductionOption option) {
    return option == at::CuBLASReductionOption::AllowReducedPrecisionWithSplitK;
}

bool has_bfloat16_products() {
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512bf16") > 0;
#else
    return false;
#endif
}

/// In the order of Precision.
constexpr const char* precision_labels[] = {"float32", "tf32", "bfloat16", "float16"};

/// The GPUs with a report in resources/docs/gpu.md: the driver's name, and the report's version and date.
constexpr std::pair<std::string_view, std::string_view> verified_gpus[] = {
    {"NVIDIA H100 80GB HBM3", "version 0.1.0, 2026-11-27"}, {"NVIDIA H200", "version 0.1.0, 2026-11-27"}};

std::string verification_of(const std::string& name) {
    for (const auto& [gpu, report] : verified_gpus) {
        if (gpu == name) {
            return "Verified on " + name + ", " + std::string(report) + ".";
        }
    }
    return "Ponderscope has not been verified on " + name +
           " yet. Run ./run gpu to check it, or compare with --device cpu.";
}

/// The lowest compute capability that the kernels are compiled for (resources/build/CudaKernels.cmake).
constexpr int oldest_capability = 80;

std::string tenths(int capability) {
    return std::to_string(capability / 10) + "." + std::to_string(capability % 10);
}

/// The number of GPUs. Silences LibTorch's warning about an unusable driver; our error uses why_none().
int count_gpus() {
    struct Silence final : c10::WarningHandler {
        void process(const c10::Warning&) override {}
    } silence;
    const c10::WarningUtils::WarningHandlerGuard guard(&silence);
    return at::hasCUDA() ? at::detail::getCUDAHooks().getNumGPUs() : 0;
}

bool too_old(at::Device gpu) {
    return cuda_kernels(gpu)->capability_of(gpu) < oldest_capability;
}

/// Bytes that tensors of this process hold on a device, from LibTorch's allocator. A query to an unused GPU
/// would take half a gigabyte of its memory, or fail if it is full.
c10::CachingAllocator::Stat held_memory(at::Device device) {
    constexpr auto all = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    return at::getDeviceAllocator(device.type())->getDeviceStats(device.index()).allocated_bytes[all];
}

/// All GPUs of this machine that can run the kernels.
std::vector<at::Device> gpus() {
    std::vector<at::Device> devices;
    try {
        load_cuda();
    } catch (const InputError&) {
        return devices;
    }
    const int count = count_gpus();
    for (int i = 0; i < count; ++i) {
        const at::Device device(at::kCUDA, static_cast<c10::DeviceIndex>(i));
        if (!too_old(device)) {
            devices.push_back(device);
        }
    }
    return devices;
}

/// Bytes that no process uses.
std::int64_t free_memory(at::Device gpu) {
    try {
        return static_cast<std::int64_t>(
            at::getDeviceAllocator(gpu.type())->getMemoryInfo(gpu.index()).first);
    } catch (const c10::Error&) { // full, or reserved by another process
        return 0;
    }
}

} // namespace

std::string to_string(Precision precision) {
    return precision_labels[static_cast<std::size_t>(precision)];
}

std::optional<Precision> precision_from_string(const std::string& name) {
    const auto found = std::ranges::find(precision_labels, name);
    return found == std::end(precision_labels)
               ? std::nullopt
               : std::optional(static_cast<Precision>(found - std::begin(precision_labels)));
}

std::string precision_names() {
    return "float32, tf32, bfloat16 or float16";
}

GpuProducts::GpuProducts(Precision precision) : were_rounded_(at::globalContext().allowTF32CuBLAS()) {
    // Write the switch only if it changes, so that engines with equal rounding may run side by side.
    if (const bool rounded = precision == Precision::tf32; rounded != were_rounded_) {
        at::globalContext().setAllowTF32CuBLAS(rounded);
    }
    if (sums_in_half(at::globalContext().allowBF16ReductionCuBLAS())) {
        at::globalContext().setAllowBF16ReductionCuBLAS(false);
    }
    if (sums_in_half(at::globalContext().allowFP16ReductionCuBLAS())) {
        at::globalContext().setAllowFP16ReductionCuBLAS(false);
    }
}

GpuProducts::~GpuProducts() {
    if (at::globalContext().allowTF32CuBLAS() != were_rounded_) {
        at::globalContext().setAllowTF32CuBLAS(were_rounded_);
    }
}

at::Device device_from_string(const std::string& name) {
    if (name == "cpu") {
        return at::kCPU;
    }
    const std::size_t colon = name.find(':');
    const std::string kind = name.substr(0, colon);
    int index = 0;
    bool known = true;
    if (colon != std::string::npos) {
        index = parse_number<int>(std::string_view(name).substr(colon + 1)).value_or(-1);
        known = index >= 0;
    }
    const bool registered =
        c10::is_privateuse1_backend_registered() && kind == c10::get_privateuse1_backend();
    if (!known || (kind != "cuda" && !registered)) {
        throw InputError(ErrorId::device_unusable,
                         "The device '" + name +
                             "' is not known; use cpu, cuda or cuda:N with N counted from 0.");
    }
    if (!registered) {
        load_cuda();
    }
    const int count =
        registered ? c10::impl::getDeviceGuardImpl(at::kPrivateUse1)->deviceCount() : count_gpus();
    if (count == 0) {
        throw InputError(ErrorId::device_unusable,
                         "The device '" + name + "' needs a CUDA GPU and its driver, and none was found (" +
                             cuda_kernels(at::kCUDA)->why_none() + "); use --device cpu.");
    }
    if (index >= count) {
        throw InputError(ErrorId::device_unusable,
                         "The device '" + name + "' does not exist: this machine has " +
                             std::to_string(count) + (count == 1 ? " GPU" : " GPUs") +
                             ", counted from 0; name a GPU of this machine.");
    }
    const at::Device device(registered ? at::kPrivateUse1 : at::kCUDA, static_cast<c10::DeviceIndex>(index));
    if (!registered && too_old(device)) {
        throw InputError(ErrorId::device_unusable,
                         "The device '" + name + "' is too old: " + cuda_kernels(device)->name_of(device) +
                             " has compute capability " +
                             tenths(cuda_kernels(device)->capability_of(device)) +
                             ", and Ponderscope's kernels are built for " + tenths(oldest_capability) +
                             " (Ampere, 2020) and later; use --device cpu or another GPU.");
    }
    return device;
}

at::Device device_for(const std::string& name, std::int64_t bytes) {
    if (name != "auto") {
        return device_from_string(name);
    }
    for (const at::Device gpu : gpus()) {
        if (free_memory(gpu) >= bytes + bytes / 4) {
            return gpu;
        }
    }
    return at::kCPU;
}

std::string local_gpu(std::int64_t local_rank) {
    (void)device_from_string("cuda"); // throws if there is no GPU
    return "cuda:" + std::to_string(local_rank % count_gpus());
}

std::optional<std::int64_t> peak_gpu_memory() {
    if (cuda_kernels(at::kCUDA) == nullptr) {
        return std::nullopt;
    }
    std::int64_t bytes = 0;
    for (const at::Device device : gpus()) {
        try {
            bytes += held_memory(device).peak;
        } catch (const c10::Error&) { // nothing was ever allocated on this GPU
        }
    }
    return bytes;
}

std::string describe_device(at::Device device) {
    const CudaKernels* cuda = cuda_kernels(device);
    return cuda != nullptr && cuda->name_of != nullptr ? device.str() + " " + cuda->name_of(device)
                                                       : device.str();
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

std::string device_hint(at::Device device, Precision precision) {
    if (!device.is_cpu()) {
        const CudaKernels* cuda = cuda_kernels(device);
        return cuda != nullptr && cuda->name_of != nullptr ? verification_of(cuda->name_of(device))
                                                           : std::string();
    }
    if (precision == Precision::tf32) {
        return "tf32 is how a GPU multiplies float32; this processor multiplies float32 exactly.";
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

MemoryExhausted memory_exhausted(at::Device device) {
    std::string size;
    if (!device.is_cpu()) {
        c10::DeviceAllocator* const allocator = at::getDeviceAllocator(device.type());
        size = " (" + std::to_string(allocator->getMemoryInfo(device.index()).second >> 20) + " MiB)";
        allocator->emptyCache();
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
        if (flat.scalar_type() == at::kLong) {
            flat = flat.to(at::kInt);
        }
        const auto in_a_word = static_cast<std::int64_t>(4 / flat.element_size());
        if (const std::int64_t over = flat.size(0) % in_a_word; over != 0) {
            flat = at::cat({flat, at::zeros({in_a_word - over}, flat.options())}); // copies whole words
        }
        parts.push_back(flat.view(at::kInt));
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

const std::byte* HostCopy::bytes(std::size_t i) const {
    return reinterpret_cast<const std::byte*>(integers(i));
}

const float* HostCopy::floats(std::size_t i) const {
    return reinterpret_cast<const float*>(integers(i));
}

} // namespace ponderscope
