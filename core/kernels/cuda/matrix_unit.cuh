// SPDX-License-Identifier: GPL-3.0-or-later
// The matrix unit of a GPU from sm_80 on, a warp at a time: fragments of half precision out of shared memory
// and their products in fp32. Who holds what is PTX's ("Matrix fragments for mma.m16n8k16", "ldmatrix"): with
// group = lane / 4 and pair = lane % 4, a lane has of
//
//     a, 16 x 16   rows group (words 0, 2) and group + 8 (1, 3), columns 2 pair, 2 pair + 1 (0, 1), + 8 (2,
//     3) b, 16 x 8    rows 2 pair, 2 pair + 1 (word 0), + 8 (1), column group c, 16 x 8    rows group
//     (numbers 0, 1) and group + 8 (2, 3), columns 2 pair, 2 pair + 1
//
// so that two c side by side, made pairs of half precision, are an a.
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

/// Four matrices of 8 x 8 elements in shared memory: matrix m's row r begins at the address that lane 8 m + r
/// gives, a multiple of 16 bytes. A lane gets row group, columns 2 pair and 2 pair + 1 of each; Turned: those
/// of its mirror image. All lanes take part.
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

/// Copies 16 bytes to shared memory while the thread goes on; zeros where not \p wanted, and then does not
/// read \p from. Both are multiples of 16 bytes.
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

/// Waits for this thread's copies. A barrier then shows them to the block.
__device__ __forceinline__ void wait_for_copies() {
#if defined(__CUDACC__)
    asm volatile("cp.async.wait_all;" ::: "memory");
#else
    host_cuda::wait_for_copies();
#endif
}

/// c += a · b. All lanes take part.
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
