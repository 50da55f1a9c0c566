// SPDX-License-Identifier: GPL-3.0-or-later
// What becomes of LibTorch's memory of GPUs, and of the choice between them, on a machine that only says that
// it has some (tests/support/host_cuda/feigned_gpu.cpp).
#include "core/kernels/cuda_library.h"
#include "core/model/device.h"
#include "core/model/local_gpu.h"
#include "core/model/parameters.h"

#include <ATen/ATen.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

namespace ponderscope {
namespace {

/// GPUs with full, 2, 30 and 40 GiB free.
class FeignedGpus : public ::testing::Test {
protected:
    void SetUp() override {
        if (std::getenv("FEIGNED_GPU") == nullptr) {
            GTEST_SKIP() << "ctest runs this with feigned GPUs";
        }
        load_cuda();
    }
};

std::vector<at::DeviceIndex> chosen(double gib) {
    ParameterLayout layout;
    layout.embedding = layout.head = "embed";
    layout.tied = true;
    const auto each = static_cast<std::int64_t>(gib * 0x1p30 / 4 / 8);
    for (int l = 0; l < 8; ++l) {
        layout.blocks.push_back("blocks." + std::to_string(l) + ".");
        layout.tensors.push_back({layout.blocks.back() + "weight", {each}});
    }
    const Placement placement = Placement::of("auto", layout, at::kFloat);
    std::vector<at::DeviceIndex> numbers;
    for (const at::Device device : placement.devices()) {
        numbers.push_back(device.index());
    }
    return numbers;
}

TEST_F(FeignedGpus, AsFewAsHoldAModelAndAQuarterMore) {
    EXPECT_EQ(chosen(1), (std::vector<at::DeviceIndex>{1}));
    EXPECT_EQ(chosen(10), (std::vector<at::DeviceIndex>{2})) << "the first with room is taken alone";
    EXPECT_EQ(chosen(30), (std::vector<at::DeviceIndex>{3}));
    EXPECT_EQ(chosen(50), (std::vector<at::DeviceIndex>{3, 2})) << "two of them, the emptiest first";
    EXPECT_EQ(chosen(57), (std::vector<at::DeviceIndex>{3, 2, 1}));
}

TEST_F(FeignedGpus, WhatIsHeldIsNoQuestionToGpusOfOthers) {
    const at::Tensor mine = at::empty({1000}, at::Device(at::kCUDA, 1));
    EXPECT_GE(peak_gpu_memory(), 4000) << "one that is full would refuse to answer";
    EXPECT_FALSE(free_memory(at::Device(at::kCUDA, 0)));
}

TEST_F(FeignedGpus, ACaptureThatFailedLeavesTheAllocatorAsItWas) {
    const at::Device gpu(at::kCUDA, 1);
    const auto busy = [&] {
        return at::getDeviceAllocator(at::kCUDA)->getDeviceStats(gpu.index()).active_bytes[0].current;
    };
    const c10::impl::VirtualGuardImpl guard(at::kCUDA);
    for (int round = 0; round < 3; ++round) {
        EXPECT_THROW((void)cuda_kernels(gpu)->capture(gpu,
                                                      [&] {
                                                          (void)at::empty({1000}, gpu);
                                                          TORCH_CHECK(false, "called off");
                                                      }),
                     c10::Error);
        const std::int64_t before = busy();
        {
            const at::Tensor lent = at::empty({1 << 20}, gpu);
            lent.record_stream(guard.getStreamFromGlobalPool(gpu));
        }
        (void)at::empty({1}, gpu); // the other stream has read it by then
        EXPECT_EQ(busy(), before) << "what another stream has read comes back";
    }
}

} // namespace
} // namespace ponderscope
