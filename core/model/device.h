// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/error.h"
#include "core/model/precision.h"

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ponderscope {

/// "cpu", "cuda", "cuda:N", or the name of a backend that was registered with LibTorch (PrivateUse1),
/// numbered or not. InputError for anything else and for a GPU that is not there.
at::Device device_from_string(const std::string& name);
/// The same, and "auto": the first GPU whose free memory holds a model of \p bytes and a quarter more for
/// activations, else the CPU.
at::Device device_for(const std::string& name, std::int64_t bytes);
/// Whether "cuda" is there.
bool has_cuda_gpu();
/// "cpu", "cuda:0 NVIDIA H200".
std::string describe_device(at::Device device);
at::ScalarType scalar_type_of(Precision precision);
/// GPUs' products as \p precision has them, while it lives: of fp32 tensors rounded for tf32, else exact.
/// LibTorch has one such switch for the process: between several, other threads' products may be either. From
/// the first such object on, products in half precision are summed in fp32; LibTorch's default may round
/// partial sums to half precision.
class GpuProducts {
public:
    explicit GpuProducts(Precision precision);
    ~GpuProducts();
    GpuProducts(const GpuProducts&) = delete;
    GpuProducts& operator=(const GpuProducts&) = delete;

private:
    bool were_rounded_;
};
/// What the user should know of this device: a precision that suits it badly, or whether Ponderscope has been
/// verified on this GPU. Empty: nothing.
std::string device_hint(at::Device device, Precision precision);

/// What a GPU's memory holds of this process, in bytes.
struct DeviceMemory {
    std::int64_t used = 0;  ///< by tensors that live
    std::int64_t peak = 0;  ///< the most since forget_peak_memory()
    std::int64_t total = 0; ///< of the GPU
};
/// Nothing on a CPU.
std::optional<DeviceMemory> device_memory(at::Device device);
void forget_peak_memory(at::Device device);
/// The message for a full device, without a remedy. Frees cached memory first, so that a smaller attempt has
/// it.
MemoryExhausted memory_exhausted(at::Device device);

/// Copies numbers to a device from pinned memory without waiting. int64 [n].
at::Tensor send(std::span<const std::int64_t> values, at::Device device);

/// Tensors on their way to the host: one copy, on a separate stream, into pinned memory. On the CPU the
/// tensors are there at once.
class HostCopy {
public:
    /// \p tensors: fp32, fp16 or int64 (sent as int32), any shapes, one device.
    explicit HostCopy(const std::vector<at::Tensor>& tensors);
    /// Waits until everything has arrived; then field(i) are the tensors' elements in order.
    void wait();
    [[nodiscard]] const float* floats(std::size_t i) const;
    [[nodiscard]] const std::int32_t* integers(std::size_t i) const;
    [[nodiscard]] const std::uint16_t* halves(std::size_t i) const;

private:
    at::Tensor packed_; ///< int32 on the device; kept until it has been read
    at::Tensor host_;
    std::vector<std::int64_t> offsets_;
    std::optional<c10::Event> arrived_;
};

} // namespace ponderscope
