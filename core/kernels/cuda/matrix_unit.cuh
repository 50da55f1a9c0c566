// SPDX-License-Identifier: GPL-3.0-or-later
// The matrix unit of a GPU (sm_80 and later), used by a whole warp: loads fragments of half precision from
// shared memory and adds their products in fp32. PTX defines the elements of each lane ("Matrix fragments for
// mma.m16n8k16", "ldmatrix"). With `group` = lane / 4 and `pair` = 2 (lane % 4), a lane has in
//     a, 16 x 16: word 0 row `group`, word 1 row `group + 8`, at columns `pair` and `pair + 1`;
//                 words 2 and 3 the same rows, 8 columns further
//     b, 16 x 8:  word 0 rows `pair` and `pair + 1`, word 1 the rows 8 further, at column `group`
//     c, 16 x 8:  numbers 0 and 1 row `group`, 2 and 3 row `group + 8`, at columns `pair` and `pair + 1`
// So two adjacent c, rounded to half precision, form an a.
#pragma once

#include "core/kernels/cuda/device_elements.cuh"

#include <cstdint>
#include <type_traits>

namespace ponderscope::kernels {

/// Two neighbouring elements as a word of a fragment.
template <typename T>
__device__ __forceinline__ std::uint32_t pair_of(float first, float second) {
    union {
        T elements[2];
        std::uint32_t word;
    } pair;
    narrow(first, &pair.elements[0]);
    narrow(second, &pair.elements[1]);
    return pair.word;
}

/// Loads four matrices of 8 x 8 elements from shared memory. Lane 8 m + r passes the address of row r of
/// matrix m, a multiple of 16 bytes. From every matrix (Turned: from its transpose) each lane receives row
/// `group` at columns `pair` and `pair + 1`. All lanes must call it.
template <bool Turned>
__device__ __forceinline__ void load_matrices(const void* row, std::uint32_t (&to)[4]) {
#if defined(__CUDACC__)
    const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
    if constexpr (Turned) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(address)
                     : "memory");
    } else {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(address)
                     : "memory");
    }
#else
    host_cuda::load_matrices(row, Turned, to);
#endif
}

/// Starts to copy 16 bytes to shared memory; the thread continues. If not \p wanted, writes zeros and does
/// not read \p from. Both addresses are multiples of 16 bytes.
__device__ __forceinline__ void copy_async(void* to, const void* from, bool wanted) {
#if defined(__CUDACC__)
    const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"(address), "l"(from), "r"(wanted ? 16 : 0)
                 : "memory");
#else
    host_cuda::copy_async(to, from, wanted);
#endif
}

/// Waits for this thread's copies. After a barrier the whole block sees the copied data.
__device__ __forceinline__ void wait_for_copies() {
#if defined(__CUDACC__)
    asm volatile("cp.async.wait_all;" ::: "memory");
#else
    host_cuda::wait_for_copies();
#endif
}

/// c += a · b. All lanes must call it.
template <typename T>
__device__ __forceinline__ void multiply_add(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                             std::uint32_t b1) {
#if defined(__CUDACC__)
    if constexpr (std::is_same_v<T, __nv_bfloat16>) {
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, "
            "%9}, "
            "{%0, %1, %2, %3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    } else {
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
            "{%0, %1, %2, %3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    }
#else
    const std::uint32_t b[2] = {b0, b1};
    host_cuda::multiply_add(c, a, b, [](std::uint16_t bits) {
        T element;
        static_assert(sizeof element == sizeof bits);
        std::memcpy(&element, &bits, sizeof bits);
        return widen(element);
    });
#endif
}

} // namespace ponderscope::kernels
