// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/core/kernels/cuda/attend_cases.h"

#include <gtest/gtest.h>

#include <cstdio>

namespace ponderscope::kernels {

using namespace testing;

TEST(AttendKernel, EveryHeadSizeAndDtype) {
    Random random(1);
    int shapes = 0;
    for (const Element element : elements) {
        double worst = 0;
        for (std::int64_t round = 0; round < 320; round += shape_step) {
            const std::int64_t head_size = 8 * (1 + round % 32);
            auto a = make_attention(random, element, head_size);
            host_cuda::set_order(orders[static_cast<std::size_t>(shapes++ % 3)], random.seed());
            ASSERT_EQ(a.run(), nullptr);
            const double here = a.worst();
            worst = std::max(worst, here);
            ASSERT_LE(here, 2e-6) << name_of(element) << ", head size " << head_size << ", " << a.query_heads
                                  << " over " << a.kv_heads << " heads, " << a.queries << " queries, "
                                  << a.rows << " rows, window " << a.window;
        }
        std::printf("%s: largest error beyond rounding %.1e\n", name_of(element), worst);
    }
    RecordProperty("shapes", shapes);
}

TEST(AttendKernel, AnyOrderOfLanesGivesTheSameBits) {
    Random random(2);
    for (int round = 0; round < 60; ++round) {
        auto a =
            make_attention(random, elements[static_cast<std::size_t>(round % 3)], 8 * (1 + random.below(32)));
        a.expect_same_bits_in_any_order(random, false);
    }
}

TEST(AttendKernel, WarpsThatShareAQueryGiveTheSameBits) {
    Random random(6);
    for (int round = 0; round < 120; round += static_cast<int>(shape_step)) {
        auto a =
            make_attention(random, elements[static_cast<std::size_t>(round % 3)], 8 * (1 + random.below(32)));
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
        auto a =
            make_attention(random, elements[static_cast<std::size_t>(round % 3)], 8 * (1 + random.below(32)));
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
    Random random(4);
    make_attention(random, Element::f16, 8, 6).expect_same_bits_at_the_last_rows(false);
}

TEST(AttendKernel, RefusesWhatDoesNotFit) {
    Random random(5);
    auto a = make_attention(random, Element::f32, 8);
    for (const std::int64_t size : {0, 12, 257, 264}) { // attend_cuda_fits() asks the same
        a.head_size = size;
        EXPECT_STREQ(a.run(), "the head size is none of 8, 16 .. 256");
        EXPECT_FALSE(fits_cuda_head(size));
    }
    EXPECT_TRUE(fits_cuda_head(8));
    EXPECT_TRUE(fits_cuda_head(256));
    a.head_size = 8;
    a.queries = 0;
    EXPECT_EQ(a.run(), nullptr);
}

} // namespace ponderscope::kernels
