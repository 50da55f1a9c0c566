// SPDX-License-Identifier: GPL-3.0-or-later
// Two kernels: one whose threads each turn eight pairs by loads of 16 bytes, for pairs half a head apart in
// rows of whole chunks; and one for all else, in which a warp turns a head of a row and its lanes take
// neighbouring pairs.
#include "core/kernels/cuda/rotate_rows.h"

#include "core/kernels/cuda/device_elements.cuh"
#include "core/kernels/cuda/launch.cuh"

namespace ponderscope::kernels {
namespace {

constexpr int warps_per_block = 8;

template <typename T>
__global__ void __launch_bounds__(32 * warps_per_block) rotate_kernel(RotateRows a) {
    const std::int64_t lane = threadIdx.x % 32;
    const std::int64_t warp =
        static_cast<std::int64_t>(blockIdx.x) * warps_per_block + static_cast<int>(threadIdx.x) / 32;
    const std::int64_t row = warp / a.heads;
    const std::int64_t head = warp % a.heads;
    if (row >= a.n) {
        return;
    }
    const T* from = static_cast<const T*>(a.x) + row * a.row_stride + head * a.head_stride;
    const std::int64_t place = a.places != nullptr ? a.places[row] : row;
    T* to = static_cast<T*>(a.out) + (place * a.heads + head) * a.size;
    for (std::int64_t j = lane; j < a.half; j += 32) {
        const float c = a.cos[a.rows[row] * a.half + j];
        const float s = a.sin[a.rows[row] * a.half + j];
        const std::int64_t one = a.neighbours ? 2 * j : j;
        const std::int64_t other = a.neighbours ? one + 1 : one + a.half;
        const float first = widen(from[one]);
        const float second = widen(from[other]);
        narrow(first * c - second * s, to + one);
        narrow(second * c + first * s, to + other);
    }
    for (std::int64_t e = 2 * a.half + lane; e < a.size; e += 32) {
        to[e] = from[e];
    }
}

constexpr unsigned threads_per_block = 256;

/// A thread turns eight pairs of a head, or copies eight elements behind them. `units` threads a head.
template <typename T>
__global__ void __launch_bounds__(threads_per_block)
    rotate_chunks_kernel(RotateRows a, unsigned units, unsigned total) {
    const unsigned index = blockIdx.x * threads_per_block + threadIdx.x;
    if (index >= total) {
        return;
    }
    const unsigned unit = index % units;
    const unsigned heads = static_cast<unsigned>(a.heads);
    const unsigned head = index / units % heads;
    const unsigned row = index / units / heads;
    const T* from = static_cast<const T*>(a.x) + row * a.row_stride + head * a.head_stride;
    const std::int64_t place = a.places != nullptr ? a.places[row] : row;
    T* to = static_cast<T*>(a.out) + (place * a.heads + head) * a.size;
    const int half = static_cast<int>(a.half);
    const int size = static_cast<int>(a.size);
    const int one = static_cast<int>(unit) * chunk;
    float first[chunk];
    if (one >= half) { // behind the pairs
        load_chunk<true>(from, one + half, size, first);
        store_chunk<true>(first, one + half, size, to);
        return;
    }
    float second[chunk];
    float cosine[chunk];
    float sine[chunk];
    const std::int64_t angles = a.rows[row] * a.half;
    load_chunk<true>(from, one, size, first);
    load_chunk<true>(from, one + half, size, second);
    load_chunk<true>(a.cos + angles, one, half, cosine);
    load_chunk<true>(a.sin + angles, one, half, sine);
    float turned[chunk];
#pragma unroll
    for (int i = 0; i < chunk; ++i) {
        turned[i] = first[i] * cosine[i] - second[i] * sine[i];
        second[i] = second[i] * cosine[i] + first[i] * sine[i];
    }
    store_chunk<true>(turned, one, size, to);
    store_chunk<true>(second, one + half, size, to);
}

template <typename T>
void launch(const RotateRows& a, cudaStream_t stream) {
    const std::int64_t units = (a.size - a.half) / chunk;
    const bool chunks = !a.neighbours && a.half % chunk == 0 && a.size % chunk == 0 &&
                        a.row_stride % chunk == 0 && a.head_stride % chunk == 0 && on_boundary(a.x) &&
                        on_boundary(a.out) && (a.half == 0 || (on_boundary(a.cos) && on_boundary(a.sin))) &&
                        a.n * a.heads * units <= 0x7fffffff;
    if (chunks) {
        const auto total = static_cast<unsigned>(a.n * a.heads * units);
        launch_kernel(rotate_chunks_kernel<T>, (total + threads_per_block - 1) / threads_per_block,
                      threads_per_block, 0, stream, a, static_cast<unsigned>(units), total);
        return;
    }
    const auto blocks = static_cast<unsigned>((a.n * a.heads + warps_per_block - 1) / warps_per_block);
    launch_kernel(rotate_kernel<T>, blocks, 32 * warps_per_block, 0, stream, a);
}

} // namespace

const char* rotate_rows_cuda(const RotateRows& arguments, void* stream) {
    if (arguments.n * arguments.heads == 0) {
        return nullptr;
    }
    with_element(arguments.element, [&](auto element) {
        launch<decltype(element)>(arguments, static_cast<cudaStream_t>(stream));
    });
    return launch_error();
}

} // namespace ponderscope::kernels
