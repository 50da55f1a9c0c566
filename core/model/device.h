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

/// "cpu", "cuda", "cuda:N", or the name of a backend that is registered with LibTorch (PrivateUse1), with or
/// without a number. InputError for other names and for a missing GPU.
at::Device device_from_string(const std::string& name);
/// device_from_string(); for "auto", the first GPU with free memory for \p bytes of weights and a quarter
/// more for activations, else the CPU.
at::Device device_for(const std::string& name, std::int64_t bytes);
/// "cpu", "cuda:0 NVIDIA H200".
std::string describe_device(at::Device device);
at::ScalarType scalar_type_of(Precision precision);
/// Sets the precision of matrix products on GPUs while the object lives: with tf32, fp32 factors are rounded;
/// otherwise they are not. LibTorch's switch is global: while several objects live, products of any thread
/// may use either precision. The first object also sets fp32 sums for products in half precision for the rest
/// of the process; LibTorch's default may round partial sums to half precision.
class GpuProducts {
public:
    explicit GpuProducts(Precision precision);
    ~GpuProducts();
    GpuProducts(const GpuProducts&) = delete;
    GpuProducts& operator=(const GpuProducts&) = delete;

private:
    bool were_rounded_;
};
/// A hint about this device: an unsuitable precision, or whether Ponderscope has been verified on this GPU.
/// Empty: no hint.
std::string device_hint(at::Device device, Precision precision);

/// The error for a full device, without a remedy. First frees cached memory for the caller's next attempt.
MemoryExhausted memory_exhausted(at::Device device);

/// Copies numbers to a device from pinned memory, asynchronously. Returns int64 [n].
at::Tensor send(std::span<const std::int64_t> values, at::Device device);

/// Copies tensors to the host: one copy, on a separate stream, into pinned memory. On the CPU the tensors are
/// available at once.
class HostCopy {
public:
    /// \p tensors: fp32, int64 (copied as int32) or other types of at most 4 bytes; any shapes, one device.
    explicit HostCopy(const std::vector<at::Tensor>& tensors);
    /// Waits for the copy. The functions below then return the elements of tensor i, in order.
    void wait();
    [[nodiscard]] const float* floats(std::size_t i) const;
    [[nodiscard]] const std::int32_t* integers(std::size_t i) const;
    [[nodiscard]] const std::byte* bytes(std::size_t i) const;

private:
    at::Tensor packed_; ///< int32 on the device; kept until the copy is complete
    at::Tensor host_;
    std::vector<std::int64_t> offsets_;
    std::optional<c10::Event> arrived_;
};

} // namespace ponderscope
