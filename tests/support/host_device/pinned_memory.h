// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <c10/core/CPUAllocator.h>

#include <map>
#include <mutex>

namespace ponderscope::testing {

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

} // namespace ponderscope::testing
