// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

namespace ponderscope::kernels {

enum class Element : std::uint8_t { f32, f16, bf16 };

/// Attention of queries over ranges of K/V rows on a GPU. All pointers are device pointers; strides count
/// elements. Heads of q, k and v are contiguous and aligned to 16 bytes. out is [queries, query_heads,
/// head_size], contiguous.
struct AttendRanges {
    const void* q = nullptr;
    const void* k = nullptr;
    const void* v = nullptr;
    void* out = nullptr;
    const std::int32_t* ranges = nullptr; ///< [queries, ranges_per_query, 2]
    const float* row_bias = nullptr;      ///< [rows] or null
    std::int64_t queries = 0;
    std::int64_t ranges_per_query = 0;
    std::int64_t query_heads = 0;
    std::int64_t kv_heads = 0;
    std::int64_t head_size = 0; ///< 8, 16 .. 256
    std::int64_t window = 0;    ///< as in Visibility
    std::int64_t q_stride = 0, q_head_stride = 0;
    std::int64_t k_stride = 0, k_head_stride = 0;
    std::int64_t v_stride = 0, v_head_stride = 0;
    float scale = 1;
    Element element = Element::f32;
    // For few queries over many rows: several warps share the rows of one query.
    std::int64_t splits = 1;   ///< warps for each query head
    std::int64_t segments = 0; ///< if splits > 1: result of most_segments()
    float* parts = nullptr; ///< if splits > 1: partial sums [queries, query_heads, segments, 2 + head_size]
};

/// The kernel sums a query's rows in segments of 128, then sums the segments in order. So the number of warps
/// does not change the result. most_segments() is the largest number of segments of a query with `rows` rows.
constexpr std::int64_t segment_rounds = 8, round_rows = 16;
constexpr std::int64_t most_segments(std::int64_t rows, std::int64_t ranges_per_query) {
    return (rows / round_rows + ranges_per_query + segment_rounds - 1) / segment_rounds;
}

constexpr int chunk = 8; ///< elements that a lane reads at once; 16 bytes in half precision

/// Whether the kernels run heads of this size. The kernels read whole chunks. Other sizes, which no model
/// uses, run as plain operations.
constexpr bool fits_cuda_head(std::int64_t head_size) {
    return head_size >= 1 && head_size <= 256 && head_size % chunk == 0;
}

/// Queues the kernels on a cudaStream_t. Returns null, or the error of the CUDA runtime.
const char* attend_ranges_cuda(const AttendRanges& arguments, void* stream);

/// Lines of a thread block in attend_tiles_cuda. A line is a query and one of the query heads of a K/V head.
constexpr std::int64_t attend_tile_lines = 64;

/// Whether attend_tiles_cuda runs these arguments. The registers hold heads of up to 128 elements.
constexpr bool fits_attend_tiles(const AttendRanges& a) {
    return a.element != Element::f32 && fits_cuda_head(a.head_size) && a.head_size <= 128 && a.kv_heads > 0 &&
           a.query_heads / a.kv_heads <= attend_tile_lines;
}

/// attend_ranges_cuda on the matrix unit, for many queries whose neighbours see nearly the same rows. Ignores
/// `splits`, `segments` and `parts`. Rounds weights to the elements' dtype, as flash attention does.
const char* attend_tiles_cuda(const AttendRanges& arguments, void* stream);

} // namespace ponderscope::kernels
