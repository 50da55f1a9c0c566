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
    /// All of it on one device.
    Placement(at::Device device) : devices_{device} {} // NOLINT(google-explicit-constructor)
    /// Of what `--device` says: a device (device.h), several with commas between them, the first of which
    /// holds the tables; or "auto": the CPU where there is no GPU, else as few GPUs as have room for the
    /// weights and a quarter more for activations. Blocks go to the devices in such numbers that each
    /// holds about the same share of its free memory; of the same bytes where that is unknown. InputError: a
    /// device twice or not there, more devices than blocks.
    static Placement of(const std::string& devices, const ParameterLayout& layout, at::ScalarType dtype);

    [[nodiscard]] at::Device home() const { return devices_.front(); }
    /// Of a block; -1: of what belongs to none.
    [[nodiscard]] at::Device of(std::int64_t block) const;
    [[nodiscard]] const std::vector<at::Device>& devices() const { return devices_; }
    /// "cpu", "cuda:0 NVIDIA H200", "cuda:0 NVIDIA H200 (blocks 0 to 11) and cuda:1 NVIDIA H200 (12 to 23)".
    [[nodiscard]] std::string text() const;

private:
    std::vector<at::Device> devices_;
    std::vector<std::int64_t> ends_; ///< a device: one behind its last block; empty: one device
};

} // namespace ponderscope
