// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/record/batches.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <vector>

namespace ponderscope {
namespace {

/// A device that holds so many tasks at once. Batches give their memory back when they are collected or
/// dropped.
class Device {
public:
    explicit Device(std::size_t room) : room_(room) {}

    struct Batch {
        Batch(Device& device, std::size_t size) : device_(device), size_(size) { device_.used_ += size_; }
        ~Batch() { device_.used_ -= size_; }
        Batch(const Batch&) = delete;
        Batch& operator=(const Batch&) = delete;

    private:
        Device& device_;
        std::size_t size_;
    };
    std::unique_ptr<Batch> submit(std::size_t size) {
        ++tries;
        if (used_ + size > room_) {
            throw MemoryExhausted("full");
        }
        return std::make_unique<Batch>(*this, size);
    }
    [[nodiscard]] bool empty() const { return used_ == 0; }
    int tries = 0;

private:
    std::size_t room_;
    std::size_t used_ = 0;
};

/// Which tasks were collected, in the order in which they were; sizes[i]: what task i takes.
std::vector<std::size_t> collected(Device& device, const std::vector<std::size_t>& sizes, std::size_t batch,
                                   int failing_collects = 0) {
    std::vector<std::size_t> done;
    run_in_batches(
        sizes.size(), batch, {},
        [&](std::size_t begin, std::size_t end) {
            std::size_t size = 0;
            for (std::size_t i = begin; i < end; ++i) {
                size += sizes[i];
            }
            return device.submit(size);
        },
        [&](std::unique_ptr<Device::Batch> pending, std::size_t begin, std::size_t end) {
            pending.reset();
            if (failing_collects-- > 0) {
                throw MemoryExhausted("full");
            }
            for (std::size_t i = begin; i < end; ++i) {
                done.push_back(i);
            }
        });
    return done;
}

std::vector<std::size_t> first(std::size_t count) {
    std::vector<std::size_t> numbers(count);
    for (std::size_t i = 0; i < count; ++i) {
        numbers[i] = i;
    }
    return numbers;
}

TEST(Batches, RunInOrderWithRoomToSpare) {
    Device device(1000);
    EXPECT_EQ(collected(device, std::vector<std::size_t>(19, 1), 8), first(19));
    EXPECT_EQ(device.tries, 3);
}

TEST(Batches, ShrinkUntilTheyFitAndStaySmall) {
    for (std::size_t room = 1; room < 20; ++room) {
        Device device(room);
        EXPECT_EQ(collected(device, std::vector<std::size_t>(40, 1), 8), first(40)) << room;
        EXPECT_TRUE(device.empty());
        EXPECT_LE(device.tries, 40 + 5) << "the lesson must be remembered";
    }
}

TEST(Batches, ASingleTaskThatNeedsTheWholeDeviceRunsAlone) {
    Device device(10);
    EXPECT_EQ(collected(device, {1, 1, 10, 1, 10, 10, 2}, 4), first(7));
}

TEST(Batches, WhatFailsWhileItIsCollectedRunsAgain) {
    for (int failing = 1; failing < 4; ++failing) {
        Device device(100);
        EXPECT_EQ(collected(device, std::vector<std::size_t>(20, 1), 4, failing), first(20)) << failing;
    }
}

TEST(Batches, ATaskThatNeverFitsComesOutAfterTheOthersBeforeItWereKept) {
    Device device(10);
    std::vector<std::size_t> done;
    EXPECT_THROW(run_in_batches(
                     6, 4, {},
                     [&](std::size_t begin, std::size_t end) {
                         return device.submit(begin <= 3 && end > 3 ? 11 : end - begin);
                     },
                     [&](std::unique_ptr<Device::Batch>, std::size_t begin, std::size_t end) {
                         for (std::size_t i = begin; i < end; ++i) {
                             done.push_back(i);
                         }
                     }),
                 MemoryExhausted);
    EXPECT_EQ(done, first(3));
    EXPECT_TRUE(device.empty());
}

TEST(Batches, AStopKeepsWhatIsUnderWay) {
    Device device(100);
    std::stop_source source;
    std::vector<std::size_t> done;
    run_in_batches(
        20, 2, source.get_token(),
        [&](std::size_t begin, std::size_t end) {
            if (begin == 6) {
                source.request_stop();
            }
            return device.submit(end - begin);
        },
        [&](std::unique_ptr<Device::Batch>, std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i) {
                done.push_back(i);
            }
        });
    EXPECT_EQ(done, first(8));
}

} // namespace
} // namespace ponderscope
