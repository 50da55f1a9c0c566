// SPDX-License-Identifier: GPL-3.0-or-later
// Both kernels of attention: a query a warp (ranges), and blocks of queries on the matrix unit (tiles).
#include "tests/core/kernels/cuda/attend_cases.h"

#include <gtest/gtest.h>

#include <cstdio>

namespace ponderscope::kernels {
namespace {

using namespace testing;

struct Form {
    const char* name;
    bool tiles;
    std::vector<Element> dtypes;
    std::int64_t head_chunks; ///< the largest head has eight times as many elements
    std::int64_t rounds;

    /// Any queries for ranges; for tiles more of them, most of which see what their neighbours see.
    [[nodiscard]] Attention make(Random& random, Element element, std::int64_t head_size) const {
        const std::int64_t queries = random.one_of(3) ? 60 + random.below(90) : 1 + random.below(70);
        return make_attention(random, element, head_size, tiles ? queries : 0, tiles);
    }
    [[nodiscard]] Attention any(Random& random, std::int64_t round) const {
        return make(random, dtypes[static_cast<std::size_t>(round) % dtypes.size()],
                    8 * (1 + random.below(head_chunks)));
    }
    /// Tiles round a weight to the dtype, half a unit in the last place of a number around 1.
    [[nodiscard]] double unit(Element element) const {
        return !tiles ? 0 : element == Element::f16 ? 0x1p-11 : 0x1p-8;
    }
};

class AttendKernels : public ::testing::TestWithParam<Form> {};

TEST_P(AttendKernels, EveryHeadSizeAndDtype) {
    const Form& form = GetParam();
    Random random(1);
    std::size_t shapes = 0;
    for (const Element element : form.dtypes) {
        double worst = 0;
        for (std::int64_t round = 0; round < form.rounds; round += shape_step) {
            const std::int64_t head_size = 8 * (1 + round % form.head_chunks);
            auto a = form.make(random, element, head_size);
            host_cuda::set_order(orders[shapes++ % 3], random.seed());
            ASSERT_STREQ(a.run(1, form.tiles), nullptr);
            const double here = a.worst(form.unit(element));
            worst = std::max(worst, here);
            ASSERT_LE(here, 2e-6) << name_of(element) << ", head size " << head_size << ", " << a.query_heads
                                  << " over " << a.kv_heads << " heads, " << a.queries << " queries, "
                                  << a.rows << " rows, window " << a.window;
        }
        std::printf("%s: largest error beyond rounding %.1e\n", name_of(element), worst);
    }
}

TEST_P(AttendKernels, AnyOrderOfLanesGivesTheSameBits) {
    Random random(2);
    for (std::int64_t round = 0; round < GetParam().rounds / 6; ++round) {
        GetParam().any(random, round).expect_same_bits_in_any_order(random, GetParam().tiles);
    }
}

TEST_P(AttendKernels, InfinitiesAndNaNStayWithThoseWhoSeeThem) {
    const Form& form = GetParam();
    Random random(3);
    for (std::int64_t round = 0; round < form.rounds / 2; round += shape_step) {
        auto a = form.any(random, round / 6);
        const float values[] = {-infinity, infinity, nan};
        const float strange = values[random.below(3)];
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
            a.bias[static_cast<std::size_t>(some_row)] = strange;
            break;
        case 3: // a key, without the rest of its row
            a.k.set(some_row * a.k_stride + random.below(a.head_size), strange);
            break;
        case 4: // a value: others of its tile do not see it
            a.v.set(some_row * a.v_stride + random.below(a.head_size), strange);
            break;
        default: // one row far above the others, as far as fp32 goes
            std::fill(a.bias.begin(), a.bias.end(), -1e35F);
            a.bias[static_cast<std::size_t>(some_row)] = 1e38F;
            break;
        }
        host_cuda::set_order(orders[static_cast<std::size_t>(random.below(3))], random.seed());
        ASSERT_STREQ(a.run(1, form.tiles), nullptr);
        EXPECT_LE(a.worst(form.unit(a.element)), 2e-6) << "round " << round;
    }
}

TEST_P(AttendKernels, TheLastRowsThatRangesCanName) {
    Random random(4);
    make_attention(random, Element::f16, 8, 6, GetParam().tiles)
        .expect_same_bits_at_the_last_rows(GetParam().tiles);
}

INSTANTIATE_TEST_SUITE_P(Cuda, AttendKernels,
                         ::testing::Values(Form{"ranges", false, {elements.begin(), elements.end()}, 32, 320},
                                           Form{"tiles", true, {Element::f16, Element::bf16}, 16, 96}),
                         [](const auto& form) { return std::string(form.param.name); });

TEST(AttendRanges, WarpsThatShareAQueryGiveTheSameBits) {
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

TEST(AttendRanges, RefusesWhatDoesNotFit) {
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
        EXPECT_LE(a.worst(0x1p-8), 2e-6) << group;
    }
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

} // namespace

} // namespace ponderscope::kernels
