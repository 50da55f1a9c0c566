// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/placement.h"

#include "core/base/error.h"
#include "core/model/device.h"
#include "core/model/parameters.h"

#include <algorithm>
#include <numeric>
#include <sstream>
#include <utility>

namespace ponderscope {

namespace {

/// Bytes of what lies outside of the blocks, then of each block.
std::vector<double> sizes_of(const ParameterLayout& layout, at::ScalarType dtype) {
    std::vector<double> sizes(layout.blocks.size() + 1, 0.0);
    for (const TensorSpec& spec : layout.tensors) {
        if (layout.tied && spec.name == layout.head) {
            continue;
        }
        const double elements =
            std::accumulate(spec.shape.begin(), spec.shape.end(), 1.0,
                            [](double all, std::int64_t size) { return all * static_cast<double>(size); });
        sizes[static_cast<std::size_t>(layout.block_of(spec) + 1)] +=
            elements * static_cast<double>(c10::elementSize(dtype));
    }
    return sizes;
}

std::vector<at::Device> devices_in(const std::string& text) {
    std::vector<at::Device> devices;
    std::istringstream list(text);
    for (std::string name; std::getline(list, name, ',');) {
        const at::Device device = device_from_string(name);
        if (std::find(devices.begin(), devices.end(), device) != devices.end()) {
            throw InputError("--device " + text + " names " + device.str() + " twice.");
        }
        if (!devices.empty() && device.type() != devices.front().type()) {
            throw InputError("--device " + text +
                             ": a model is split over GPUs alone, not between them and the CPU.");
        }
        devices.push_back(device);
    }
    return devices;
}

/// As few GPUs as hold \p bytes: the first that does alone, else those that others have left the most of.
std::vector<at::Device> as_needed(double bytes) {
    std::vector<std::pair<double, at::Device>> room;
    for (const at::Device device : gpus()) {
        room.emplace_back(static_cast<double>(free_memory(device).value_or(0)), device);
        if (room.back().first >= bytes) {
            return {device};
        }
    }
    std::stable_sort(room.begin(), room.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<at::Device> devices;
    for (const auto& [here, device] : room) {
        if (bytes <= 0) {
            break;
        }
        devices.push_back(device);
        bytes -= here;
    }
    return devices.empty() ? std::vector<at::Device>{at::kCPU} : devices;
}

} // namespace

Placement Placement::of(const std::string& devices, const ParameterLayout& layout, at::ScalarType dtype) {
    if (devices != "auto" && devices.find(',') == std::string::npos) {
        return device_from_string(devices);
    }
    const std::vector<double> sizes = sizes_of(layout, dtype);
    const double all = std::accumulate(sizes.begin(), sizes.end(), 0.0);
    constexpr double activation_headroom = 1.25;
    Placement placement(at::kCPU);
    placement.devices_ = devices == "auto" ? as_needed(all * activation_headroom) : devices_in(devices);
    const std::size_t count = placement.devices_.size();
    if (count == 0) {
        throw InputError("--device '" + devices +
                         "' names no device; use cpu, cuda, cuda:N, several of them with "
                         "commas between, or auto.");
    }
    if (count > layout.blocks.size()) {
        throw InputError("--device " + devices + " names " + std::to_string(count) +
                         " devices, and this model has " + std::to_string(layout.blocks.size()) +
                         " blocks: name at most one for each.");
    }
    if (count == 1) {
        return placement;
    }
    std::vector<double> room;
    for (const at::Device device : placement.devices_) {
        room.push_back(static_cast<double>(free_memory(device).value_or(1)));
    }
    const double rooms = std::accumulate(room.begin(), room.end(), 0.0);
    double placed = sizes.front();
    double wanted = 0;
    std::int64_t block = 0;
    for (std::size_t i = 0; i < count; ++i) {
        wanted += all * room[i] / rooms;
        // One for each of those that follow, and one at least; half a block is rounded.
        const auto last = static_cast<std::int64_t>(layout.blocks.size() - (count - 1 - i));
        const std::int64_t first = block;
        while (block < last && (block == first || i + 1 == count ||
                                placed + sizes[static_cast<std::size_t>(block) + 1] / 2 <= wanted)) {
            placed += sizes[static_cast<std::size_t>(++block)];
        }
        placement.ends_.push_back(block);
    }
    return placement;
}

at::Device Placement::of(std::int64_t block) const {
    if (block < 0 || ends_.empty()) {
        return home();
    }
    const auto after = std::upper_bound(ends_.begin(), ends_.end(), block);
    return devices_[static_cast<std::size_t>(after - ends_.begin())];
}

std::string Placement::text() const {
    std::string text;
    for (std::size_t i = 0; i < devices_.size(); ++i) {
        text += (i == 0 ? "" : i + 1 < devices_.size() ? ", " : " and ") + describe_device(devices_[i]);
        if (!ends_.empty()) {
            text += " (blocks " + std::to_string(i == 0 ? 0 : ends_[i - 1]) + " to " +
                    std::to_string(ends_[i] - 1) + ")";
        }
    }
    return text;
}

} // namespace ponderscope
