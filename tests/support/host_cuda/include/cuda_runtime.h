// SPDX-License-Identifier: GPL-3.0-or-later
// What the kernels use of CUDA's header of this name, on the host: see tests/support/host_cuda/host_cuda.h.
#pragma once

#include "tests/support/host_cuda/host_cuda.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#define __global__
#define __device__
#define __forceinline__ inline
#define __host__
#define __grid_constant__
#define __launch_bounds__(...)
/// In a section of its own, so that it can be found and spoilt before each block.
#define __shared__ static __attribute__((section("host_cuda_shared")))

struct alignas(16) uint4 {
    unsigned x, y, z, w;
};

using cudaStream_t = void*;
enum cudaError_t { cudaSuccess = 0, cudaErrorInvalidConfiguration = 9, cudaErrorLaunchFailure = 719 };

inline cudaError_t cudaGetLastError() {
    return static_cast<cudaError_t>(host_cuda::take_error());
}
inline const char* cudaGetErrorString(cudaError_t) {
    return host_cuda::error_text();
}

inline void __syncthreads() {
    host_cuda::block_barrier();
}
inline void __syncwarp(unsigned lanes = 0xffffffffU) {
    host_cuda::warp_barrier(lanes);
}

namespace host_cuda {

/// Every lane of `lanes` gives its value and gets that of lane `source`.
template <typename T>
T shuffle(unsigned lanes, T value, int source) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(std::uint64_t));
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    bits = exchange(lanes, bits, source);
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

inline int lane() {
    return static_cast<int>(threadIdx.x % 32);
}

} // namespace host_cuda

template <typename T>
T __shfl_xor_sync(unsigned lanes, T value, int step) {
    return host_cuda::shuffle(lanes, value, host_cuda::lane() ^ step);
}
template <typename T>
T __shfl_sync(unsigned lanes, T value, int source) {
    return host_cuda::shuffle(lanes, value, source % 32);
}
template <typename T>
T __shfl_up_sync(unsigned lanes, T value, unsigned step) {
    const int source = host_cuda::lane() - static_cast<int>(step);
    return host_cuda::shuffle(lanes, value, source >= 0 ? source : host_cuda::lane());
}
inline unsigned __ballot_sync(unsigned lanes, bool own) {
    unsigned bits = own ? 1U << host_cuda::lane() : 0;
    for (int step = 1; step < 32; step *= 2) {
        bits |= __shfl_xor_sync(lanes, bits, step);
    }
    return bits;
}
inline int __ffs(int bits) {
    return __builtin_ffs(bits);
}
inline int __popc(unsigned bits) {
    return __builtin_popcount(bits);
}
template <typename T>
T __shfl_down_sync(unsigned lanes, T value, unsigned step) {
    const int source = host_cuda::lane() + static_cast<int>(step);
    return host_cuda::shuffle(lanes, value, source < 32 ? source : host_cuda::lane());
}

inline int atomicAdd(int* address, int value) {
    return __atomic_fetch_add(address, value, __ATOMIC_RELAXED);
}

inline float __expf(float x) {
    return std::exp(x);
}
inline float rsqrtf(float x) {
    return 1.0F / std::sqrt(x);
}
