// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/cuda/graph.h"

#include <ATen/cuda/CUDAGraph.h>
#include <c10/core/DeviceGuard.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

namespace ponderscope {

namespace {

class CudaGraph final : public DeviceGraph {
public:
    CudaGraph(at::Device device, const std::function<void()>& work) : device_(device) {
        const c10::DeviceGuard there(device);
        // The default stream cannot be captured; nothing runs on this one. What it takes from memory is the
        // graph's own until that is gone.
        const c10::cuda::CUDAStreamGuard apart(
            c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device.index()));
        // Other threads may go on with what no capture allows.
        graph_.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
        try {
            work();
        } catch (...) {
            try {
                graph_.capture_end();
            } catch (const c10::Error&) { // the reason is the one that is under way
            }
            throw;
        }
        graph_.capture_end();
    }

    void replay() override {
        const c10::DeviceGuard there(device_);
        graph_.replay();
    }

private:
    at::Device device_;
    at::cuda::CUDAGraph graph_;
};

} // namespace

std::unique_ptr<DeviceGraph> capture_cuda(at::Device device, const std::function<void()>& work) {
    return std::make_unique<CudaGraph>(device, work);
}

} // namespace ponderscope
