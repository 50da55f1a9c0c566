// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/core/kernels/cuda/attend_cases.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdio>

namespace ponderscope::kernels {

using namespace testing;

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
        a.expect_same_bits_in_any_order(random, false);
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
