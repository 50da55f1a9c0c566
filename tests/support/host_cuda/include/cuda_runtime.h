// SPDX-License-Identifier: GPL-3.0-or-later
// What the kernels use of CUDA's header of this name, on the host: see tests/support/host_cuda/host_cuda.h.
#pragma once

#include "tests/support/host_cuda/host_cuda.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

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

/// ldmatrix.x4 as PTX has it: core/kernels/cuda/matrix_unit.cuh says who gives and gets what.
inline void load_matrices(const void* row, bool turned, std::uint32_t (&to)[4]) {
    std::uint64_t rows[32];
    exchange_all(0xffffffffU, reinterpret_cast<std::uint64_t>(row), rows);
    for (int matrix = 0; matrix < 4; ++matrix) {
        for (int i = 0; i < 2; ++i) {
            const int line = lane() / 4, column = lane() % 4 * 2 + i;
            const auto* from =
                reinterpret_cast<const std::uint16_t*>(rows[matrix * 8 + (turned ? column : line)]);
            if (reinterpret_cast<std::uintptr_t>(from) % 16 != 0) {
                misaligned();
                return;
            }
            const std::uint32_t element = from[turned ? line : column];
            to[matrix] = i == 0 ? element : to[matrix] | element << 16;
        }
    }
}

/// mma.m16n8k16: c += a · b, sums in fp32.
template <typename Widen>
void multiply_add(float (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                  const Widen& widen) {
    std::uint64_t upper[32], lower[32], right[32]; // words 0 and 2 of a, 1 and 3, and those of b
    exchange_all(0xffffffffU, a[0] | std::uint64_t{a[2]} << 32, upper);
    exchange_all(0xffffffffU, a[1] | std::uint64_t{a[3]} << 32, lower);
    exchange_all(0xffffffffU, b[0] | std::uint64_t{b[1]} << 32, right);
    // Element k of 16 of a line or column that four lanes hold.
    const auto element = [&](const std::uint64_t(&words)[32], int line, int k) {
        const std::uint64_t word = words[line * 4 + k % 8 / 2] >> (k / 8 * 32 + k % 2 * 16);
        return widen(static_cast<std::uint16_t>(word));
    };
    for (int i = 0; i < 4; ++i) {
        for (int k = 0; k < 16; ++k) {
            c[i] += element(i < 2 ? upper : lower, lane() / 4, k) * element(right, lane() % 4 * 2 + i % 2, k);
        }
    }
}

/// cp.async: what is on its way is not there before the wait.
struct Copy {
    void* to;
    const void* from; ///< null: zeros
};
inline std::vector<Copy>& copies_of_thread() {
    static std::vector<Copy> copies[1024]; // blocks run one after the other
    return copies[threadIdx.x];
}
inline void copy_async(void* to, const void* from, bool wanted) {
    if (reinterpret_cast<std::uintptr_t>(to) % 16 != 0 ||
        (wanted && reinterpret_cast<std::uintptr_t>(from) % 16 != 0)) {
        misaligned();
        return;
    }
    std::memset(to, 0xff, 16); // NaN
    copies_of_thread().push_back({to, wanted ? from : nullptr});
}
inline void wait_for_copies() {
    for (const Copy& copy : copies_of_thread()) {
        if (copy.from != nullptr) {
            std::memcpy(copy.to, copy.from, 16);
        } else {
            std::memset(copy.to, 0, 16);
        }
    }
    copies_of_thread().clear();
}

} // namespace host_cuda

template <typename T>
T __shfl_sync(unsigned lanes, T value, int source) {
    return host_cuda::shuffle(lanes, value, source);
}
template <typename T>
T __shfl_xor_sync(unsigned lanes, T value, int step) {
    return host_cuda::shuffle(lanes, value, host_cuda::lane() ^ step);
}
inline int __all_sync(unsigned lanes, int own) {
    std::uint64_t all[32];
    host_cuda::exchange_all(lanes, own != 0 ? 1 : 0, all);
    for (const std::uint64_t one : all) {
        own = one == 0 ? 0 : own;
    }
    return own;
}
inline std::uint32_t __reduce_or_sync(unsigned lanes, std::uint32_t own) {
    std::uint64_t all[32];
    host_cuda::exchange_all(lanes, own, all);
    for (const std::uint64_t one : all) {
        own |= static_cast<std::uint32_t>(one);
    }
    return own;
}
/// All lanes take part.
inline std::uint32_t __reduce_min_sync(unsigned lanes, std::uint32_t own) {
    std::uint64_t all[32];
    host_cuda::exchange_all(lanes, own, all);
    return static_cast<std::uint32_t>(*std::min_element(all, all + 32));
}
inline int atomicAdd(int* address, int value) {
    return __atomic_fetch_add(address, value, __ATOMIC_RELAXED);
}
inline float __uint_as_float(unsigned bits) {
    float x = 0;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}
inline float __expf(float x) {
    return std::exp(x);
}
