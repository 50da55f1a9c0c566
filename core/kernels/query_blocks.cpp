// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernels/query_blocks.h"

#include "core/kernels/autocast.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/record_function.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <limits>

namespace ponderscope {

namespace {

constexpr std::int64_t most_queries = 64;
constexpr std::int64_t most_scores = std::int64_t{1} << 23; ///< most scores in a block of several queries

using Rows = std::pair<std::int64_t, std::int64_t>;

/// Adds the ranges of one more query, if each of them overlaps the block's range. So a block has no row that
/// no query sees (such rows may contain NaN).
bool take_in(std::vector<Rows>& pieces, const Rows* seen) {
    for (std::size_t m = 0; m < pieces.size(); ++m) {
        const auto& [begin, end] = pieces[m];
        if (begin < end && seen[m].first < seen[m].second &&
            (seen[m].first >= end || seen[m].second <= begin)) {
            return false;
        }
    }
    for (std::size_t m = 0; m < pieces.size(); ++m) {
        auto& [begin, end] = pieces[m];
        if (seen[m].first < seen[m].second) {
            const bool first = begin >= end;
            begin = first ? seen[m].first : std::min(begin, seen[m].first);
            end = first ? seen[m].second : std::max(end, seen[m].second);
        }
    }
    return true;
}

/// Joins overlapping pieces, so that each row appears once. The ranges of one query do not overlap, but their
/// unions over the block may.
void join(std::vector<Rows>& pieces) {
    std::erase_if(pieces, [](const Rows& piece) { return piece.first >= piece.second; });
    std::sort(pieces.begin(), pieces.end());
    std::vector<Rows> joined;
    for (const Rows& piece : pieces) {
        if (!joined.empty() && piece.first < joined.back().second) {
            joined.back().second = std::max(joined.back().second, piece.second);
        } else {
            joined.push_back(piece);
        }
    }
    pieces = std::move(joined);
}

/// bool [queries, end - begin], for the block's rows [begin, end): true if the query does not see the row.
at::Tensor hidden_from(const QueryBlock& block, const at::Tensor& ranges, std::int64_t begin,
                       std::int64_t end) {
    std::vector<at::Tensor> places;
    for (const auto& [first, last] : block.pieces) {
        places.push_back(at::arange(first, last, ranges.options()));
    }
    const at::Tensor row = at::cat(places).narrow(0, begin, end - begin);
    const at::Tensor mine = ranges.narrow(0, block.begin, block.queries());
    at::Tensor hidden;
    for (std::int64_t m = 0; m < ranges.size(1); ++m) {
        const at::Tensor range = mine.select(1, m);
        const at::Tensor here = row.lt(range.narrow(1, 0, 1)).logical_or_(row.ge(range.narrow(1, 1, 1)));
        hidden = hidden.defined() ? hidden.logical_and_(here) : here;
    }
    return hidden;
}

} // namespace

QueryBlock QueryBlock::at(std::int64_t begin, const at::Tensor& ranges, std::int64_t heads) {
    const auto* seen = reinterpret_cast<const Rows*>(ranges.const_data_ptr<std::int64_t>());
    const std::int64_t columns = ranges.size(1);
    QueryBlock block{begin, begin, {}, 0, {0, columns == 1 ? std::numeric_limits<std::int64_t>::max() : 0}};
    block.pieces.assign(static_cast<std::size_t>(columns), {0, 0});
    const std::int64_t last = std::min(ranges.size(0), begin + most_queries);
    while (block.end < last && take_in(block.pieces, seen + block.end * columns)) {
        const auto& [first_seen, end_seen] = seen[block.end * columns];
        block.common = {std::max(block.common.first, first_seen), std::min(block.common.second, end_seen)};
        ++block.end;
        std::int64_t rows = 0;
        for (const auto& [first, end] : block.pieces) {
            rows += end - first;
        }
        if (rows * heads * (block.queries() + 1) > most_scores) {
            break;
        }
    }
    join(block.pieces);
    for (const auto& [first, end] : block.pieces) {
        block.rows += end - first;
    }
    return block;
}

at::Tensor QueryBlock::rows_of(const at::Tensor& all, at::ScalarType type) const {
    if (pieces.size() == 1) {
        return all.narrow(0, pieces.front().first, rows).to(type);
    }
    std::vector<at::Tensor> parts;
    for (const Rows& piece : pieces) {
        parts.push_back(all.narrow(0, piece.first, piece.second - piece.first));
    }
    return at::cat(parts).to(type);
}

at::Tensor QueryBlock::weights(const at::Tensor& asked, const at::Tensor& keys, const at::Tensor& ranges,
                               const at::Tensor& row_bias, const ScoreExtras& extras) const {
    at::Tensor scores = at::bmm(asked, keys.transpose(1, 2));
    if (extras.softcap > 0) {
        scores.div_(extras.softcap).tanh_().mul_(extras.softcap);
    }
    if (row_bias.defined()) {
        scores.add_(rows_of(row_bias, scores.scalar_type()));
    }
    const std::int64_t kv_heads = keys.size(0), group = asked.size(1) / queries();
    if (queries() > 1) {
        const auto hide = [&](std::int64_t from, std::int64_t to) {
            if (from < to) {
                scores.view({kv_heads, group, queries(), rows})
                    .narrow(3, from, to - from)
                    .masked_fill_(hidden_from(*this, ranges, from, to),
                                  -std::numeric_limits<double>::infinity());
            }
        };
        const bool some = common.first < common.second; // in a causal block: all rows but the last ones
        hide(0, some ? common.first - pieces.front().first : rows);
        hide(some ? common.second - pieces.front().first : rows, rows);
    }
    return softmax_with_sinks(scores.view({kv_heads * group, queries(), rows}), extras.sinks)
        .view({kv_heads, group * queries(), rows});
}

at::Tensor attend_blocks(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                         const Visibility& visibility, double scale, const at::Tensor& row_bias,
                         const ScoreExtras& extras) {
    // The name of the products below in LibTorch's profiler.
    RECORD_FUNCTION("ponderscope::attend", c10::ArrayRef<const c10::IValue>{});
    const Autocast off(at::kCPU, false);
    const auto type = q.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    const std::int64_t n = q.size(0), kv_heads = k.size(1), group = q.size(1) / kv_heads, size = q.size(2);
    at::Tensor out = at::empty(q.sizes(), q.options().dtype(type));
    const at::Tensor ranges = visible_ranges(visibility, n, q.device()).contiguous();
    std::vector<QueryBlock> blocks;
    for (std::int64_t begin = 0; begin < n && out.numel() > 0; begin = blocks.back().end) {
        blocks.push_back(QueryBlock::at(begin, ranges, q.size(1)));
        const auto& pieces = blocks.back().pieces;
        TORCH_CHECK(!pieces.empty() && pieces.front().first >= 0 && pieces.back().second <= k.size(0),
                    "attend: ranges of queries from ", begin, " on lie outside of ", k.size(0), " rows");
    }
    // [n, g * group, d_h] -> [g, group, n, d_h]: heads that share keys share one product.
    const auto by_keys = [&](const at::Tensor& all) {
        return all.view({n, kv_heads, group, size}).permute({1, 2, 0, 3});
    };
    const at::Tensor asked = by_keys(q.to(type).mul(scale).contiguous()), answers = by_keys(out);
    const bool inference = c10::InferenceMode::is_enabled();
    const auto count = static_cast<std::int64_t>(blocks.size());
    at::parallel_for(0, count, 1, [&](std::int64_t from, std::int64_t to) {
        const c10::InferenceMode as_the_caller(inference);
        const at::NoGradGuard no_grad;
        for (std::int64_t i = from; i < to; ++i) {
            // In a causal sequence the last blocks are the longest. Take blocks from both ends in turn.
            const QueryBlock& block =
                blocks[static_cast<std::size_t>(i % 2 == 0 ? i / 2 : count - 1 - i / 2)];
            const auto mine = [&](const at::Tensor& all) {
                return all.narrow(2, block.begin, block.queries());
            };
            const at::Tensor keys = block.rows_of(k, type).transpose(0, 1);
            const at::Tensor weights =
                block.weights(mine(asked).reshape({kv_heads, group * block.queries(), size}), keys, ranges,
                              row_bias, extras);
            mine(answers).copy_(at::bmm(weights, block.rows_of(v, type).transpose(0, 1))
                                    .view({kv_heads, group, block.queries(), size}));
        }
    });
    return out.to(q.scalar_type());
}

} // namespace ponderscope
