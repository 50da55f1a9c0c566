// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/attend_cpu.h"

#include "core/kernels/cpu/range_trim.h"
#include "core/kernels/cpu/tile.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace ponderscope {

namespace {

using kernels::TileKernels;

constexpr std::int64_t rows_per_tile = 128;
constexpr int widest = 32; ///< columns of the widest tile of any instruction set

struct Range {
    std::int32_t begin = 0;
    std::int32_t end = 0;
    [[nodiscard]] std::int64_t length() const { return std::max(0, end - begin); }
};

/// What every query sees, windows applied: [queries, ranges].
class Visible {
public:
    Visible(const Visibility& visibility, std::int64_t queries, std::int64_t rows)
        : ranges_(visibility.ranges.defined() ? visibility.ranges.size(1) : 1),
          all_(static_cast<std::size_t>(queries * ranges_)) {
        if (visibility.ranges.defined()) {
            read(visibility.ranges.contiguous(), rows, visibility.window);
            return;
        }
        for (const auto& block : visibility.causal) {
            for (std::int64_t i = 0; i < block.length; ++i) {
                const auto end = block.row_begin + block.past + i + 1;
                const auto begin = visibility.window > 0 ? std::max(block.row_begin, end - visibility.window)
                                                         : block.row_begin;
                all_[static_cast<std::size_t>(block.query_begin + i)] = {static_cast<std::int32_t>(begin),
                                                                         static_cast<std::int32_t>(end)};
            }
        }
    }

    [[nodiscard]] std::int64_t ranges() const { return ranges_; }
    [[nodiscard]] const Range& at(std::int64_t query, std::int64_t range) const {
        return all_[static_cast<std::size_t>(query * ranges_ + range)];
    }

private:
    void read(const at::Tensor& ranges, std::int64_t rows, std::int64_t window) {
        const auto* numbers = ranges.const_data_ptr<std::int32_t>();
        for (std::size_t i = 0; i < all_.size(); ++i) {
            all_[i] = {numbers[2 * i], numbers[2 * i + 1]};
            TORCH_CHECK(all_[i].length() == 0 || (all_[i].begin >= 0 && all_[i].end <= rows),
                        "attend: range [", all_[i].begin, ", ", all_[i].end, ") of ", rows, " rows");
        }
        if (window <= 0 || ranges_ == 0) {
            return;
        }
        for (std::size_t query = 0; query < all_.size(); query += static_cast<std::size_t>(ranges_)) {
            std::int64_t seen = 0;
            for (std::int64_t i = 0; i < ranges_; ++i) {
                seen += all_[query + static_cast<std::size_t>(i)].length();
            }
            auto trim = kernels::RangeTrim::of(seen, window);
            for (std::int64_t i = 0; i < ranges_; ++i) {
                auto& range = all_[query + static_cast<std::size_t>(i)];
                range.begin = trim.first(range.begin, range.end);
            }
        }
    }

    std::int64_t ranges_;
    std::vector<Range> all_;
};

/// Neighbouring queries that share tiles, and for each range the rows that at least one of them sees.
struct QueryBlock {
    std::int64_t first = 0;
    std::int64_t length = 0;
    std::vector<Range> rows;

    [[nodiscard]] std::int64_t visible() const {
        std::int64_t sum = 0;
        for (const auto& range : rows) {
            sum += range.length();
        }
        return sum;
    }
};

/// Whether a query may join the block: each of its ranges begins where the block's does, or (a sliding
/// window) lies over the block's end. Then each row of the block is seen by some query of the same sequence,
/// so rows that are not written yet are never touched. The block's rows must not outgrow what its queries
/// see.
bool joins(const QueryBlock& block, const Visible& visible, std::int64_t query, std::int64_t allowed_waste) {
    std::int64_t together = 0;
    std::int64_t own = 0;
    for (std::size_t i = 0; i < block.rows.size(); ++i) {
        const auto& rows = block.rows[i];
        const auto& range = visible.at(query, static_cast<std::int64_t>(i));
        own += range.length();
        if (range.length() == 0 || rows.length() == 0) {
            together += std::max(range.length(), rows.length());
            if (range.length() != rows.length() && !(range.begin == rows.begin)) {
                return false;
            }
            continue;
        }
        const bool same_begin = range.begin == rows.begin;
        const bool slides = range.begin > rows.begin && range.begin < rows.end && range.end >= rows.end;
        if (!same_begin && !slides) {
            return false;
        }
        together += std::max(range.end, rows.end) - rows.begin;
    }
    return together <= std::max(own, block.visible()) + allowed_waste;
}

std::vector<QueryBlock> make_blocks(const Visible& visible, std::int64_t queries, std::int64_t longest) {
    std::vector<QueryBlock> blocks;
    for (std::int64_t query = 0; query < queries; ++query) {
        if (blocks.empty() || blocks.back().length == longest ||
            !joins(blocks.back(), visible, query, 2 * longest)) {
            QueryBlock block;
            block.first = query;
            block.rows.resize(static_cast<std::size_t>(visible.ranges()));
            for (std::int64_t i = 0; i < visible.ranges(); ++i) {
                block.rows[static_cast<std::size_t>(i)] = visible.at(query, i);
            }
            blocks.push_back(std::move(block));
        }
        auto& block = blocks.back();
        ++block.length;
        for (std::size_t i = 0; i < block.rows.size(); ++i) {
            const auto& range = visible.at(query, static_cast<std::int64_t>(i));
            if (range.length() > 0) {
                block.rows[i].end = std::max(block.rows[i].end, range.end);
            }
        }
    }
    return blocks;
}

/// Keys or values [R, g, d_h]: rows of one head, in fp32 where they lie or widened.
class Rows {
public:
    explicit Rows(const at::Tensor& tensor)
        : tensor_(tensor.stride(2) == 1 || tensor.size(2) == 1 ? tensor : tensor.contiguous()) {}

    const float* at(const TileKernels& kernels, std::int64_t row, std::int64_t count, std::int64_t head,
                    float* scratch, std::ptrdiff_t& stride) const {
        if (in_place()) {
            stride = tensor_.stride(0);
            return static_cast<const float*>(tensor_.const_data_ptr()) + offset(row, head);
        }
        const auto depth = tensor_.size(2);
        stride = depth;
        const auto* halves = static_cast<const std::uint16_t*>(tensor_.const_data_ptr()) + offset(row, head);
        const auto widen = tensor_.scalar_type() == at::kBFloat16 ? kernels.widen_bf16 : kernels.widen_f16;
        for (std::int64_t r = 0; r < count; ++r) {
            widen(halves + r * tensor_.stride(0), depth, scratch + r * depth);
        }
        return scratch;
    }

    /// Whether at() needs no scratch.
    [[nodiscard]] bool in_place() const { return tensor_.scalar_type() == at::kFloat; }

private:
    [[nodiscard]] std::int64_t offset(std::int64_t row, std::int64_t head) const {
        return row * tensor_.stride(0) + head * tensor_.stride(1);
    }
    at::Tensor tensor_;
};

/// One thread's buffers. A column is a (query, head of the group) pair.
class Worker {
public:
    Worker(const at::Tensor& q, const Rows& keys, const Rows& values, const Visible& visible, double scale,
           const float* row_bias, const float* sinks, double softcap, std::int64_t kv_heads,
           const at::Tensor& out)
        : visible_(visible),
          keys_(keys),
          values_(values),
          bias_(row_bias),
          sinks_(sinks),
          q_(q.const_data_ptr<float>()),
          out_(out.data_ptr<float>()),
          scale_(static_cast<float>(scale)),
          softcap_(static_cast<float>(softcap)),
          heads_(q.size(1)),
          group_(q.size(1) / kv_heads),
          depth_(q.size(2)),
          width_(width_of(k_)) {
        // LibTorch's memory begins at a multiple of 64 bytes. All of it is written before it is read.
        const auto of = [&](std::int64_t count) {
            return buffers_.emplace_back(at::empty({count}, at::kFloat)).mutable_data_ptr<float>();
        };
        queries_ = of(depth_ * width_);
        mixed_ = of(depth_ * width_);
        tile_ = of(rows_per_tile * width_);
        if (!keys.in_place()) {
            key_scratch_ = of(rows_per_tile * depth_);
            value_scratch_ = of(rows_per_tile * depth_);
        }
    }

    /// Columns of a tile.
    static std::int64_t width_of(const TileKernels& kernels) {
        return static_cast<std::int64_t>(kernels.lanes) * kernels.max_vectors;
    }

    void run(const QueryBlock& block, std::int64_t kv_head) {
        const auto columns = block.length * group_;
        for (std::int64_t first = 0; first < columns; first += width_) {
            run_columns(block, kv_head, first, std::min(width_, columns - first));
        }
    }

private:
    /// Where column c of a block lies in q and in the result.
    [[nodiscard]] std::int64_t element(const QueryBlock& block, std::int64_t kv_head,
                                       std::int64_t column) const {
        return ((block.first + column / group_) * heads_ + kv_head * group_ + column % group_) * depth_;
    }

    void run_columns(const QueryBlock& block, std::int64_t kv_head, std::int64_t first,
                     std::int64_t columns) {
        const int vectors = static_cast<int>((columns + k_.lanes - 1) / k_.lanes);
        const auto stride = static_cast<std::int64_t>(vectors) * k_.lanes;
        std::fill_n(mixed_, depth_ * stride, 0.0F);
        pack(block, kv_head, first, columns, stride);
        // Finite, so that a column that sees nothing of a tile gets exp(-infinity) = 0 and not a NaN.
        std::fill_n(maximum_, widest, std::numeric_limits<float>::lowest());
        std::fill_n(sum_, widest, 0.0F);
        for (std::size_t range = 0; range < block.rows.size(); ++range) {
            const auto& rows = block.rows[range];
            std::int32_t last_begin = rows.begin;
            std::int32_t first_end = rows.end;
            std::fill_n(begin_, widest, 0);
            std::fill_n(end_, widest, 0);
            for (std::int64_t j = 0; j < columns; ++j) {
                const auto& own =
                    visible_.at(block.first + (first + j) / group_, static_cast<std::int64_t>(range));
                begin_[j] = own.begin;
                end_[j] = own.end;
                last_begin = std::max(last_begin, own.begin);
                first_end = std::min(first_end, own.end);
            }
            // 64 bits: the last step may lead past 2³¹.
            for (std::int64_t row = rows.begin; row < rows.end; row += rows_per_tile) {
                const auto count = std::min(rows_per_tile, rows.end - row);
                run_tile(static_cast<std::int32_t>(row), count, kv_head, vectors,
                         row < last_begin || row + count > first_end);
            }
        }
        for (std::int64_t j = 0; j < columns; ++j) {
            float* row = out_ + element(block, kv_head, first + j);
            if (sinks_ != nullptr) {
                sum_[j] += std::exp(sinks_[kv_head * group_ + (first + j) % group_] - maximum_[j]);
            }
            for (std::int64_t i = 0; i < depth_; ++i) {
                row[i] = mixed_[i * stride + j] / sum_[j];
            }
        }
    }

    /// c·tanh(score / c) of [count, width] scores, then the bias of each row.
    void cap(float* scores, std::int64_t count, std::int64_t width, const float* bias) const {
        for (std::int64_t r = 0; r < count; ++r) {
            const float added = bias != nullptr ? bias[r] : 0.0F;
            for (std::int64_t j = r * width; j < (r + 1) * width; ++j) {
                scores[j] = softcap_ * std::tanh(scores[j] / softcap_) + added;
            }
        }
    }

    void pack(const QueryBlock& block, std::int64_t kv_head, std::int64_t first, std::int64_t columns,
              std::int64_t stride) {
        std::fill_n(queries_, depth_ * stride, 0.0F);
        for (std::int64_t j = 0; j < columns; ++j) {
            const float* row = q_ + element(block, kv_head, first + j);
            for (std::int64_t i = 0; i < depth_; ++i) {
                queries_[i * stride + j] = row[i] * scale_;
            }
        }
    }

    void run_tile(std::int32_t row, std::int64_t count, std::int64_t kv_head, int vectors,
                  bool partly_visible) {
        const float* bias = bias_ != nullptr ? bias_ + row : nullptr;
        std::ptrdiff_t stride = 0;
        const float* keys = keys_.at(k_, row, count, kv_head, key_scratch_, stride);
        k_.product(keys, stride, count, depth_, queries_, vectors, tile_, softcap_ > 0 ? nullptr : bias);
        if (softcap_ > 0) {
            cap(tile_, count, static_cast<std::int64_t>(vectors) * k_.lanes, bias);
        }
        if (partly_visible) {
            k_.mask(tile_, count, vectors, row, begin_, end_);
        }
        std::copy_n(maximum_, widest, factor_);
        k_.scan(tile_, count, vectors, maximum_);
        // factor = exp(old maximum - new maximum), by the same exponential as everything else.
        bool moved = false;
        for (int j = 0; j < vectors * k_.lanes; ++j) {
            moved = moved || factor_[j] != maximum_[j];
            factor_[j] -= maximum_[j];
        }
        if (moved) {
            k_.exponential(factor_, static_cast<std::int64_t>(vectors) * k_.lanes, factor_);
            k_.rescale(mixed_, depth_, vectors, factor_);
            k_.rescale(sum_, 1, vectors, factor_);
        }
        k_.exponentials(tile_, count, vectors, maximum_, tile_sum_);
        for (int j = 0; j < vectors * k_.lanes; ++j) {
            sum_[j] += tile_sum_[j];
        }
        const float* values = values_.at(k_, row, count, kv_head, value_scratch_, stride);
        k_.mix(values, stride, count, depth_, tile_, vectors, mixed_);
    }

    const TileKernels& k_ = kernels::tile_kernels();
    const Visible& visible_;
    const Rows& keys_;
    const Rows& values_;
    const float* bias_;
    const float* sinks_; ///< [query heads]; nullptr: none
    const float* q_;
    float* out_;
    float scale_, softcap_;
    std::int64_t heads_, group_, depth_, width_;
    std::vector<at::Tensor> buffers_;
    float *queries_, *mixed_, *tile_, *key_scratch_ = nullptr, *value_scratch_ = nullptr;
    alignas(64) float maximum_[widest];
    alignas(64) float factor_[widest];
    alignas(64) float sum_[widest];
    alignas(64) float tile_sum_[widest];
    alignas(64) std::int32_t begin_[widest];
    alignas(64) std::int32_t end_[widest];
};

} // namespace

at::Tensor attend_cpu(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                      const Visibility& visibility, double scale, const at::Tensor& row_bias,
                      const ScoreExtras& extras) {
    const auto n = q.size(0);
    const auto kv_heads = k.size(1);
    auto out = at::empty({n, q.size(1), q.size(2)}, q.options().dtype(at::kFloat));
    if (out.numel() == 0) {
        return out.to(q.scalar_type());
    }
    const Visible visible(visibility, n, k.size(0));
    const auto& kernels = kernels::tile_kernels();
    const auto group = q.size(1) / kv_heads;
    const auto longest = std::max<std::int64_t>(1, Worker::width_of(kernels) / group);
    const auto blocks = make_blocks(visible, n, longest);

    // Every thread takes neighbouring (block, KV head) pairs of about the same work.
    const auto tasks = static_cast<std::int64_t>(blocks.size()) * kv_heads;
    std::vector<std::int64_t> work(static_cast<std::size_t>(tasks) + 1, 0);
    for (std::int64_t task = 0; task < tasks; ++task) {
        const auto& block = blocks[static_cast<std::size_t>(task / kv_heads)];
        const auto columns = (block.length * group + kernels.lanes - 1) / kernels.lanes;
        work[static_cast<std::size_t>(task) + 1] =
            work[static_cast<std::size_t>(task)] + columns * block.visible();
    }
    const auto queries = q.to(at::kFloat).contiguous();
    const Rows keys(k);
    const Rows values(v);
    const auto bias = row_bias.defined() ? row_bias.to(at::kFloat).contiguous() : at::Tensor();
    const auto sinks = extras.sinks.defined() ? extras.sinks.to(at::kFloat).contiguous() : at::Tensor();
    // A thread for less than 2,000 vectors of scores costs more than it brings.
    const auto shares = std::clamp<std::int64_t>(work.back() / 2'000, 1,
                                                 std::min<std::int64_t>(at::get_num_threads(), tasks));
    at::parallel_for(0, shares, 1, [&](std::int64_t from, std::int64_t to) {
        Worker worker(
            queries, keys, values, visible, scale, bias.defined() ? bias.const_data_ptr<float>() : nullptr,
            sinks.defined() ? sinks.const_data_ptr<float>() : nullptr, extras.softcap, kv_heads, out);
        const auto task_at = [&](std::int64_t share) {
            const auto wanted = work.back() * share / shares;
            return std::lower_bound(work.begin(), work.end() - 1, wanted) - work.begin();
        };
        for (auto task = task_at(from); task < (to == shares ? tasks : task_at(to)); ++task) {
            worker.run(blocks[static_cast<std::size_t>(task / kv_heads)], task % kv_heads);
        }
    });
    return out.to(q.scalar_type());
}

} // namespace ponderscope
