// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/cuda/attend_ranges.h"
#include "core/kernels/cuda/kernels.h"

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace ponderscope {

namespace {

/// Arrays on the device that describe causal blocks for the kernels.
struct OfBlocks {
    std::vector<Visibility::CausalBlock> blocks;
    at::Tensor ranges;  ///< int32 [n, 1, 2]
    at::Tensor offsets; ///< int32 [3, blocks + 1]: first query, first row, number of rows
};

/// Returns an array of OfBlocks. Each thread caches the arrays of its last blocks, so that all layers of a
/// pass share them. The allocator keeps the pinned memory until the copy to the device ends.
template <typename Make>
at::Tensor once(const Visibility& visibility, at::Tensor OfBlocks::*kind, at::IntArrayRef sizes,
                at::Device device, const Make& make) {
    thread_local auto* made = new OfBlocks; // never freed: at exit the device may be gone
    const auto same = [](const Visibility::CausalBlock& a, const Visibility::CausalBlock& b) {
        return a.query_begin == b.query_begin && a.length == b.length && a.row_begin == b.row_begin &&
               a.past == b.past;
    };
    if (!std::equal(made->blocks.begin(), made->blocks.end(), visibility.causal.begin(),
                    visibility.causal.end(), same)) {
        *made = {visibility.causal, {}, {}};
    }
    at::Tensor& numbers = made->*kind;
    if (!numbers.defined() || numbers.device() != device) {
        const auto on_host = at::empty(sizes, at::TensorOptions().dtype(at::kInt).pinned_memory(true));
        make(on_host.data_ptr<std::int32_t>());
        numbers = on_host.to(device, /*non_blocking=*/true);
    }
    return numbers;
}

at::Tensor as_ranges(const Visibility& visibility, std::int64_t queries, at::Device device) {
    if (visibility.ranges.defined()) {
        return visibility.ranges.contiguous();
    }
    return once(visibility, &OfBlocks::ranges, {queries, 1, 2}, device, [&](std::int32_t* numbers) {
        for (const auto& block : visibility.causal) {
            for (std::int64_t i = 0; i < block.length; ++i) {
                numbers[2 * (block.query_begin + i)] = static_cast<std::int32_t>(block.row_begin);
                numbers[2 * (block.query_begin + i) + 1] =
                    static_cast<std::int32_t>(block.row_begin + block.past + i + 1);
            }
        }
    });
}

/// LibTorch's flash attention. \p queries, \p rows: int32 [sequences + 1], the first query and the first row
/// of each sequence. \p used: int32 [sequences], the number of rows of each sequence; no value: the sequences
/// have no gaps between them.
at::Tensor flash(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, double scale,
                 const Visibility& visibility, const at::Tensor& queries, const at::Tensor& rows,
                 std::int64_t most_queries, std::int64_t most_rows, const std::optional<at::Tensor>& used) {
    // Number of visible keys before the query's own key. No value: all.
    const std::optional<std::int64_t> before =
        visibility.window > 0 ? std::optional(visibility.window - 1) : std::nullopt;
    return std::get<0>(at::_flash_attention_forward(
        q, k, v, queries, rows, most_queries, most_rows, /*dropout_p=*/0.0, /*is_causal=*/true,
        /*return_debug_mask=*/false, scale, before, before ? std::optional(0) : std::nullopt, used));
}

/// Flash attention of all sequences in one call.
at::Tensor by_flash(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                    const Visibility& visibility, double scale) {
    if (visibility.runs.defined()) {
        return flash(q, k, v, scale, visibility, visibility.runs, visibility.runs, visibility.longest_run,
                     visibility.longest_run, std::nullopt);
    }
    const auto& blocks = visibility.causal;
    const auto count = static_cast<std::int64_t>(blocks.size());
    std::int64_t most_queries = 0;
    std::int64_t most_rows = 0;
    for (const auto& block : blocks) {
        most_queries = std::max(most_queries, block.length);
        most_rows = std::max(most_rows, block.past + block.length);
    }
    const auto offsets =
        once(visibility, &OfBlocks::offsets, {3, count + 1}, q.device(), [&](std::int32_t* numbers) {
            for (std::int64_t i = 0; i <= count; ++i) {
                const auto& block = blocks[static_cast<std::size_t>(std::min(i, count - 1))];
                const std::int64_t rows = block.past + block.length;
                const bool end = i == count;
                numbers[i] = static_cast<std::int32_t>(block.query_begin + (end ? block.length : 0));
                numbers[count + 1 + i] = static_cast<std::int32_t>(block.row_begin + (end ? rows : 0));
                numbers[2 * (count + 1) + i] = static_cast<std::int32_t>(rows);
            }
        });
    // Pass the number of rows of each sequence: in a cache, free rows lie between two sequences.
    return flash(q, k, v, scale, visibility, offsets.select(0, 0), offsets.select(0, 1), most_queries,
                 most_rows, offsets.select(0, 2).narrow(0, 0, count));
}

/// Whether neighbouring queries see nearly the same rows, so that the matrix unit is efficient. For ranges,
/// the number of queries decides: decoding has few queries, a step over texts has many.
bool has_neighbours(const Visibility& visibility, std::int64_t queries) {
    if (visibility.ranges.defined()) {
        return queries >= 4 * kernels::attend_tile_lines;
    }
    return std::any_of(visibility.causal.begin(), visibility.causal.end(),
                       [](const auto& block) { return 4 * block.length >= kernels::attend_tile_lines; });
}

/// If there are too few queries to fill the GPU, lets several warps share a query. Returns memory for partial
/// sums.
at::Tensor share_queries(kernels::AttendRanges& a, const Visibility& visibility, std::int64_t rows,
                         const at::TensorOptions& options) {
    constexpr std::int64_t wanted = 8192; // enough warps to fill any current GPU
    constexpr std::int64_t most_bytes = std::int64_t{256} << 20;
    std::int64_t seen = !visibility.ranges.defined() ? 0
                        : visibility.most_rows > 0   ? std::min(rows, visibility.most_rows)
                                                     : rows;
    for (const auto& block : visibility.causal) {
        seen = std::max(seen, block.past + block.length);
    }
    a.segments = kernels::most_segments(a.window > 0 ? std::min(seen, a.window) : seen, a.ranges_per_query);
    const std::int64_t warps = a.queries * a.query_heads;
    const std::int64_t elements = warps * a.segments * (2 + a.head_size);
    a.splits = std::min(a.segments, (wanted + warps - 1) / warps);
    if (a.splits <= 1 || elements > most_bytes / 4) {
        a.splits = 1;
        return {};
    }
    auto parts = at::empty({elements}, options.dtype(at::kFloat));
    a.parts = parts.data_ptr<float>();
    return parts;
}

/// The tensor, copied if its heads do not lie in chunks on boundaries of 16 bytes, as all kernels require.
at::Tensor in_chunks(const at::Tensor& tensor) {
    const bool whole = tensor.stride(2) == 1 && tensor.stride(1) % kernels::chunk == 0 &&
                       tensor.stride(0) % kernels::chunk == 0 &&
                       reinterpret_cast<std::uintptr_t>(tensor.const_data_ptr()) % 16 == 0;
    return whole ? tensor : tensor.clone(at::MemoryFormat::Contiguous);
}

} // namespace

bool attend_cuda_fits(const at::Tensor& q) {
    const auto type = q.scalar_type();
    return !q.is_cpu() && kernels::fits_cuda_head(q.size(2)) &&
           (type == at::kFloat || type == at::kBFloat16 || type == at::kHalf);
}

bool flash_fits(const at::Tensor& q, const Visibility& visibility, const at::Tensor& row_bias) {
    const auto type = q.scalar_type();
    if (row_bias.defined() || (type != at::kBFloat16 && type != at::kHalf) ||
        !kernels::fits_cuda_head(q.size(2))) {
        return false;
    }
    if (visibility.ranges.defined()) {
        return visibility.runs.defined();
    }
    std::int64_t next = 0;
    bool longer = false; // than one query: for single queries our kernel is faster
    for (const auto& block : visibility.causal) {
        if (block.query_begin != next || block.length == 0) {
            return false;
        }
        next += block.length;
        longer = longer || block.length > 1;
    }
    return longer;
}

at::Tensor attend_cuda(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                       const Visibility& visibility, double scale, const at::Tensor& row_bias) {
    const c10::DeviceGuard guard(q.device());
    const auto queries = in_chunks(q);
    const auto keys = in_chunks(k);
    const auto values = in_chunks(v);
    if (flash_fits(q, visibility, row_bias)) {
        return by_flash(queries, keys, values, visibility, scale);
    }
    const auto ranges = as_ranges(visibility, q.size(0), q.device());
    const auto bias = row_bias.defined() ? row_bias.to(at::kFloat).contiguous() : at::Tensor();
    auto out = at::empty(q.sizes(), q.options().memory_format(at::MemoryFormat::Contiguous));

    kernels::AttendRanges arguments;
    arguments.q = queries.const_data_ptr();
    arguments.k = keys.const_data_ptr();
    arguments.v = values.const_data_ptr();
    arguments.out = out.data_ptr();
    arguments.ranges = ranges.const_data_ptr<std::int32_t>();
    arguments.row_bias = bias.defined() ? bias.const_data_ptr<float>() : nullptr;
    arguments.queries = q.size(0);
    arguments.ranges_per_query = ranges.size(1);
    arguments.query_heads = q.size(1);
    arguments.kv_heads = k.size(1);
    arguments.head_size = q.size(2);
    arguments.window = visibility.window;
    arguments.q_stride = queries.stride(0);
    arguments.q_head_stride = queries.stride(1);
    arguments.k_stride = keys.stride(0);
    arguments.k_head_stride = keys.stride(1);
    arguments.v_stride = values.stride(0);
    arguments.v_head_stride = values.stride(1);
    arguments.scale = static_cast<float>(scale);
    arguments.element = kernels::element_of(q.scalar_type());
    void* const stream = stream_of(q);
    const char* error = nullptr;
    if (kernels::fits_attend_tiles(arguments) && has_neighbours(visibility, q.size(0))) {
        error = kernels::attend_tiles_cuda(arguments, stream);
    } else {
        const auto parts = share_queries(arguments, visibility, k.size(0), q.options());
        error = kernels::attend_ranges_cuda(arguments, stream);
    }
    check_queued(error, "attend", q);
    return out;
}

} // namespace ponderscope
