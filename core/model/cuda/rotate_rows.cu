// SPDX-License-Identifier: GPL-3.0-or-later
// A warp turns a head of a row: its lanes take neighbouring pairs, so that all reads lie side by side.
#include "core/model/cuda/rotate_rows.h"

#include "core/model/cuda/device_elements.cuh"
#include "core/model/cuda/launch.cuh"

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

template <typename T>
void launch(const RotateRows& a, cudaStream_t stream) {
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
