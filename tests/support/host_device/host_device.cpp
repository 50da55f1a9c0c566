// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/host_device/host_device.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <array>
#include <mutex>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ponderscope::testing {

namespace {

constexpr at::DeviceType device_type = at::DeviceType::PrivateUse1;
const at::Device device(device_type, 0);

std::mutex mutex;
std::map<std::string, std::int64_t> waits;

void count_wait(const std::string& what) {
    const std::scoped_lock lock(mutex);
    ++waits[what];
}

// Addresses. User space ends at 2^47 and the loader fills its upper half; the lower one has no memory there.
constexpr std::uintptr_t hidden = std::uintptr_t{1} << 46;

void* to_device(void* host) {
    return host == nullptr ? nullptr
                           : reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(host) ^ hidden);
}

void* to_host(const void* there) {
    return to_device(const_cast<void*>(there));
}

/// Memory of the CPU as memory of the device; the storage is kept as long as that lives.
c10::DataPtr on_device(c10::DataPtr host) {
    void* there = to_device(host.get());
    auto* kept = new c10::DataPtr(std::move(host));
    return {there, kept, [](void* context) { delete static_cast<c10::DataPtr*>(context); }, device};
}

class Memory final : public c10::Allocator {
public:
    c10::DataPtr allocate(std::size_t bytes) override {
        return on_device(c10::GetCPUAllocator()->allocate(bytes));
    }
    void copy_data(void* to, const void* from, std::size_t bytes) const override {
        default_copy_data(to_host(to), to_host(from), bytes);
    }
};
Memory memory;
REGISTER_ALLOCATOR(device_type, &memory)

/// Memory of the host that a GPU could read while the host goes on: the CPU's, remembered.
class PinnedMemory final : public c10::Allocator {
public:
    c10::DataPtr allocate(std::size_t bytes) override {
        c10::DataPtr data = c10::GetCPUAllocator()->allocate(bytes);
        void* begin = data.get();
        {
            const std::scoped_lock lock(mutex_);
            blocks_[begin] = bytes;
        }
        auto* kept = new c10::DataPtr(std::move(data));
        return {begin, kept,
                [](void* context) {
                    auto* block = static_cast<c10::DataPtr*>(context);
                    PinnedMemory::instance().forget(block->get());
                    delete block;
                },
                at::kCPU};
    }
    void copy_data(void* to, const void* from, std::size_t bytes) const override {
        default_copy_data(to, from, bytes);
    }

    bool holds(const void* address) const {
        const std::scoped_lock lock(mutex_);
        auto after = blocks_.upper_bound(const_cast<void*>(address));
        if (after == blocks_.begin()) {
            return false;
        }
        --after;
        return static_cast<const char*>(address) < static_cast<const char*>(after->first) + after->second;
    }

    static PinnedMemory& instance() {
        static PinnedMemory memory_of_host;
        return memory_of_host;
    }

private:
    void forget(void* begin) {
        const std::scoped_lock lock(mutex_);
        blocks_.erase(begin);
    }
    mutable std::mutex mutex_;
    std::map<void*, std::size_t> blocks_;
};

struct Hooks final : at::PrivateUse1HooksInterface {
    bool isBuilt() const override { return true; }
    bool isAvailable() const override { return true; }
    bool hasPrimaryContext(at::DeviceIndex) const override { return true; }
    at::DeviceIndex deviceCount() const override { return 1; }
    bool isPinnedPtr(const void* data) const override { return PinnedMemory::instance().holds(data); }
    at::Allocator* getPinnedMemoryAllocator() const override { return &PinnedMemory::instance(); }
    at::Device getDeviceFromPtr(void*) const override { return device; }
    const at::Generator& getDefaultGenerator(at::DeviceIndex) const override {
        return at::detail::getDefaultCPUGenerator();
    }
};

/// One stream and one that copies; work is done when it has been asked for.
struct Guard final : c10::impl::DeviceGuardImplInterface {
    at::DeviceType type() const override { return device_type; }
    at::Device exchangeDevice(at::Device) const override { return device; }
    at::Device getDevice() const override { return device; }
    void setDevice(at::Device) const override {}
    void uncheckedSetDevice(at::Device) const noexcept override {}
    c10::Stream getStream(at::Device) const override { return c10::Stream(c10::Stream::DEFAULT, device); }
    c10::Stream getDefaultStream(at::Device) const override {
        return c10::Stream(c10::Stream::DEFAULT, device);
    }
    c10::Stream getStreamFromGlobalPool(at::Device, bool) const override {
        return c10::Stream(c10::Stream::UNSAFE, device, 1);
    }
    c10::Stream getNewStream(at::Device, int) const override {
        return c10::Stream(c10::Stream::UNSAFE, device, 1);
    }
    c10::Stream exchangeStream(c10::Stream) const override {
        return c10::Stream(c10::Stream::DEFAULT, device);
    }
    at::DeviceIndex deviceCount() const noexcept override { return 1; }
    void record(void** event, const c10::Stream&, at::DeviceIndex, c10::EventFlag) const override {
        *event = const_cast<Guard*>(this);
    }
    void block(void*, const c10::Stream&) const override {}
    bool queryEvent(void*) const override { return true; }
    void destroyEvent(void*, at::DeviceIndex) const noexcept override {}
    bool queryStream(const c10::Stream&) const override { return true; }
    void synchronizeStream(const c10::Stream&) const override { count_wait("stream"); }
    void synchronizeEvent(void*) const override { count_wait("event"); }
    void synchronizeDevice(at::DeviceIndex) const override { count_wait("device"); }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

bool is_there(const at::Tensor& tensor) {
    return tensor.defined() && tensor.device().type() == device_type;
}

/// A tensor over storage, of these sizes.
at::Tensor over(c10::Storage storage, c10::DispatchKey key, const at::Tensor& like) {
    at::Tensor tensor =
        at::detail::make_tensor<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(key), like.dtype());
    tensor.unsafeGetTensorImpl()->set_storage_offset(like.storage_offset());
    tensor.unsafeGetTensorImpl()->set_sizes_and_strides(like.sizes(), like.strides());
    return tensor;
}

/// The arguments of one operation as the CPU's, and its results as the device's.
class Exchange {
public:
    at::Tensor to_cpu(const at::Tensor& there) {
        for (const Pair& pair : pairs_) {
            if (pair.there.is_same(there)) {
                return pair.here;
            }
        }
        const c10::StorageImpl* storage = there.storage().unsafeGetStorageImpl();
        auto found = storages_.find(storage);
        if (found == storages_.end()) {
            auto* kept = new c10::Storage(there.storage());
            c10::DataPtr data(
                to_host(storage->data()), kept,
                [](void* context) { delete static_cast<c10::Storage*>(context); }, at::kCPU);
            found = storages_
                        .emplace(storage, c10::Storage(c10::make_intrusive<c10::StorageImpl>(
                                              c10::StorageImpl::use_byte_size_t(), storage->nbytes(),
                                              std::move(data), c10::GetCPUAllocator(), true)))
                        .first;
        }
        at::Tensor here = over(found->second, c10::DispatchKey::CPU, there);
        pairs_.push_back({there, here, found->second.data_ptr().get()});
        return here;
    }

    at::Tensor from_cpu(const at::Tensor& here) {
        if (!here.defined()) {
            return here;
        }
        for (const Pair& pair : pairs_) {
            if (pair.here.is_same(here)) {
                return pair.there;
            }
        }
        for (const Pair& pair : pairs_) {
            if (pair.here.storage().unsafeGetStorageImpl() == here.storage().unsafeGetStorageImpl()) {
                return over(pair.there.storage(), c10::DispatchKey::PrivateUse1, here); // a view
            }
        }
        const c10::Storage& storage = here.storage();
        auto* kept = new c10::Storage(storage);
        c10::DataPtr data(
            to_device(storage.mutable_data()), kept,
            [](void* context) { delete static_cast<c10::Storage*>(context); }, device);
        return over(c10::Storage(c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(),
                                                                       storage.nbytes(), std::move(data),
                                                                       &memory, true)),
                    c10::DispatchKey::PrivateUse1, here);
    }

    /// Arguments that the operation resized.
    void take_back_shapes() {
        for (Pair& pair : pairs_) {
            if (pair.here.storage().data_ptr().get() != pair.data) {
                c10::StorageImpl* there = pair.there.storage().unsafeGetStorageImpl();
                auto* kept = new c10::Storage(pair.here.storage());
                there->set_data_ptr_noswap({to_device(pair.here.storage().mutable_data()), kept,
                                            [](void* context) { delete static_cast<c10::Storage*>(context); },
                                            device});
                there->set_nbytes(pair.here.storage().nbytes());
            }
            if (pair.here.sizes() != pair.there.sizes() || pair.here.strides() != pair.there.strides()) {
                pair.there.unsafeGetTensorImpl()->set_sizes_and_strides(pair.here.sizes(),
                                                                        pair.here.strides());
            }
        }
    }

private:
    struct Pair {
        at::Tensor there, here;
        const void* data;
    };
    std::vector<Pair> pairs_;
    std::unordered_map<const c10::StorageImpl*, c10::Storage> storages_;
};

/// Operations whose result's size, or whose very result, the host must know.
bool waits_for_values(const std::string& name) {
    static const std::set<std::string, std::less<>> names{"aten::nonzero",
                                                          "aten::masked_select",
                                                          "aten::_unique2",
                                                          "aten::unique_dim",
                                                          "aten::unique_consecutive",
                                                          "aten::equal",
                                                          "aten::_local_scalar_dense",
                                                          "aten::is_nonzero",
                                                          "aten::bincount",
                                                          "aten::repeat_interleave"};
    return names.contains(name);
}

class Operation {
public:
    Operation(const c10::OperatorHandle& handle, torch::jit::Stack& stack) : handle_(handle), stack_(stack) {}

    void run() {
        const auto& arguments = handle_.schema().arguments();
        const std::size_t begin = stack_.size() - arguments.size();
        for (std::size_t i = begin; i < stack_.size(); ++i) {
            note(stack_[i]);
        }
        TORCH_CHECK(!mixed_ || !any_there_, handle_.schema().name(),
                    ": expected all tensors to be on the same device, but found ", device, " and cpu");
        const bool sized = handle_.schema().name() == "aten::repeat_interleave" && !stack_.back().isNone();
        if ((waits_for_values(handle_.schema().name()) && !sized) || mask_) {
            count_wait(handle_.schema().name().substr(6));
        }
        for (std::size_t i = begin; i < stack_.size(); ++i) {
            stack_[i] = to_cpu(stack_[i]);
        }
        handle_.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack_);
        exchange_.take_back_shapes();
        for (c10::IValue& result : stack_) {
            result = from_cpu(result);
        }
    }

private:
    void note(const c10::IValue& value) {
        if (value.isTensor()) {
            note(value.toTensor());
        } else if (value.isTensorList()) {
            for (const at::Tensor& tensor : value.toTensorList()) {
                note(tensor);
            }
        } else if (value.isOptionalTensorList()) {
            for (const std::optional<at::Tensor> tensor : value.toOptionalTensorList()) {
                if (tensor) {
                    note(*tensor);
                    mask_ = mask_ || (tensor->defined() && (tensor->scalar_type() == at::kBool ||
                                                            tensor->scalar_type() == at::kByte));
                }
            }
        }
    }
    void note(const at::Tensor& tensor) {
        any_there_ = any_there_ || is_there(tensor);
        mixed_ = mixed_ || (tensor.defined() && tensor.is_cpu() && tensor.dim() > 0);
    }

    c10::IValue to_cpu(const c10::IValue& value) {
        if (value.isDevice()) {
            return at::Device(at::kCPU);
        }
        return changed(value, [this](const at::Tensor& tensor) {
            return is_there(tensor) ? exchange_.to_cpu(tensor) : tensor;
        });
    }
    c10::IValue from_cpu(const c10::IValue& value) {
        return changed(value, [this](const at::Tensor& tensor) { return exchange_.from_cpu(tensor); });
    }

    template <typename Change>
    static c10::IValue changed(const c10::IValue& value, const Change& change) {
        if (value.isTensor()) {
            return change(value.toTensor());
        }
        if (value.isTensorList()) {
            c10::List<at::Tensor> all;
            for (const at::Tensor& tensor : value.toTensorList()) {
                all.push_back(change(tensor));
            }
            return all;
        }
        if (value.isOptionalTensorList()) {
            c10::List<std::optional<at::Tensor>> all;
            for (const std::optional<at::Tensor> tensor : value.toOptionalTensorList()) {
                all.push_back(tensor ? std::optional<at::Tensor>(change(*tensor)) : tensor);
            }
            return all;
        }
        return value;
    }

    const c10::OperatorHandle& handle_;
    torch::jit::Stack& stack_;
    Exchange exchange_;
    bool any_there_ = false;
    bool mixed_ = false;
    bool mask_ = false;
};

void run_on_host(const c10::OperatorHandle& handle, torch::jit::Stack* stack) {
    // The stack may hold what belongs to callers.
    const std::size_t count = handle.schema().arguments().size();
    torch::jit::Stack own(std::make_move_iterator(stack->end() - static_cast<std::ptrdiff_t>(count)),
                          std::make_move_iterator(stack->end()));
    stack->erase(stack->end() - static_cast<std::ptrdiff_t>(count), stack->end());
    Operation(handle, own).run();
    stack->insert(stack->end(), std::make_move_iterator(own.begin()), std::make_move_iterator(own.end()));
}

at::Tensor copy_from(const at::Tensor& source, const at::Tensor& target, bool non_blocking) {
    if (is_there(source) && target.is_cpu()) {
        if (!non_blocking || !target.is_pinned()) {
            count_wait("copy to host");
        }
    } else if (is_there(target) && source.is_cpu() && !non_blocking) {
        count_wait("copy to device");
    }
    Exchange exchange;
    const at::Tensor from = is_there(source) ? exchange.to_cpu(source) : source;
    at::Tensor to = is_there(target) ? exchange.to_cpu(target) : target;
    to.copy_(from);
    return target;
}

void record_stream(at::Tensor&, c10::Stream) {}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
    library.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_host>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
    library.impl("_copy_from", copy_from);
    library.impl("record_stream", record_stream);
}

[[maybe_unused]] const bool registered = [] {
    c10::register_privateuse1_backend("hostgpu");
    at::RegisterPrivateUse1HooksInterface(new Hooks);
    return true;
}();

} // namespace

std::map<std::string, std::int64_t> take_host_waits() {
    const std::scoped_lock lock(mutex);
    return std::exchange(waits, {});
}

} // namespace ponderscope::testing
