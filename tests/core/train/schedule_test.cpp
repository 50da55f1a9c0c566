// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/recipe.h"

#include <gtest/gtest.h>

namespace ponderscope {
namespace {

TEST(Schedule, WarmsUpInEqualSteps) {
    const LearningSchedule schedule{0.8, 4, 13, 0.25};
    EXPECT_DOUBLE_EQ(learning_rate(schedule, 0), 0.2);
    EXPECT_DOUBLE_EQ(learning_rate(schedule, 1), 0.4);
    EXPECT_DOUBLE_EQ(learning_rate(schedule, 2), 0.6000000000000001);
    EXPECT_DOUBLE_EQ(learning_rate(schedule, 3), 0.8);
}

TEST(Schedule, GoesDownHalfACosineToItsLastStep) {
    const LearningSchedule schedule{0.8, 4, 13, 0.25};
    // From step 3 to step 12: a third of the way is cos(60°) = 1/2, so 0.2 + 0.6 * 0.75; half way 0.2 + 0.6 *
    // 0.5 lies between steps.
    EXPECT_NEAR(learning_rate(schedule, 6), 0.65, 1e-15);
    EXPECT_NEAR(learning_rate(schedule, 9), 0.35, 1e-15);
    EXPECT_NEAR(learning_rate(schedule, 12), 0.2, 1e-15);
    EXPECT_NEAR(learning_rate(schedule, 40), 0.2, 1e-15);
    for (std::int64_t step = 4; step < 13; ++step) {
        EXPECT_LT(learning_rate(schedule, step), learning_rate(schedule, step - 1));
    }
}

TEST(Schedule, HasNoWarmUpWhenNoneIsAsked) {
    const LearningSchedule schedule{0.1, 0, 3, 0.0};
    EXPECT_DOUBLE_EQ(learning_rate(schedule, 0), 0.1);
    EXPECT_NEAR(learning_rate(schedule, 1), 0.05, 1e-16);
    EXPECT_NEAR(learning_rate(schedule, 2), 0.0, 1e-16);
    EXPECT_DOUBLE_EQ(learning_rate({0.1, 0, 1, 0.0}, 0), 0.1);
    EXPECT_DOUBLE_EQ(learning_rate({0.1, 1, 1, 0.0}, 0), 0.1);
}

} // namespace
} // namespace ponderscope
