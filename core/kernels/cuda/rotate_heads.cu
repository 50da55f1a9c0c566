// SPDX-License-Identifier: GPL-3.0-or-later
// A thread rotates `Width` pairs of a head, or copies `Width` elements behind the pairs. Width is 8, with
// loads of 16 bytes, if rows are whole chunks, else 1.
#include "core/kernels/cuda/rotate_heads.h"

#include "core/kernels/cuda/device_elements.cuh"
#include "core/kernels/cuda/launch.cuh"

#include <cuda_runtime.h>

namespace ponderscope::kernels {
namespace {

constexpr unsigned threads = 256;

template <int Width, typename T>
__device__ __forceinline__ void load(const T* from, float (&to)[Width]) {
    if constexpr (Width == chunk) {
        load_chunk(from, 0, chunk, to);
    } else {
        to[0] = widen(from[0]);
    }
}

template <int Width, typename T>
__device__ __forceinline__ void store(const float (&from)[Width], T* to) {
    if constexpr (Width == chunk) {
        store_chunk(from, 0, chunk, to);
    } else {
        narrow(from[0], to);
    }
}

/// `units`: threads per head.
template <typename T, int Width>
__global__ void __launch_bounds__(threads) rotate_kernel(RotateHeads a, unsigned units, std::int64_t total) {
    const std::int64_t index = std::int64_t{blockIdx.x} * threads + threadIdx.x;
    if (index >= total) {
        return;
    }
    const auto unit = static_cast<int>(index % units);
    const std::int64_t head = index / units % a.heads;
    const std::int64_t row = index / units / a.heads;
    const T* from = static_cast<const T*>(a.x) + row * a.row_stride + head * a.head_stride;
    T* to = static_cast<T*>(a.out) + (row * a.heads + head) * a.size;
    const auto half = static_cast<int>(a.half);
    const int pair = unit * Width;
    float first[Width];
    if (pair >= half) { // behind the pairs
        load<Width>(from + half + pair, first);
        store<Width>(first, to + half + pair);
        return;
    }
    const int one = a.neighbours ? 2 * pair : pair;
    const int other = a.neighbours ? one + 1 : one + half;
    float second[Width], cosine[Width], sine[Width];
    const std::int64_t angles = a.rows[row] * a.half + pair;
    load<Width>(from + one, first);
    load<Width>(from + other, second);
    load<Width>(a.cos + angles, cosine);
    load<Width>(a.sin + angles, sine);
    float turned[Width];
#pragma unroll
    for (int i = 0; i < Width; ++i) {
        turned[i] = first[i] * cosine[i] - second[i] * sine[i];
        second[i] = second[i] * cosine[i] + first[i] * sine[i];
    }
    store<Width>(turned, to + one);
    store<Width>(second, to + other);
}

bool on_boundary(const void* pointer) {
    return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0;
}

template <typename T, int Width>
void launch(const RotateHeads& a, cudaStream_t stream) {
    const std::int64_t units = (a.size - a.half) / Width;
    const std::int64_t total = a.n * a.heads * units;
    launch_kernel(rotate_kernel<T, Width>, dim3(static_cast<unsigned>((total + threads - 1) / threads)),
                  dim3(threads), 0, stream, a, static_cast<unsigned>(units), total);
}

} // namespace

const char* rotate_heads_cuda(const RotateHeads& a, void* stream) {
    if (a.n * a.heads * a.size == 0) {
        return nullptr;
    }
    if (a.n * a.heads * a.size / threads >= 0x7fffffff) {
        return "more elements than the kernel takes";
    }
    const bool chunks = !a.neighbours && a.half % chunk == 0 && a.size % chunk == 0 &&
                        a.row_stride % chunk == 0 && a.head_stride % chunk == 0 && on_boundary(a.x) &&
                        on_boundary(a.out) && on_boundary(a.cos) && on_boundary(a.sin);
    with_element(a.element, [&](auto element) {
        using T = decltype(element);
        chunks ? launch<T, chunk>(a, static_cast<cudaStream_t>(stream))
               : launch<T, 1>(a, static_cast<cudaStream_t>(stream));
    });
    return launch_error();
}

} // namespace ponderscope::kernels
