// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/windows.h"

#include "core/base/error.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ponderscope {
namespace {

/// methods.md section 11, read literally: for every token the first window that holds it and its successor,
/// or -1.
std::vector<std::int64_t> scoring_window_by_definition(std::int64_t tokens, std::int64_t context,
                                                       std::int64_t stride) {
    std::vector<std::int64_t> window(static_cast<std::size_t>(tokens), -1);
    for (std::int64_t t = 0; t + 1 < tokens; ++t) {
        for (std::int64_t w = 0; w * stride <= t; ++w) {
            if (t + 1 < w * stride + context) {
                window[static_cast<std::size_t>(t)] = w;
                break;
            }
        }
    }
    return window;
}

TEST(Windows, EveryTokenIsReadOutOnceAndScoredInTheFirstWindowThatHoldsThePair) {
    for (std::int64_t tokens = 1; tokens <= 40; ++tokens) {
        for (std::int64_t context = 1; context <= 14; ++context) {
            for (std::int64_t stride = 1; stride <= context; ++stride) {
                const std::vector<std::int64_t> expected =
                    scoring_window_by_definition(tokens, context, stride);
                std::vector<int> read(static_cast<std::size_t>(tokens), 0);
                std::int64_t reported = 0;
                for (const WindowSpan& window : plan_windows(tokens, context, stride)) {
                    ASSERT_EQ(window.begin % stride, 0);
                    ASSERT_LE(window.end - window.begin, context);
                    ASSERT_LE(window.begin, window.report_begin);
                    ASSERT_LE(window.report_end, window.end);
                    ASSERT_EQ(window.report_begin, reported) << "read-outs must come in order, without gaps";
                    reported = window.report_end;
                    for (std::int64_t t = window.report_begin; t < window.report_end; ++t) {
                        ++read[static_cast<std::size_t>(t)];
                        const bool scored = t + 1 < window.end;
                        const std::int64_t wanted = expected[static_cast<std::size_t>(t)];
                        ASSERT_EQ(scored, wanted >= 0)
                            << "token " << t << " of " << tokens << ", C " << context << ", S " << stride;
                        if (scored) {
                            ASSERT_EQ(window.begin / stride, wanted)
                                << "token " << t << ", C " << context << ", S " << stride;
                        }
                    }
                }
                ASSERT_TRUE(std::all_of(read.begin(), read.end(), [](int times) { return times == 1; }))
                    << tokens << " tokens, C " << context << ", S " << stride;
            }
        }
    }
}

TEST(Windows, ShortTextIsOneWindow) {
    const std::vector<WindowSpan> windows = plan_windows(5, 100, 50);
    ASSERT_EQ(windows.size(), 1U);
    EXPECT_EQ(windows[0].end, 5);
    EXPECT_EQ(windows[0].report_end, 5);
}

TEST(Windows, RefusesWhatMakesNoSense) {
    EXPECT_THROW(plan_windows(10, 0, 1), InputError);
    EXPECT_THROW(plan_windows(10, 4, 0), InputError);
    EXPECT_THROW(plan_windows(10, 4, 5), InputError);
    EXPECT_TRUE(plan_windows(0, 4, 2).empty());
}

} // namespace
} // namespace ponderscope
