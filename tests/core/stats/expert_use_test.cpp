// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/expert_use.h"

#include "core/base/error.h"
#include "tests/support/expert_trace.h"
#include "tests/support/test_data.h"

#include <gtest/gtest.h>

namespace ponderscope {
namespace {

class ExpertUseOf : public ::testing::Test {
protected:
    ExpertUseOf() {
        // Layer 0: {0,1} {1,0} {2,3} {2,3}; layer 2: {0,3} at every token.
        testing::write_expert_run(path_, "a", 4, {{0, 1, 0, 3}, {1, 0, 3, 0}, {2, 3, 0, 3}, {2, 3, 0, 3}});
        // In layer 0 one of two experts is the same at tokens 0 and 2, none at 1, both at 3.
        testing::write_expert_run(path_, "b", 4, {{0, 2, 3, 0}, {2, 3, 0, 3}, {3, 0, 0, 3}, {3, 2, 0, 3}});
        testing::write_expert_run(path_, "of more", 5,
                                  {{0, 4, 0, 3}, {1, 0, 3, 0}, {2, 3, 0, 3}, {2, 3, 0, 3}});
        testing::write_expert_run(path_, "shorter", 4, {{0, 1, 0, 3}, {1, 0, 3, 0}});
    }
    testing::TemporaryFolder folder_;
    std::filesystem::path path_ = folder_ / "experts.ponder";
};

TEST_F(ExpertUseOf, ARunIsCounted) {
    const TraceReader reader = TraceReader::open(path_);
    const std::optional<ExpertUse> use = expert_use(reader, find_run(reader, "a"));
    ASSERT_TRUE(use);
    EXPECT_EQ(use->experts, 4);
    EXPECT_EQ(use->chosen, 2);
    ASSERT_EQ(use->layers.size(), 2U);
    EXPECT_EQ(use->layers[0].layer, "0");
    EXPECT_EQ(use->layers[1].layer, "2");
    EXPECT_EQ(use->layers[0].load, (std::vector<std::int64_t>{2, 2, 2, 2}));
    EXPECT_EQ(use->layers[1].load, (std::vector<std::int64_t>{4, 0, 0, 4}));
    EXPECT_DOUBLE_EQ(use->layers[1].share(0), 1.0);
    EXPECT_EQ(use->layers[0].pairs, 3);
    EXPECT_EQ(use->layers[0].repeats, 2); // the order of the choice does not count
    EXPECT_DOUBLE_EQ(use->layers[1].repeat_share(), 1.0);
}

TEST_F(ExpertUseOf, TwoRunsAreCompared) {
    const TraceReader reader = TraceReader::open(path_);
    const RunInfo a = find_run(reader, "a");
    const std::vector<ExpertAgreement> layers = expert_agreement(reader, a, reader, find_run(reader, "b"));
    ASSERT_EQ(layers.size(), 2U);
    EXPECT_EQ(layers[0].tokens, 4);
    EXPECT_DOUBLE_EQ(layers[0].common, (0.5 + 0.0 + 0.5 + 1.0) / 4);
    EXPECT_DOUBLE_EQ(layers[0].same, 0.25);
    EXPECT_DOUBLE_EQ(layers[1].same, 1.0);
    for (const char* other : {"of more", "shorter"}) {
        EXPECT_THROW((void)expert_agreement(reader, a, reader, find_run(reader, other)), InputError) << other;
    }
}

} // namespace
} // namespace ponderscope
