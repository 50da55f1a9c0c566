// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/cuda/graph.h"

#include <ATen/cuda/CUDAGraph.h>
#include <c10/core/DeviceGuard.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <map>

namespace ponderscope {

namespace {

/// The default stream cannot be captured; nothing runs on this one. Always the same, since LibTorch keeps
/// room for matrix products by stream, to the program's end.
c10::cuda::CUDAStream capturing_stream(at::Device device) {
    thread_local std::map<c10::DeviceIndex, c10::cuda::CUDAStream> streams;
    return streams.try_emplace(device.index(), c10::cuda::getStreamFromPool(false, device.index()))
        .first->second;
}

class CudaGraph final : public DeviceGraph {
public:
    CudaGraph(at::Device device, const std::function<void()>& work) : device_(device) {
        const c10::DeviceGuard there(device);
        // What is taken from memory here is the graph's own until that is gone.
        const c10::cuda::CUDAStreamGuard apart(capturing_stream(device));
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
