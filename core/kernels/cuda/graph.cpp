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

/// A stream for captures, because the default stream cannot be captured. Each thread uses one stream per
/// device: LibTorch never frees the memory for matrix products that it allocates for a stream.
c10::cuda::CUDAStream capturing_stream(at::Device device) {
    thread_local std::map<c10::DeviceIndex, c10::cuda::CUDAStream> streams;
    return streams.try_emplace(device.index(), c10::cuda::getStreamFromPool(false, device.index()))
        .first->second;
}

/// LibTorch's graph, with a way to end a failed capture.
class Capture : public at::cuda::CUDAGraph {
public:
    /// Ends a failed capture. If the device cancelled the capture, LibTorch leaves its allocator in capture
    /// mode. The allocator would then not reuse memory that another stream has read, and not free cached
    /// memory when the device is full.
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
    /// Ignores further errors: the caller rethrows the first one.
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
        // The graph owns all memory that is allocated on this stream.
        const c10::cuda::CUDAStreamGuard apart(capturing_stream(device));
        try {
            // Thread-local mode: other threads may call functions that are forbidden during a capture.
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
