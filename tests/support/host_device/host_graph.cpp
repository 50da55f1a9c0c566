// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/host_device/host_graph.h"

#include "tests/support/host_cuda/host_cuda.h"

#include <ATen/ATen.h>

#include <cstring>
#include <limits>
#include <utility>

namespace ponderscope::testing {

namespace {

thread_local HostGraph* captured = nullptr;
thread_local GraphCounts counts;
thread_local std::size_t most_operations = std::numeric_limits<std::size_t>::max();

template <typename Function>
void each_tensor(const c10::IValue& value, const Function& function) {
    if (value.isTensor() && value.toTensor().defined()) {
        function(value.toTensor());
    } else if (value.isTensorList()) {
        for (const at::Tensor& tensor : value.toTensorVector()) {
            function(tensor);
        }
    }
}

std::vector<at::Tensor> tensors_of(const torch::jit::Stack& stack) {
    std::vector<at::Tensor> all;
    for (const c10::IValue& value : stack) {
        each_tensor(value, [&](const at::Tensor& tensor) { all.push_back(tensor); });
    }
    return all;
}

const void* memory_of(const at::Tensor& tensor) {
    return tensor.storage().data();
}

} // namespace

HostGraph* HostGraph::under_capture() {
    return captured;
}

void HostGraph::refuse(const std::string& what) {
    TORCH_CHECK(captured == nullptr, "operation not permitted when stream is capturing: ", what);
}

std::unique_ptr<DeviceGraph> HostGraph::capture(at::Device, const std::function<void()>& work) {
    refuse("a capture");
    auto graph = std::make_unique<HostGraph>();
    captured = graph.get();
    host_cuda::hear_launches([&](std::function<void()> launch) { graph->add(std::move(launch)); });
    const auto end = [] {
        captured = nullptr;
        host_cuda::hear_launches({});
    };
    try {
        work();
    } catch (...) {
        end();
        graph->undo();
        throw;
    }
    end();
    graph->undo();
    ++counts.captures;
    return graph;
}

void HostGraph::replay() {
    refuse("a replay");
    for (const auto& [storage, references] : borrowed_) {
        TORCH_CHECK(c10::raw::intrusive_ptr::use_count(storage) > references, "a replay uses ",
                    storage->nbytes(), " bytes from before its capture that nobody keeps");
    }
    for (const auto& work : work_) {
        work();
    }
    ++counts.replays;
}

void HostGraph::keep_as_it_is(const at::Tensor& here) {
    if (!here.defined() || born_.contains(memory_of(here)) || before_.contains(memory_of(here))) {
        return;
    }
    const auto* begin = static_cast<const char*>(memory_of(here));
    before_[memory_of(here)] = {here, {begin, begin + here.storage().nbytes()}};
}

void HostGraph::borrow(const c10::Storage& there, const void* here) {
    if (!born_.contains(here)) {
        ++borrowed_[there.unsafeGetStorageImpl()];
    }
}

void HostGraph::will_write(const c10::OperatorHandle& operation, const torch::jit::Stack& arguments) {
    const auto& schema = operation.schema().arguments();
    for (std::size_t i = 0; i < schema.size(); ++i) {
        if (schema[i].alias_info() != nullptr && schema[i].alias_info()->isWrite()) {
            each_tensor(arguments[i], [this](const at::Tensor& tensor) { keep_as_it_is(tensor); });
        }
    }
}

void HostGraph::add(std::function<void()> work) {
    TORCH_CHECK(work_.size() < most_operations, "operation failed due to a previous error during capture");
    work_.push_back(std::move(work));
}

void HostGraph::add(const std::function<void(torch::jit::Stack&)>& run, torch::jit::Stack arguments,
                    const torch::jit::Stack& results) {
    std::set<const void*> given;
    for (const at::Tensor& tensor : tensors_of(arguments)) {
        given.insert(memory_of(tensor));
    }
    const std::vector<at::Tensor> outputs = tensors_of(results);
    for (const at::Tensor& tensor : outputs) {
        if (!given.contains(memory_of(tensor))) {
            born_.insert(memory_of(tensor));
            made_.push_back(tensor);
        }
    }
    add([run, arguments = std::move(arguments), outputs] {
        torch::jit::Stack stack = arguments;
        run(stack);
        const std::vector<at::Tensor> again = tensors_of(stack);
        TORCH_CHECK(again.size() == outputs.size(), "a replayed operation has other results");
        for (std::size_t i = 0; i < outputs.size(); ++i) {
            if (memory_of(again[i]) != memory_of(outputs[i])) {
                TORCH_CHECK(again[i].sizes() == outputs[i].sizes(), "a replayed operation has other shapes");
                outputs[i].copy_(again[i]);
            }
        }
    });
}

void HostGraph::undo() {
    for (auto& [kept, before] : before_) {
        std::memcpy(before.tensor.storage().mutable_data(), before.bytes.data(), before.bytes.size());
    }
    before_.clear();
    for (const at::Tensor& tensor : made_) {
        if (tensor.storage().nbytes() > 0) {
            std::memset(tensor.storage().mutable_data(), 0xff, tensor.storage().nbytes());
        }
    }
}

GraphCounts take_graph_counts() {
    return std::exchange(counts, {});
}

void limit_captures(std::size_t operations) {
    most_operations = operations;
}

} // namespace ponderscope::testing
