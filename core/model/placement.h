// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>
#include <vector>

namespace ponderscope {

struct ParameterLayout;

/// Where the tensors of a model lie: each block on one device, in order, everything else (tables, final norm,
/// a method's own) on the first. Inputs and outputs of a pass are on the first device, too.
class Placement {
public:
    /// The whole model on one device.
    Placement(at::Device device) : devices_{device} {} // NOLINT(google-explicit-constructor)
    /// The placement that a value of `--device` describes: a device (device.h); several devices with commas
    /// between them, the first of which holds the tables; or "auto", the CPU where there is no GPU, else as
    /// few GPUs as have room for the weights and a quarter more for activations. Each device gets so many
    /// blocks that all devices fill about the same share of their free memory, or hold about the same number
    /// of bytes where the free memory is unknown. InputError: a device is named twice or missing, or there
    /// are more devices than blocks.
    static Placement of(const std::string& devices, const ParameterLayout& layout, at::ScalarType dtype);

    [[nodiscard]] at::Device home() const { return devices_.front(); }
    /// The device of a block; -1: the device of tensors that belong to no block.
    [[nodiscard]] at::Device of(std::int64_t block) const;
    [[nodiscard]] const std::vector<at::Device>& devices() const { return devices_; }
    /// "cpu", "cuda:0 NVIDIA H200", "cuda:0 NVIDIA H200 (blocks 0 to 11) and cuda:1 NVIDIA H200 (12 to 23)".
    [[nodiscard]] std::string text() const;

private:
    std::vector<at::Device> devices_;
    std::vector<std::int64_t> ends_; ///< a device: one behind its last block; empty: one device
};

} // namespace ponderscope
