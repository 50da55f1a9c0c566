// SPDX-License-Identifier: GPL-3.0-or-later
// What becomes of LibTorch's memory of GPUs, and of the choice between them, on a machine that only says that
// it has some (tests/support/host_cuda/feigned_gpu.cpp).
#include "core/kernels/cuda_library.h"
#include "core/model/device.h"
#include "core/model/local_gpu.h"

#include <ATen/ATen.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gtest/gtest.h>

#include <cstdlib>

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

TEST_F(FeignedGpus, TheFirstThatHoldsAModelAndAQuarterMore) {
    const auto chosen = [](double gib) {
        return device_for("auto", static_cast<std::int64_t>(gib * 0x1p30));
    };
    EXPECT_EQ(chosen(1), at::Device(at::kCUDA, 1));
    EXPECT_EQ(chosen(10), at::Device(at::kCUDA, 2));
    EXPECT_EQ(chosen(30), at::Device(at::kCUDA, 3));
    EXPECT_EQ(chosen(40), at::Device(at::kCPU)) << "none has a quarter more";
    EXPECT_EQ(device_for("cuda:2", 1), at::Device(at::kCUDA, 2));
}

TEST_F(FeignedGpus, WhatIsHeldIsNoQuestionToGpusOfOthers) {
    const at::Tensor mine = at::empty({1000}, at::Device(at::kCUDA, 1));
    EXPECT_GE(peak_gpu_memory(), 4000) << "one that is full would refuse to answer";
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
