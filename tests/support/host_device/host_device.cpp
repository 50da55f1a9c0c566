// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/host_device/host_device.h"

#include "core/kernels/cuda_library.h"
#include "tests/support/host_cuda/host_cuda.h"
#include "tests/support/host_device/host_graph.h"
#include "tests/support/host_device/host_rounding.h"
#include "tests/support/host_device/pinned_memory.h"
#include "tests/support/test_data.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/autocast_mode.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ponderscope::testing {

namespace {

constexpr at::DeviceType device_type = at::DeviceType::PrivateUse1;
constexpr at::DeviceIndex device_count = 2;
thread_local at::Device current(device_type, 0);

std::mutex mutex;
std::map<std::string, std::int64_t> waits;
HostWork work_done;

void count_wait(const std::string& what) {
    HostGraph::refuse(what);
    const std::scoped_lock lock(mutex);
    ++waits[what];
}

// Addresses. User space ends at 2^47 and the loader fills its upper half; the lower one has no memory there.
std::uintptr_t hidden = std::uintptr_t{1} << 46;

void* to_device(void* host) {
    return host == nullptr ? nullptr
                           : reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(host) ^ hidden);
}

void* to_host(const void* there) {
    return to_device(const_cast<void*>(there));
}

/// What tensors of each device hold, and how much it has.
struct Account {
    std::int64_t used = 0, peak = 0, capacity = std::int64_t{1} << 40, until_others = -1, of_others = 0;
};
std::array<Account, device_count> accounts;

/// Memory of the CPU that is a device's as long as this lives. c10::OutOfMemoryError, as a GPU's allocator
/// throws it.
struct Kept {
    Kept(at::Device where, std::size_t size, c10::DataPtr of_memory, c10::Storage of_storage = {})
        : index(static_cast<std::size_t>(where.index())),
          bytes(static_cast<std::int64_t>(size)),
          data(std::move(of_memory)),
          storage(std::move(of_storage)) {
        const std::scoped_lock lock(mutex);
        Account& account = accounts[index];
        if (account.until_others >= 0 && account.until_others-- == 0) {
            account.capacity = account.of_others;
        }
        TORCH_CHECK_WITH(OutOfMemoryError, bytes <= account.capacity - account.used, where, " has ",
                         account.capacity - account.used, " of ", account.capacity, " bytes free, not ",
                         bytes);
        account.used += bytes;
        account.peak = std::max(account.peak, account.used);
    }
    ~Kept() {
        const std::scoped_lock lock(mutex);
        accounts[index].used -= bytes;
    }
    Kept(const Kept&) = delete;
    Kept& operator=(const Kept&) = delete;

    std::size_t index;
    std::int64_t bytes;
    c10::DataPtr data;
    c10::Storage storage;
};

c10::DataPtr on_device(void* host, std::unique_ptr<Kept> kept, at::Device device) {
    return {to_device(host), kept.release(), [](void* context) { delete static_cast<Kept*>(context); },
            device};
}

/// What an operation made on the CPU, as a device's.
c10::DataPtr on_device(const c10::Storage& storage, at::Device device) {
    return on_device(storage.mutable_data(),
                     std::make_unique<Kept>(device, storage.nbytes(), c10::DataPtr(), storage), device);
}

class Memory final : public c10::DeviceAllocator {
public:
    c10::DataPtr allocate(std::size_t bytes) override {
        c10::DataPtr data = c10::GetCPUAllocator()->allocate(bytes);
        void* const host = data.get();
        return on_device(host, std::make_unique<Kept>(current, bytes, std::move(data)), current);
    }
    void copy_data(void* to, const void* from, std::size_t bytes) const override {
        default_copy_data(to_host(to), to_host(from), bytes);
    }
    bool initialized() override { return true; }
    void emptyCache(c10::MempoolId_t) override {}
    void recordStream(const c10::DataPtr&, c10::Stream) override {}
    c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
        const std::scoped_lock lock(mutex);
        const Account& account = accounts.at(static_cast<std::size_t>(device));
        c10::CachingDeviceAllocator::DeviceStats stats;
        auto& all =
            stats.allocated_bytes[static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
        all.current = account.used;
        all.peak = account.peak;
        return stats;
    }
    void resetAccumulatedStats(c10::DeviceIndex) override {}
    void resetPeakStats(c10::DeviceIndex device) override {
        const std::scoped_lock lock(mutex);
        Account& account = accounts.at(static_cast<std::size_t>(device));
        account.peak = account.used;
    }
    std::pair<std::size_t, std::size_t> getMemoryInfo(c10::DeviceIndex device) override {
        const std::scoped_lock lock(mutex);
        const Account& account = accounts.at(static_cast<std::size_t>(device));
        return {static_cast<std::size_t>(std::max<std::int64_t>(0, account.capacity - account.used)),
                static_cast<std::size_t>(account.capacity)};
    }
};
Memory memory;
REGISTER_ALLOCATOR(device_type, &memory)

struct Hooks final : at::PrivateUse1HooksInterface {
    bool isBuilt() const override { return true; }
    bool isAvailable() const override { return true; }
    bool hasPrimaryContext(at::DeviceIndex) const override { return true; }
    at::DeviceIndex deviceCount() const override { return device_count; }
    bool isPinnedPtr(const void* data) const override { return PinnedMemory::instance().holds(data); }
    at::Allocator* getPinnedMemoryAllocator() const override { return &PinnedMemory::instance(); }
    at::Device getDeviceFromPtr(void*) const override { return current; }
    const at::Generator& getDefaultGenerator(at::DeviceIndex) const override {
        return at::detail::getDefaultCPUGenerator();
    }
};

/// A device has one stream and one that copies; work is done when it has been asked for.
struct Guard final : c10::impl::DeviceGuardImplInterface {
    at::DeviceType type() const override { return device_type; }
    at::Device exchangeDevice(at::Device device) const override { return std::exchange(current, device); }
    at::Device getDevice() const override { return current; }
    void setDevice(at::Device device) const override { current = device; }
    void uncheckedSetDevice(at::Device device) const noexcept override { current = device; }
    c10::Stream getStream(at::Device device) const override {
        return c10::Stream(c10::Stream::DEFAULT, device);
    }
    c10::Stream getDefaultStream(at::Device device) const override { return getStream(device); }
    c10::Stream getStreamFromGlobalPool(at::Device device, bool) const override {
        return c10::Stream(c10::Stream::UNSAFE, device, 1);
    }
    c10::Stream getNewStream(at::Device device, int) const override {
        return c10::Stream(c10::Stream::UNSAFE, device, 1);
    }
    c10::Stream exchangeStream(c10::Stream stream) const override { return getStream(stream.device()); }
    at::DeviceIndex deviceCount() const noexcept override { return device_count; }
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
    /// Where results lie.
    void use(at::Device device) { device_ = device; }

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
        return over(c10::Storage(c10::make_intrusive<c10::StorageImpl>(
                        c10::StorageImpl::use_byte_size_t(), storage.nbytes(), on_device(storage, device_),
                        &memory, true)),
                    c10::DispatchKey::PrivateUse1, here);
    }

    /// Bytes of the arguments; nothing where all results are views of them.
    std::optional<std::int64_t> bytes_for(const torch::jit::Stack& results, bool written) const {
        std::int64_t bytes = 0;
        bool made = written;
        const auto size = [](const at::Tensor& of) {
            return std::min<std::int64_t>(static_cast<std::int64_t>(of.nbytes()),
                                          static_cast<std::int64_t>(of.storage().nbytes()));
        };
        for (const Pair& pair : pairs_) {
            bytes += size(pair.here);
        }
        for (const c10::IValue& value : results) {
            for (const at::Tensor& result : value.isTensor()       ? std::vector<at::Tensor>{value.toTensor()}
                                            : value.isTensorList() ? value.toTensorVector()
                                                                   : std::vector<at::Tensor>{}) {
                made = made ||
                       (result.defined() && std::none_of(pairs_.begin(), pairs_.end(), [&](const Pair& pair) {
                            return pair.here.storage().is_alias_of(result.storage());
                        }));
                bytes += result.defined() ? size(result) : 0;
            }
        }
        return made ? std::optional(bytes) : std::nullopt;
    }

    /// Memory that a capture uses.
    void lend_to(HostGraph& graph) const {
        for (const auto& [there, here] : storages_) {
            const auto pair = std::find_if(pairs_.begin(), pairs_.end(), [&](const Pair& one) {
                return one.there.storage().unsafeGetStorageImpl() == there;
            });
            here.data() == pair->data ? graph.borrow(pair->there.storage(), here.data())
                                      : graph.take(here.data());
        }
    }

    /// Arguments that the operation resized.
    void take_back_shapes() {
        for (Pair& pair : pairs_) {
            if (pair.here.storage().data_ptr().get() != pair.data) {
                c10::StorageImpl* there = pair.there.storage().unsafeGetStorageImpl();
                there->set_data_ptr_noswap(on_device(pair.here.storage(), device_));
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
    at::Device device_ = current;
    std::vector<Pair> pairs_;
    std::unordered_map<const c10::StorageImpl*, c10::Storage> storages_;
};

/// Operations whose result's size, or whose very result, the host must know.
bool waits_for_values(const std::string& name) {
    static const std::set<std::string> names{
        "nonzero", "masked_select",       "_unique2",   "unique_dim", "unique_consecutive",
        "equal",   "_local_scalar_dense", "is_nonzero", "bincount",   "repeat_interleave"};
    return name.starts_with("aten::") && names.contains(name.substr(6));
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
        TORCH_CHECK(!mixed_ || !there_, handle_.schema().name(),
                    ": expected all tensors to be on the same device, but found ", there_.value_or(current),
                    " and ", other_);
        exchange_.use(there_ ? *there_ : named_.value_or(current));
        const bool sized = handle_.schema().name() == "aten::repeat_interleave" && !stack_.back().isNone();
        if ((waits_for_values(handle_.schema().name()) && !sized) || mask_) {
            count_wait(handle_.schema().name().substr(6));
        }
        for (std::size_t i = begin; i < stack_.size(); ++i) {
            stack_[i] = to_cpu(stack_[i]);
        }
        const bool rounds = at::globalContext().allowTF32CuBLAS();
        const bool product = is_product(handle_);
        const auto again = [handle = handle_, rounds, product](torch::jit::Stack& stack) {
            if (rounds) {
                round_factors(handle, stack);
            }
            handle.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);
            if (product) {
                round_by_shape(stack.back().toTensor());
            }
        };
        if (HostGraph* graph = HostGraph::under_capture()) {
            torch::jit::Stack before = stack_;
            graph->will_write(handle_, before);
            again(stack_);
            graph->add(again, std::move(before), stack_);
            exchange_.lend_to(*graph);
        } else {
            again(stack_);
        }
        const auto bytes = exchange_.bytes_for(stack_, handle_.schema().is_mutable());
        if (bytes && !handle_.schema().name().starts_with("aten::empty")) {
            add_host_work({1, *bytes});
        }
        exchange_.take_back_shapes();
        for (c10::IValue& result : stack_) {
            result = from_cpu(result);
        }
    }

private:
    void note(const c10::IValue& value) {
        if (value.isDevice()) {
            named_ = at::Device(device_type, std::max<at::DeviceIndex>(value.toDevice().index(), 0));
        } else if (value.isTensor()) {
            note(value.toTensor());
        } else if (value.isTensorList()) {
            for (const at::Tensor& tensor : value.toTensorVector()) {
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
        if (is_there(tensor)) {
            if (there_ && *there_ != tensor.device()) {
                mixed_ = true;
                other_ = tensor.device();
            }
            there_ = tensor.device();
        } else if (tensor.defined() && tensor.is_cpu() && tensor.dim() > 0) {
            mixed_ = true;
            other_ = at::kCPU;
        }
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
            for (const at::Tensor& tensor : value.toTensorVector()) {
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
    std::optional<at::Device> there_; ///< of the arguments; the last of them that lies there
    std::optional<at::Device> named_; ///< an argument that says where
    at::Device other_ = at::kCPU;
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
        HostGraph::refuse("copy to host");
        if (!non_blocking || !target.is_pinned()) {
            count_wait("copy to host");
        }
    } else if (is_there(target) && source.is_cpu()) {
        HostGraph::refuse("copy to device");
        if (!non_blocking) {
            count_wait("copy to device");
        }
    }
    if (is_there(source) && is_there(target)) {
        add_host_work({1, static_cast<std::int64_t>(source.nbytes() + target.nbytes())});
    }
    Exchange exchange;
    const at::Tensor from = is_there(source) ? exchange.to_cpu(source) : source;
    const at::Tensor to = is_there(target) ? exchange.to_cpu(target) : target;
    if (HostGraph* graph = HostGraph::under_capture()) {
        graph->keep_as_it_is(to);
        graph->add([from, to] { to.copy_(from); });
        exchange.lend_to(*graph);
    }
    to.copy_(from);
    return target;
}

void record_stream(at::Tensor&, c10::Stream) {}

/// Products of halves with sums in fp32, which the CPU's library lacks.
at::Tensor wide_product(const at::Tensor& a, const at::Tensor& b, at::ScalarType type) {
    return at::mm(a.to(type), b.to(type));
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
    library.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_host>());
}

/// As CUDA's autocast, of the operations that the head's training is made of.
TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, library) {
    library.fallback(torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
    KERNEL_PRIVATEUSEONE(linear, lower_precision_fp);
    KERNEL_PRIVATEUSEONE(mm, lower_precision_fp);
    KERNEL_PRIVATEUSEONE(softmax, int, fp32);
    KERNEL_PRIVATEUSEONE(log_softmax, int, fp32);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
    library.impl("_copy_from", copy_from);
    library.impl("record_stream", record_stream);
    library.impl("mm.dtype", wide_product);
}

[[maybe_unused]] const bool registered = [] {
    // Where tests run on a GPU, that GPU must be LibTorch's accelerator, because pinned memory is the
    // accelerator's. LibTorch looks for its CUDA half once, and at::manual_seed() in a test would be the
    // first to ask.
    if (test_device().starts_with("cuda")) {
        try {
            load_cuda();
        } catch (const std::exception& error) { // each test that asks for the device says so again
            std::fprintf(stderr, "%s\n", error.what());
        }
        return false;
    }
    c10::register_privateuse1_backend("hostgpu");
    at::RegisterPrivateUse1HooksInterface(new Hooks);
    return true;
}();

} // namespace

void show_host_memory() {
    hidden = 0;
}

void set_host_memory(std::int64_t bytes, int device) {
    const std::scoped_lock lock(mutex);
    Account& account = accounts.at(static_cast<std::size_t>(device));
    account.capacity = bytes;
    account.until_others = -1;
}

void fill_host_memory_after(std::int64_t allocations, std::int64_t bytes, int device) {
    const std::scoped_lock lock(mutex);
    Account& account = accounts.at(static_cast<std::size_t>(device));
    account.until_others = allocations;
    account.of_others = bytes;
}

HostWork take_host_work() {
    const std::scoped_lock lock(mutex);
    work_done.kernels += host_cuda::take_launches();
    return std::exchange(work_done, {});
}

void add_host_work(HostWork work) {
    const std::scoped_lock lock(mutex);
    work_done.kernels += work.kernels;
    work_done.bytes += work.bytes;
}

std::map<std::string, std::int64_t> take_host_waits() {
    const std::scoped_lock lock(mutex);
    return std::exchange(waits, {});
}

} // namespace ponderscope::testing
