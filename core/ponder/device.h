// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/ponder/engine.h"

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <optional>
#include <string>
#include <vector>

namespace ponderscope {

/// "cpu", "cuda", "cuda:N". InputError for anything else and for a GPU that is not there.
at::Device device_from_string(const std::string& name);
/// "cpu", "cuda:0 NVIDIA H200".
std::string describe_device(at::Device device);
at::ScalarType scalar_type_of(Precision precision);
/// What the user should know about that combination: a faster precision that this processor has, a slow one.
/// Empty: nothing.
std::string precision_hint(at::Device device, Precision precision);

/// Keeps freed memory of the CPU in the process: fresh pages cost as much as the arithmetic on them. Once a
/// process; changes no result.
void keep_host_memory();

/// Tensors on their way to the host: one copy, on a stream of its own, into pinned memory. On the CPU the
/// tensors are there at once.
class HostCopy {
public:
    /// \p tensors: fp32 or int64 (sent as int32), any shapes, one device.
    explicit HostCopy(const std::vector<at::Tensor>& tensors);
    /// Waits until everything has arrived; then field(i) are the tensors' elements in order.
    void wait();
    [[nodiscard]] const float* floats(std::size_t i) const;
    [[nodiscard]] const std::int32_t* integers(std::size_t i) const;
    [[nodiscard]] std::int64_t size(std::size_t i) const { return offsets_[i + 1] - offsets_[i]; }

private:
    at::Tensor packed_; ///< int32 on the device; kept until it has been read
    at::Tensor host_;
    std::vector<std::int64_t> offsets_;
    std::optional<c10::Event> arrived_;
};

} // namespace ponderscope
