// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace ponderscope {
namespace {

/// The value of a binary16 pattern straight from the definition.
double float16_value(unsigned bits) {
    const double sign = (bits & 0x8000U) != 0 ? -1.0 : 1.0;
    const int exponent = static_cast<int>((bits >> 10U) & 31U);
    const double mantissa = (bits & 0x3FFU) / 1024.0;
    return exponent == 0 ? sign * std::ldexp(mantissa, -14)
                         : sign * std::ldexp(1.0 + mantissa, exponent - 15);
}

TEST(Half, EveryFiniteFloat16WidensExactlyAndComesBack) {
    for (unsigned bits = 0; bits < 0x10000U; ++bits) {
        const float value = float16_to_float(static_cast<std::uint16_t>(bits));
        if ((bits & 0x7C00U) == 0x7C00U) {
            EXPECT_EQ((bits & 0x3FFU) != 0, std::isnan(value)) << bits;
            continue;
        }
        ASSERT_EQ(static_cast<double>(value), float16_value(bits)) << bits;
        ASSERT_EQ(float_to_float16(value), bits);
    }
    EXPECT_EQ(float_to_float16(std::numeric_limits<float>::infinity()), 0x7C00U);
    EXPECT_EQ(float_to_float16(-std::numeric_limits<float>::infinity()), 0xFC00U);
    EXPECT_TRUE(std::isnan(float16_to_float(float_to_float16(std::numeric_limits<float>::quiet_NaN()))));
}

TEST(Half, Float16RoundsToTheNearerNeighbourAndTiesToEven) {
    for (unsigned bits = 0; bits < 0x7BFFU; ++bits) {
        const float low = float16_to_float(static_cast<std::uint16_t>(bits));
        const float high = float16_to_float(static_cast<std::uint16_t>(bits + 1));
        const float middle = (low + high) / 2; // exact in fp32
        const unsigned even = (bits & 1U) == 0 ? bits : bits + 1;
        ASSERT_EQ(float_to_float16(middle), even) << bits;
        ASSERT_EQ(float_to_float16(std::nextafter(middle, 0.0F)), bits) << bits;
        ASSERT_EQ(float_to_float16(std::nextafter(middle, 1e9F)), bits + 1) << bits;
        ASSERT_EQ(float_to_float16(-middle), even | 0x8000U) << bits;
    }
    EXPECT_EQ(float_to_float16(65519.996F), 0x7BFFU);
    EXPECT_EQ(float_to_float16(65520.0F), 0x7C00U);
    EXPECT_EQ(float_to_float16(1e-30F), 0U);
}

TEST(Half, Bfloat16IsTheUpperHalfOfAFloat) {
    EXPECT_EQ(bfloat16_to_float(0x4040U), 3.0F);
    EXPECT_EQ(bfloat16_to_float(0xBF81U), -1.0078125F);
    EXPECT_EQ(bfloat16_to_float(0x0001U), 0x1p-133F);
    EXPECT_EQ(bfloat16_to_float(0xFF80U), -std::numeric_limits<float>::infinity());
    EXPECT_TRUE(std::isnan(bfloat16_to_float(0x7FC0U)));
}

} // namespace
} // namespace ponderscope
