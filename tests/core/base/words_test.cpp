// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/words.h"

#include <gtest/gtest.h>

#include <clocale>
#include <cstdio>
#include <limits>
#include <string>

namespace ponderscope {
namespace {

TEST(Words, NumbersAreRoundedAsPrintfRoundsThem) {
    for (const double value : {0.0, 1.0, 0.05, 2.0 / 3, 1e-5, 123456.0, 1234567.0, -0.805439, 1e300,
                               std::numeric_limits<double>::denorm_min()}) {
        for (const int digits : {1, 4, 6, 7, 17}) {
            char expected[64];
            std::snprintf(expected, sizeof expected, "%.*g", digits, value);
            EXPECT_EQ(rounded(value, digits), expected);
        }
    }
    EXPECT_EQ(rounded(INFINITY), "inf");
    EXPECT_EQ(rounded(-INFINITY), "-inf");
}

TEST(Words, AnotherLocalesCommaDoesNotReachThem) {
    const std::string before = std::setlocale(LC_NUMERIC, nullptr);
    if (std::setlocale(LC_NUMERIC, "de_DE.UTF-8") == nullptr) {
        GTEST_SKIP() << "the locale de_DE.UTF-8 is not installed; the tests of the window run in one";
    }
    EXPECT_EQ(rounded(0.5), "0.5");
    EXPECT_EQ(shortest(0.5), "0.5");
    std::setlocale(LC_NUMERIC, before.c_str());
}

TEST(Words, NumbersInReports) {
    EXPECT_EQ(plain_text::with_separators(-1234567), "-1,234,567");
    EXPECT_EQ(plain_text::fixed(1234.5678, 2), "1234.57");
    EXPECT_EQ(plain_text::human_bytes(8'900'000), "8.9 MB");
    EXPECT_EQ(plain_text::human_bytes(275'000), "275 kB");
    EXPECT_EQ(plain_text::human_bytes(999), "999 B");
}

TEST(Words, WhatBeginsAKnownWordMeansIt) {
    EXPECT_TRUE(did_you_mean("width", {"kind", "width_mm"}).ends_with(" width_mm?"));
    EXPECT_EQ(did_you_mean("wi", {"kind", "width_mm"}), ".") << "two letters begin too many words";
    EXPECT_TRUE(
        did_you_mean("steps_histogrm", {"step_heatmap", "steps_histogram"}).ends_with(" steps_histogram?"));
    EXPECT_EQ(did_you_mean("zebra", {"kind", "width_mm"}), ".");
    EXPECT_TRUE(did_you_mean_or_list("zebra", {"kind", "width_mm"}).ends_with(" kind, width_mm."));
}

} // namespace
} // namespace ponderscope
