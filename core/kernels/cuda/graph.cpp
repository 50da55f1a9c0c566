// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/cuda/graph.h"

#include <ATen/core/CachingHostAllocator.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/core/DeviceGuard.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>

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

/// LibTorch's, which a capture that failed leaves half done.
class Capture : public at::cuda::CUDAGraph {
public:
    /// Where the device called the capture off, LibTorch ends no more of it than that: its allocator would go
    /// on as if under capture, and neither take back what another stream has read nor, where memory is full,
    /// let go of what it keeps.
    void give_up() {
        quietly([this] { capture_end(); });
        if (capture_ended_) {
            return;
        }
        quietly([this] {
            c10::cuda::CUDACachingAllocator::endAllocateToPool(capture_dev_, mempool_id_);
            at::getHostAllocator(at::kCUDA)->end_allocate_to_pool(mempool_id_);
            capture_ended_ = true; // so that the destructor releases the pools
        });
    }

private:
    /// The reason is the one that is under way.
    template <typename Function>
    static void quietly(const Function& function) {
        try {
            function();
        } catch (const c10::Error&) {
        }
    }
};

class CudaGraph final : public DeviceGraph {
public:
    CudaGraph(at::Device device, const std::function<void()>& work) : device_(device) {
        const c10::DeviceGuard there(device);
        // What is taken from memory here is the graph's own until that is gone.
        const c10::cuda::CUDAStreamGuard apart(capturing_stream(device));
        try {
            // Other threads may go on with what no capture allows.
            graph_.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
            work();
            graph_.capture_end();
        } catch (...) {
            graph_.give_up();
            throw;
        }
    }

    void replay() override {
        const c10::DeviceGuard there(device_);
        graph_.replay();
    }

private:
    at::Device device_;
    Capture graph_;
};

} // namespace

std::unique_ptr<DeviceGraph> capture_cuda(at::Device device, const std::function<void()>& work) {
    return std::make_unique<CudaGraph>(device, work);
}

} // namespace ponderscope
