// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernels/cuda_library.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace ponderscope::testing {

/// The form that a CUDA graph has on the tests' own device (host_device.h). Shapes must be known while it is
/// captured, so work is done then; but afterwards everything that it wrote by operations is as before, and
/// what it made is spoilt: as on a GPU, only a replay has results. Kernels over the host form of CUDA are
/// taken down, too; what they wrote into memory that was there before stays. A replay fails where nobody else
/// keeps memory from before the capture that an operation uses: a GPU would have given it to others.
class HostGraph final : public DeviceGraph {
public:
    /// CudaKernels::capture.
    static std::unique_ptr<DeviceGraph> capture(at::Device device, const std::function<void()>& work);
    /// Of this thread; null: nothing is captured.
    static HostGraph* under_capture();
    /// c10::Error where something is captured: it would make the host wait, or read the host's memory later.
    static void refuse(const std::string& what);

    void replay() override;

    /// Before an operation: tensors on the CPU's form of the device's memory that it writes to.
    void will_write(const c10::OperatorHandle& operation, const torch::jit::Stack& arguments);
    /// After it: \p run does it again on such a stack.
    void add(const std::function<void(torch::jit::Stack&)>& run, torch::jit::Stack arguments,
             const torch::jit::Stack& results);
    void add(std::function<void()> work);
    void keep_as_it_is(const at::Tensor& here);
    /// An argument that the capture gave its memory, by its size.
    void take(const void* here) { born_.insert(here); }
    /// What was added last keeps this memory of the device, \p here its CPU's form, by one reference.
    void borrow(const c10::Storage& there, const void* here);

private:
    void undo();

    std::vector<std::function<void()>> work_;
    std::vector<at::Tensor> made_;                      ///< by operations
    std::set<const void*> born_;                        ///< where their memory begins
    std::map<c10::StorageImpl*, std::size_t> borrowed_; ///< references to memory from before
    struct Before {
        at::Tensor tensor;
        std::vector<char> bytes;
    };
    std::map<const void*, Before> before_; ///< of storages that were written to
};

/// Captures and replays since the last call.
struct GraphCounts {
    std::int64_t captures = 0, replays = 0;
};
GraphCounts take_graph_counts();
/// Captures of more operations than that fail from now on, of this thread.
void limit_captures(std::size_t operations);

} // namespace ponderscope::testing
