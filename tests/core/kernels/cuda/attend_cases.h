// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernels/cuda/attend_ranges.h"
#include "tests/core/kernels/cuda/kernel_cases.h"

#include <gtest/gtest.h>

#include <tuple>
#include <utility>

/// Calls of the kernels of attention.
namespace ponderscope::kernels::testing {

/// One call with all its memory. What no query may look at is NaN.
struct Attention {
    Element element = Element::f32;
    std::int64_t queries = 1, rows = 1, query_heads = 1, kv_heads = 1, head_size = 1, ranges_per_query = 1;
    std::int64_t window = 0;
    float scale = 1;
    std::int64_t q_stride = 0, q_head_stride = 0, k_stride = 0, k_head_stride = 0, v_stride = 0,
                 v_head_stride = 0;
    std::vector<std::int32_t> ranges;
    std::vector<float> bias;
    Numbers q, k, v, out;

    /// The rows that a query sees, window applied.
    [[nodiscard]] std::vector<std::int64_t> seen(std::int64_t query) const {
        std::vector<std::int64_t> all;
        for (std::int64_t m = 0; m < ranges_per_query; ++m) {
            const auto at = static_cast<std::size_t>((query * ranges_per_query + m) * 2);
            for (std::int64_t row = ranges[at]; row < ranges[at + 1]; ++row) {
                all.push_back(row);
            }
        }
        const auto count = static_cast<std::int64_t>(all.size());
        if (window > 0 && count > window) {
            all.erase(all.begin(), all.end() - window);
        }
        return all;
    }

    /// \p moved: ranges name rows so many further on.
    const char* run(std::int64_t splits = 1, bool tiles = false, std::int64_t moved = 0) {
        out = Numbers(element, queries * query_heads * head_size, nan);
        AttendRanges a;
        a.q = q.data();
        a.k = static_cast<const char*>(k.data()) - moved * k_stride * k.size();
        a.v = static_cast<const char*>(v.data()) - moved * v_stride * v.size();
        a.out = out.data();
        a.ranges = ranges.data();
        a.row_bias = bias.empty() ? nullptr : bias.data() - moved;
        a.queries = queries;
        a.ranges_per_query = ranges_per_query;
        a.query_heads = query_heads;
        a.kv_heads = kv_heads;
        a.head_size = head_size;
        a.window = window;
        a.q_stride = q_stride;
        a.q_head_stride = q_head_stride;
        a.k_stride = k_stride;
        a.k_head_stride = k_head_stride;
        a.v_stride = v_stride;
        a.v_head_stride = v_head_stride;
        a.scale = scale;
        a.element = element;
        a.splits = splits;
        a.segments = most_segments(window > 0 ? std::min(rows, window) : rows, ranges_per_query);
        std::vector<float> parts(
            splits > 1 ? static_cast<std::size_t>(queries * query_heads * a.segments * (2 + head_size)) : 0,
            nan);
        a.parts = splits > 1 ? parts.data() : nullptr;
        return tiles ? attend_tiles_cuda(a, nullptr) : attend_ranges_cuda(a, nullptr);
    }

    void expect_same_bits_in_any_order(Random& random, bool tiles) {
        host_cuda::set_order(host_cuda::Order::forward);
        ASSERT_STREQ(run(1, tiles), nullptr);
        const auto expected = out.bytes();
        for (const auto order : {host_cuda::Order::backward, host_cuda::Order::shuffled}) {
            host_cuda::set_order(order, random.seed());
            ASSERT_STREQ(run(1, tiles), nullptr);
            EXPECT_EQ(out.bytes(), expected);
        }
    }

    /// The rows lie before an address, and the last of them has the largest number that a range can name.
    void expect_same_bits_at_the_last_rows(bool tiles) {
        const std::int64_t moved = std::numeric_limits<std::int32_t>::max() - rows;
        ASSERT_STREQ(run(1, tiles), nullptr);
        const auto expected = out.bytes();
        for (auto& row : ranges) {
            row += static_cast<std::int32_t>(moved);
        }
        ASSERT_STREQ(run(1, tiles, moved), nullptr);
        EXPECT_EQ(out.bytes(), expected);
    }

    /// The largest excess over all outputs. \p weight_unit: what a weight may be rounded by.
    [[nodiscard]] double worst(double weight_unit = 0) const {
        double most = 0;
        for (std::int64_t query = 0; query < queries; ++query) {
            const auto visible = seen(query);
            for (std::int64_t head = 0; head < query_heads; ++head) {
                const auto kv_head = head / (query_heads / kv_heads);
                std::vector<double> weights;
                for (const auto row : visible) {
                    double dot = 0;
                    for (std::int64_t e = 0; e < head_size; ++e) {
                        dot += q[query * q_stride + head * q_head_stride + e] *
                               k[row * k_stride + kv_head * k_head_stride + e];
                    }
                    weights.push_back(
                        dot * static_cast<double>(scale) +
                        (bias.empty() ? 0 : static_cast<double>(bias[static_cast<std::size_t>(row)])));
                }
                softmax(weights);
                for (std::int64_t e = 0; e < head_size; ++e) {
                    const double expected = softmax_sum(weights, [&](std::size_t i) {
                        return v[visible[i] * v_stride + kv_head * v_head_stride + e];
                    });
                    const double got = out[(query * query_heads + head) * head_size + e];
                    const double mass = weight_unit == 0 ? 0 : softmax_sum(weights, [&](std::size_t i) {
                        return std::fabs(v[visible[i] * v_stride + kv_head * v_head_stride + e]);
                    });
                    most = std::max(most, excess(got, visible.empty() ? static_cast<double>(nan) : expected,
                                                 element, std::isfinite(mass) ? mass * weight_unit : 0));
                }
            }
        }
        return most;
    }
};

/// Rows of heads in one of the layouts that the engine makes: packed, with room between rows, heads leading.
inline void lay_out(Random& random, Attention& a, std::int64_t rows, std::int64_t heads, std::int64_t& stride,
                    std::int64_t& head_stride, Numbers& numbers) {
    const auto head_room = 8 * random.below(3);
    const auto row_room = 8 * random.below(3);
    if (random.one_of(4)) {
        stride = a.head_size + row_room;
        head_stride = rows * stride + head_room;
    } else {
        head_stride = a.head_size + head_room;
        stride = heads * head_stride + row_room;
    }
    numbers = Numbers(a.element, (rows - 1) * stride + (heads - 1) * head_stride + a.head_size, nan);
}

inline void fill_rows(Random& random, const Attention& a, std::int64_t heads, std::int64_t row,
                      std::int64_t stride, std::int64_t head_stride, Numbers& numbers) {
    for (std::int64_t head = 0; head < heads; ++head) {
        for (std::int64_t e = 0; e < a.head_size; ++e) {
            numbers.set(row * stride + head * head_stride + e, random.normal());
        }
    }
}

/// Queries that see anything, or (\p alike) what their neighbours see and a row more.
inline Attention make_attention(Random& random, Element element, std::int64_t head_size,
                                std::int64_t queries = 0, bool alike = false) {
    Attention a;
    a.element = element;
    a.head_size = head_size;
    const std::pair<std::int64_t, std::int64_t> heads[] = {{1, 1}, {2, 1}, {2, 2}, {6, 2}};
    std::tie(a.query_heads, a.kv_heads) = heads[random.below(4)];
    a.queries = queries > 0 ? queries : random.one_of(5) ? 7 + random.below(12) : 1 + random.below(3);
    a.rows = 1 + random.below(random.one_of(4) ? 150 : random.one_of(8) ? 900 : 40);
    a.ranges_per_query = 1 + random.below(4);
    const std::int64_t windows[] = {0, 0, 1, 5, 33, 1000};
    a.window = windows[random.below(6)];
    a.scale = 1 / std::sqrt(static_cast<float>(head_size));
    std::vector<bool> used(static_cast<std::size_t>(a.rows), false);
    for (std::int64_t query = 0; query < a.queries; ++query) {
        std::int64_t at = 0;
        const bool follows = alike && query > 0 && !random.one_of(20);
        for (std::int64_t m = 0; m < a.ranges_per_query && follows; ++m) {
            const auto before = a.ranges.size() - static_cast<std::size_t>(2 * a.ranges_per_query);
            const bool last = m + 1 == a.ranges_per_query;
            a.ranges.push_back(a.ranges[before]);
            a.ranges.push_back(
                std::min(a.ranges[before + 1] + (last ? 1 : 0), static_cast<std::int32_t>(a.rows)));
        }
        for (std::int64_t m = 0; m < a.ranges_per_query && !follows; ++m) {
            const auto begin = at + random.below(a.rows - at + 1);
            auto end = random.one_of(4) ? begin : begin + random.below(a.rows - begin + 1);
            end = m == 0 && begin == end && begin < a.rows ? begin + 1 : end;
            a.ranges.push_back(static_cast<std::int32_t>(begin));
            a.ranges.push_back(static_cast<std::int32_t>(end));
            at = end;
        }
        if (a.seen(query).empty()) {
            a.ranges[a.ranges.size() - 2] = static_cast<std::int32_t>(a.rows) - 1;
            a.ranges[a.ranges.size() - 1] = static_cast<std::int32_t>(a.rows);
        }
        for (const auto row : a.seen(query)) {
            used[static_cast<std::size_t>(row)] = true;
        }
    }
    lay_out(random, a, a.queries, a.query_heads, a.q_stride, a.q_head_stride, a.q);
    lay_out(random, a, a.rows, a.kv_heads, a.k_stride, a.k_head_stride, a.k);
    lay_out(random, a, a.rows, a.kv_heads, a.v_stride, a.v_head_stride, a.v);
    for (std::int64_t query = 0; query < a.queries; ++query) {
        fill_rows(random, a, a.query_heads, query, a.q_stride, a.q_head_stride, a.q);
    }
    for (std::int64_t row = 0; row < a.rows; ++row) {
        if (used[static_cast<std::size_t>(row)]) {
            fill_rows(random, a, a.kv_heads, row, a.k_stride, a.k_head_stride, a.k);
            fill_rows(random, a, a.kv_heads, row, a.v_stride, a.v_head_stride, a.v);
        }
    }
    if (random.one_of(2)) {
        for (std::int64_t row = 0; row < a.rows; ++row) {
            a.bias.push_back(used[static_cast<std::size_t>(row)] ? random.normal() : nan);
        }
    }
    return a;
}

} // namespace ponderscope::kernels::testing
