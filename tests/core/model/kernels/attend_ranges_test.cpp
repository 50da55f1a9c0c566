// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/cuda/attend_ranges.h"

#include "tests/core/model/kernels/kernel_cases.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdio>
#include <utility>

namespace ponderscope::kernels {

namespace {

using namespace testing;

/// One call with all its memory. What no query may look at is NaN.
struct Attention {
    Element element = Element::f32;
    std::int64_t queries = 1, rows = 1, query_heads = 1, kv_heads = 1, head_size = 1, ranges_per_query = 1;
    std::int64_t window = 0;
    bool padded = false; ///< heads begin on boundaries of 16 bytes, whatever their size
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

    const char* run(std::int64_t splits = 1) {
        out = Numbers(element, queries * query_heads * head_size, nan);
        AttendRanges a;
        a.q = q.data();
        a.k = k.data();
        a.v = v.data();
        a.out = out.data();
        a.ranges = ranges.data();
        a.row_bias = bias.empty() ? nullptr : bias.data();
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
        return attend_ranges_cuda(a, nullptr);
    }

    /// The largest excess over all outputs.
    [[nodiscard]] double worst() const {
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
                    most = std::max(
                        most, excess(got, visible.empty() ? static_cast<double>(nan) : expected, element));
                }
            }
        }
        return most;
    }
};

/// Rows of heads in one of the layouts that the engine makes: packed, with room between rows, heads leading.
void lay_out(Random& random, Attention& a, std::int64_t rows, std::int64_t heads, std::int64_t& stride,
             std::int64_t& head_stride, Numbers& numbers) {
    // Rooms of 8 elements keep 16-byte boundaries, others do not.
    const std::int64_t rooms[] = {0, 8, 16, 1, 3};
    const auto head_room = a.padded ? (8 - a.head_size % 8) % 8 : rooms[random.below(5)];
    const auto row_room = a.padded ? 0 : rooms[random.below(5)];
    if (!a.padded && random.one_of(4)) {
        stride = a.head_size + row_room;
        head_stride = rows * stride + head_room;
    } else {
        head_stride = a.head_size + head_room;
        stride = heads * head_stride + row_room;
    }
    numbers = Numbers(a.element, (rows - 1) * stride + (heads - 1) * head_stride + a.head_size, nan,
                      !a.padded && random.one_of(8) ? 1 : 0);
}

void fill_rows(Random& random, const Attention& a, std::int64_t heads, std::int64_t row, std::int64_t stride,
               std::int64_t head_stride, Numbers& numbers) {
    for (std::int64_t head = 0; head < heads; ++head) {
        for (std::int64_t e = 0; e < a.head_size; ++e) {
            numbers.set(row * stride + head * head_stride + e, random.normal());
        }
    }
}

Attention make_attention(Random& random, Element element, std::int64_t head_size) {
    Attention a;
    a.element = element;
    a.head_size = head_size;
    a.padded = random.one_of(4);
    const std::pair<std::int64_t, std::int64_t> heads[] = {{1, 1}, {2, 1}, {2, 2}, {6, 2}};
    std::tie(a.query_heads, a.kv_heads) = heads[random.below(4)];
    a.queries = random.one_of(5) ? 7 + random.below(12) : 1 + random.below(3);
    a.rows = 1 + random.below(random.one_of(4) ? 150 : random.one_of(8) ? 900 : 40);
    a.ranges_per_query = 1 + random.below(4);
    const std::int64_t windows[] = {0, 0, 1, 5, 33, 1000};
    a.window = windows[random.below(6)];
    a.scale = 1 / std::sqrt(static_cast<float>(head_size));
    std::vector<bool> used(static_cast<std::size_t>(a.rows), false);
    for (std::int64_t query = 0; query < a.queries; ++query) {
        std::int64_t at = 0;
        for (std::int64_t m = 0; m < a.ranges_per_query; ++m) {
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

} // namespace

TEST(AttendKernel, EveryHeadSizeAndDtype) {
    Random random(1);
    int shapes = 0;
    for (const Element element : elements) {
        double worst = 0;
        for (std::int64_t head_size = 1; head_size <= 256; head_size += shape_step) {
            for (int round = 0; round < 2; ++round) {
                auto a = make_attention(random, element, head_size);
                host_cuda::set_order(orders[static_cast<std::size_t>(shapes++ % 3)], random.seed());
                ASSERT_EQ(a.run(), nullptr);
                const double here = a.worst();
                worst = std::max(worst, here);
                ASSERT_LE(here, 2e-6) << name_of(element) << ", head size " << head_size << ", "
                                      << a.query_heads << " over " << a.kv_heads << " heads, " << a.queries
                                      << " queries, " << a.rows << " rows, window " << a.window;
            }
        }
        std::printf("%s: largest error beyond rounding %.1e\n", name_of(element), worst);
    }
    RecordProperty("shapes", shapes);
}

TEST(AttendKernel, AnyOrderOfLanesGivesTheSameBits) {
    Random random(2);
    for (int round = 0; round < 60; ++round) {
        auto a = make_attention(random, elements[static_cast<std::size_t>(round % 3)], 1 + random.below(256));
        host_cuda::set_order(host_cuda::Order::forward);
        ASSERT_EQ(a.run(), nullptr);
        const auto expected = a.out.bytes();
        for (const auto order : {host_cuda::Order::backward, host_cuda::Order::shuffled}) {
            host_cuda::set_order(order, random.seed());
            ASSERT_EQ(a.run(), nullptr);
            EXPECT_EQ(a.out.bytes(), expected);
        }
    }
}

TEST(AttendKernel, WarpsThatShareAQueryGiveTheSameBits) {
    Random random(6);
    for (int round = 0; round < 120; round += static_cast<int>(shape_step)) {
        auto a = make_attention(random, elements[static_cast<std::size_t>(round % 3)], 1 + random.below(256));
        if (round % 6 == 5) {
            a.bias.assign(static_cast<std::size_t>(a.rows), 0);
            a.bias[static_cast<std::size_t>(a.seen(0).front())] = random.one_of(2) ? infinity : -1e38F;
        }
        host_cuda::set_order(orders[static_cast<std::size_t>(round % 3)], random.seed());
        ASSERT_EQ(a.run(), nullptr);
        const auto expected = a.out.bytes();
        EXPECT_LE(a.worst(), 2e-6);
        for (const std::int64_t splits : {2, 3, 8, 20}) {
            ASSERT_EQ(a.run(splits), nullptr);
            EXPECT_EQ(a.out.bytes(), expected) << splits << " warps a query, " << a.rows << " rows";
        }
    }
}

TEST(AttendKernel, InfinitiesAndNaN) {
    Random random(3);
    host_cuda::set_order(host_cuda::Order::shuffled, 3);
    for (int round = 0; round < 150; ++round) {
        auto a = make_attention(random, elements[static_cast<std::size_t>(round % 3)], 1 + random.below(256));
        const auto strange = [&] {
            const float values[] = {-infinity, -infinity, infinity, nan};
            return values[random.below(4)];
        };
        a.bias.resize(static_cast<std::size_t>(a.rows), 0);
        switch (round % 5) {
        case 0: // rows that weigh nothing
            for (float& value : a.bias) {
                value = random.one_of(3) ? -infinity : random.normal();
            }
            break;
        case 1: // nothing weighs anything
            std::fill(a.bias.begin(), a.bias.end(), -infinity);
            break;
        case 2:
            a.bias[static_cast<std::size_t>(random.below(a.rows))] = strange();
            break;
        case 3: { // a key, without the rest of its row
            const auto row = a.seen(0).back();
            a.k.set(row * a.k_stride + random.below(a.head_size), strange());
            break;
        }
        default: // one row far above the others, as far as fp32 goes
            std::fill(a.bias.begin(), a.bias.end(), -1e35F);
            a.bias[static_cast<std::size_t>(a.seen(0).front())] = 1e38F;
            break;
        }
        ASSERT_EQ(a.run(), nullptr);
        EXPECT_LE(a.worst(), 2e-6) << "round " << round;
    }
}

TEST(AttendKernel, TheLastRowsThatRangesCanName) {
    // 2³¹ - 1 rows of one fp16 element each, of which only the last have memory.
    const std::int64_t rows = std::numeric_limits<std::int32_t>::max();
    const auto size = static_cast<std::size_t>(rows) * 2;
    const auto reserve = [&] {
        void* memory =
            mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        return memory == MAP_FAILED ? nullptr : static_cast<__half*>(memory);
    };
    __half* const k = reserve();
    __half* const v = reserve();
    ASSERT_TRUE(k != nullptr && v != nullptr) << "4 GB of addresses";
    Random random(4);
    for (const std::int64_t length : {1, 16, 17, 40}) {
        for (const std::int64_t window : {0, 9}) {
            std::vector<double> weights;
            const __half q = __float2half_rn(random.normal());
            for (std::int64_t row = rows - length; row < rows; ++row) {
                k[row] = __float2half_rn(random.normal());
                v[row] = __float2half_rn(random.normal());
                if (window == 0 || row >= rows - window) {
                    weights.push_back(static_cast<double>(__half2float(q) * __half2float(k[row])));
                }
            }
            softmax(weights);
            const auto first = rows - static_cast<std::int64_t>(weights.size());
            const double expected = softmax_sum(weights, [&](std::size_t i) {
                return static_cast<double>(__half2float(v[first + static_cast<std::int64_t>(i)]));
            });
            const std::int32_t ranges[] = {static_cast<std::int32_t>(rows - length),
                                           static_cast<std::int32_t>(rows)};
            __half out{};
            AttendRanges a;
            a.q = &q;
            a.k = k;
            a.v = v;
            a.out = &out;
            a.ranges = ranges;
            a.queries = a.ranges_per_query = a.query_heads = a.kv_heads = a.head_size = 1;
            a.q_stride = a.q_head_stride = a.k_stride = a.k_head_stride = a.v_stride = a.v_head_stride = 1;
            a.window = window;
            a.element = Element::f16;
            ASSERT_EQ(attend_ranges_cuda(a, nullptr), nullptr);
            EXPECT_LE(excess(static_cast<double>(__half2float(out)), expected, Element::f16), 2e-6)
                << length << " rows, window " << window;
        }
    }
    munmap(k, size);
    munmap(v, size);
}

TEST(AttendKernel, RefusesWhatDoesNotFit) {
    Random random(5);
    auto a = make_attention(random, Element::f32, 8);
    a.head_size = 0;
    EXPECT_STREQ(a.run(), "the head size is outside of 1 .. 256");
    a.head_size = 257;
    EXPECT_STREQ(a.run(), "the head size is outside of 1 .. 256");
    // What attend_cuda_fits() asks, so that such heads go elsewhere.
    EXPECT_FALSE(fits_cuda_head(0));
    EXPECT_TRUE(fits_cuda_head(1));
    EXPECT_TRUE(fits_cuda_head(256));
    EXPECT_FALSE(fits_cuda_head(257));
    a.head_size = 8;
    a.queries = 0;
    EXPECT_EQ(a.run(), nullptr);
}

} // namespace ponderscope::kernels
