// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/splitmix.h"

#include <gtest/gtest.h>

namespace ponderscope {
namespace {

__extension__ using Wide = unsigned __int128;

// The first output for seed 0 is the one that every description of the generator prints; the draws were
// computed with exact integers.
TEST(SplitMix, GivesTheKnownValues) {
    EXPECT_EQ(splitmix64(0, 0), 0xE220A8397B1DCDAFULL);
    EXPECT_DOUBLE_EQ(token_draw(20261122, 0, 0), 0.9654546488515937);
    EXPECT_DOUBLE_EQ(token_draw(20261122, 0, 1), 0.0796241073455638);
    EXPECT_DOUBLE_EQ(token_draw(20261122, 1, 0), 0.5038924485513957);
}

TEST(SplitMix, UnitIntervalHasNoOne) {
    EXPECT_EQ(unit_interval(0), 0.0);
    EXPECT_LT(unit_interval(~std::uint64_t{0}), 1.0);
    EXPECT_EQ(unit_interval(~std::uint64_t{0}), 1.0 - 0x1p-53);
}

TEST(SplitMix, BoundedIsTheHighWordOfTheProduct) {
    for (std::uint64_t n = 0; n < 2000; ++n) {
        const std::uint64_t bits = splitmix64(7, n);
        const std::uint64_t bound = 1 + (splitmix64(8, n) >> (n % 64));
        const auto product = static_cast<Wide>(bits) * bound;
        ASSERT_EQ(bounded(bits, bound), static_cast<std::uint64_t>(product >> 64U));
    }
}

} // namespace
} // namespace ponderscope
