// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/core/kernels/cuda/attend_cases.h"

#include <gtest/gtest.h>

#include <cstdio>

namespace ponderscope::kernels {

using namespace testing;

namespace {

/// Half a unit in the last place of a number around 1; a product's result is rounded once more.
double unit_of(Element element) {
    return element == Element::f16 ? 0x1p-11 : 0x1p-8;
}

constexpr std::array halves = {Element::f16, Element::bf16};

Attention make_tiles(Random& random, Element element, std::int64_t head_size) {
    const std::int64_t queries = random.one_of(3) ? 60 + random.below(90) : 1 + random.below(70);
    return make_attention(random, element, head_size, queries, true);
}

} // namespace

TEST(AttendTiles, EveryHeadSizeAndDtype) {
    Random random(1);
    int shapes = 0;
    for (const Element element : halves) {
        double worst = 0;
        for (std::int64_t round = 0; round < 96; round += shape_step) {
            const std::int64_t head_size = 8 * (1 + round % 16);
            auto a = make_tiles(random, element, head_size);
            host_cuda::set_order(orders[static_cast<std::size_t>(shapes++ % 3)], random.seed());
            ASSERT_STREQ(a.run(1, true), nullptr);
            const double here = a.worst(unit_of(element));
            worst = std::max(worst, here);
            ASSERT_LE(here, 2e-6) << name_of(element) << ", head size " << head_size << ", " << a.query_heads
                                  << " over " << a.kv_heads << " heads, " << a.queries << " queries, "
                                  << a.rows << " rows, window " << a.window;
        }
        std::printf("%s: largest error beyond rounding %.1e\n", name_of(element), worst);
    }
    RecordProperty("shapes", shapes);
}

TEST(AttendTiles, AnyOrderOfLanesGivesTheSameBits) {
    Random random(2);
    for (int round = 0; round < 12; ++round) {
        auto a = make_tiles(random, halves[static_cast<std::size_t>(round % 2)], 8 * (1 + random.below(12)));
        a.expect_same_bits_in_any_order(random, true);
    }
}

TEST(AttendTiles, InfinitiesAndNaNStayWithThoseWhoSeeThem) {
    Random random(3);
    for (int round = 0; round < 60; round += static_cast<int>(shape_step)) {
        const Element element = halves[static_cast<std::size_t>(round % 2)];
        auto a = make_tiles(random, element, 8 * (1 + random.below(12)));
        const auto strange = [&] {
            const float values[] = {-infinity, infinity, nan};
            return values[random.below(3)];
        };
        a.bias.resize(static_cast<std::size_t>(a.rows), 0);
        const auto some_row = a.seen(random.below(a.queries)).back();
        switch (round % 6) {
        case 0: // rows that weigh nothing
            for (float& value : a.bias) {
                value = random.one_of(3) ? -infinity : random.normal();
            }
            break;
        case 1: // nothing weighs anything
            std::fill(a.bias.begin(), a.bias.end(), -infinity);
            break;
        case 2:
            a.bias[static_cast<std::size_t>(some_row)] = strange();
            break;
        case 3: // a key, without the rest of its row
            a.k.set(some_row * a.k_stride + random.below(a.head_size), strange());
            break;
        case 4: // a value: others of its tile do not see it
            a.v.set(some_row * a.v_stride + random.below(a.head_size), strange());
            break;
        default: // one row far above the others, as far as fp32 goes
            std::fill(a.bias.begin(), a.bias.end(), -1e35F);
            a.bias[static_cast<std::size_t>(some_row)] = 1e38F;
            break;
        }
        host_cuda::set_order(orders[static_cast<std::size_t>(round % 3)], random.seed());
        ASSERT_STREQ(a.run(1, true), nullptr);
        EXPECT_LE(a.worst(unit_of(element)), 2e-6) << "round " << round;
    }
}

TEST(AttendTiles, GroupsThatDoNotFillABlock) {
    Random random(4);
    for (const std::int64_t group : {3, 5, 7, 12, 33, 64}) {
        auto a = make_attention(random, Element::bf16, 24, 9, true);
        a.query_heads = group * a.kv_heads;
        lay_out(random, a, a.queries, a.query_heads, a.q_stride, a.q_head_stride, a.q);
        for (std::int64_t query = 0; query < a.queries; ++query) {
            fill_rows(random, a, a.query_heads, query, a.q_stride, a.q_head_stride, a.q);
        }
        ASSERT_STREQ(a.run(1, true), nullptr);
        EXPECT_LE(a.worst(unit_of(a.element)), 2e-6) << group;
    }
}

TEST(AttendTiles, TheLastRowsThatRangesCanName) {
    Random random(5);
    make_attention(random, Element::f16, 8, 6, true).expect_same_bits_at_the_last_rows(true);
}

TEST(AttendTiles, RefusesWhatDoesNotFit) {
    Random random(6);
    auto a = make_attention(random, Element::f32, 8, 9, true);
    const char* const refused =
        "tiles take heads of 8, 16 .. 128 elements in half precision, at most 64 a K/V head";
    EXPECT_STREQ(a.run(1, true), refused);
    a = make_attention(random, Element::f16, 8, 9, true);
    for (const std::int64_t size : {0, 12, 136}) {
        a.head_size = size;
        EXPECT_STREQ(a.run(1, true), refused) << size;
    }
    a.head_size = 8;
    a.query_heads = 65 * a.kv_heads;
    EXPECT_STREQ(a.run(1, true), refused);
    a.queries = 0;
    EXPECT_STREQ(a.run(1, true), nullptr);
}

} // namespace ponderscope::kernels
