// SPDX-License-Identifier: GPL-3.0-or-later
// The host form of CUDA by itself: what it lets through says nothing unless it stops what is wrong.
#include "tests/support/host_cuda/host_cuda.h"

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

namespace {

using host_cuda::Order;

std::string run(unsigned blocks, unsigned threads, const std::function<void()>& kernel) {
    host_cuda::launch(blocks, threads, 0, nullptr, kernel);
    const cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? "" : cudaGetErrorString(error);
}

TEST(HostCuda, EveryThreadOfEveryBlockRunsOnceInTheOrderAskedFor) {
    for (const auto order : {Order::forward, Order::backward, Order::shuffled}) {
        host_cuda::set_order(order, 5);
        std::atomic<int> clock = 0;
        std::vector<int> times(3 * 96, -1);
        EXPECT_EQ(run(3, 96, [&] { times[blockIdx.x * blockDim.x + threadIdx.x] = clock++; }), "");
        EXPECT_EQ(clock, 3 * 96);
        EXPECT_EQ(std::is_sorted(times.begin(), times.end()), order == Order::forward);
        EXPECT_EQ(std::is_sorted(times.rbegin(), times.rend()), order == Order::backward);
        std::sort(times.begin(), times.end());
        for (int i = 0; i < 3 * 96; ++i) {
            EXPECT_EQ(times[static_cast<std::size_t>(i)], i);
        }
    }
    std::atomic<int> clock = 0;
    std::vector<int> times(8 * 32, -1);
    host_cuda::set_order(Order::forward);
    host_cuda::launch({2, 2, 2}, {8, 2, 2}, 0, nullptr, [&] {
        times[((blockIdx.z * 2 + blockIdx.y) * 2 + blockIdx.x) * 32 + (threadIdx.z * 2 + threadIdx.y) * 8 +
              threadIdx.x] = clock++;
    });
    EXPECT_TRUE(std::is_sorted(times.begin(), times.end()));
    EXPECT_EQ(times.front(), 0);
    EXPECT_EQ(times.back(), 8 * 32 - 1);
}

TEST(HostCuda, BarriersAndShufflesMeet) {
    for (const auto order : {Order::forward, Order::backward, Order::shuffled}) {
        host_cuda::set_order(order, 6);
        std::atomic<int> wrong = 0;
        EXPECT_EQ(run(2, 128,
                      [&] {
                          __shared__ int given[128];
                          const auto me = static_cast<int>(threadIdx.x);
                          for (int round = 0; round < 5; ++round) {
                              __syncthreads();
                              given[me] = me * round;
                              __syncthreads();
                              wrong += given[(me + 37) % 128] != (me + 37) % 128 * round ? 1 : 0;
                          }
                          wrong += __shfl_xor_sync(0xffffffffU, me, 5) != (me ^ 5) ? 1 : 0;
                          // Lanes part: each half by itself.
                          const unsigned half = me % 32 < 16 ? 0xffffU : 0xffff0000U;
                          if (me % 32 < 16) {
                              __syncwarp(half);
                              wrong += __shfl_xor_sync(half, me, 8) != (me ^ 8) ? 1 : 0;
                          } else {
                              wrong += __shfl_xor_sync(half, me, 1) != (me ^ 1) ? 1 : 0;
                          }
                          __syncwarp();
                      }),
                  "");
        EXPECT_EQ(wrong, 0);
    }
}

TEST(HostCuda, SharedMemoryIsSpoiltBeforeEachBlock) {
    host_cuda::set_order(Order::forward);
    std::vector<int> found;
    EXPECT_EQ(run(4, 32,
                  [&] {
                      __shared__ int number;
                      if (threadIdx.x == 0) {
                          found.push_back(number);
                          number = 1;
                      }
                  }),
              "");
    ASSERT_EQ(found.size(), 4U);
    for (std::size_t i = 0; i < found.size(); ++i) {
        EXPECT_TRUE(found[i] == -1 || found[i] == 0x7b7b7b7b) << found[i];
        EXPECT_NE(found[i], found[(i + 1) % 4]);
    }
}

TEST(HostCuda, SaysWhatNoKernelMayDo) {
    const auto tells = [](const std::string& text, const std::string& part) {
        return text.find(part) != std::string::npos;
    };
    host_cuda::set_order(Order::forward);
    EXPECT_TRUE(tells(run(1, 64,
                          [] {
                              if (threadIdx.x != 3) {
                                  __syncthreads();
                              }
                          }),
                      "thread 0 of block (0, 0, 0) waits at a barrier that not all threads come to"));
    EXPECT_TRUE(tells(run(1, 32,
                          [] {
                              if (threadIdx.x < 31) {
                                  __shfl_xor_sync(0xffffffffU, 1, 1);
                              }
                          }),
                      "a shuffle that not all lanes come to"));
    EXPECT_TRUE(tells(run(1, 32,
                          [] {
                              if (threadIdx.x % 2 == 0) {
                                  __syncwarp();
                              }
                          }),
                      "a warp's barrier that not all lanes come to"));
    // Lanes that disagree about who takes part, or ask one who does not.
    EXPECT_TRUE(tells(run(1, 32, [] { __shfl_xor_sync(threadIdx.x < 16 ? 0xffffffffU : 0xffff0000U, 1, 1); }),
                      "a shuffle that not all lanes come to"));
    EXPECT_TRUE(tells(run(1, 32,
                          [] {
                              if (threadIdx.x < 16) {
                                  __shfl_xor_sync(0xffffU, 1, 16);
                              }
                          }),
                      "shuffles with a lane that takes no part"));
    EXPECT_EQ(run(1, 33, [] {}), "invalid configuration argument");
    EXPECT_EQ(run(0, 32, [] {}), "invalid configuration argument");
    EXPECT_EQ(run(1, 2048, [] {}), "invalid configuration argument");
    host_cuda::launch({1, 65536}, 32, 0, nullptr, [] {});
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
    // And goes on.
    std::atomic<int> ran = 0;
    EXPECT_EQ(run(1, 64, [&] { ++ran; }), "");
    EXPECT_EQ(ran, 64);
}

} // namespace
