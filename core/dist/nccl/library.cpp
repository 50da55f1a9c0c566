// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/dist/nccl/library.h"

#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

namespace ponderscope {

extern "C" __attribute__((visibility("default"))) c10d::Backend*
ponderscope_open_nccl(c10d::Store* store, int rank, int size, int gpu, int seconds) {
    auto options = c10d::ProcessGroupNCCL::Options::create();
    options->timeout = std::chrono::seconds(seconds);
    auto group = c10::make_intrusive<c10d::ProcessGroupNCCL>(
        c10::intrusive_ptr<c10d::Store>::reclaim_copy(store), rank, size, options);
    group->setBoundDeviceId(at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(gpu)));
    return group.release();
}

} // namespace ponderscope
