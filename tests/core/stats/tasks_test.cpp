// SPDX-License-Identifier: GPL-3.0-or-later
// Tasks of a recorded run: which option is chosen, by which step, what it cost, and two runs paired.
#include "core/stats/tasks.h"

#include "core/base/error.h"
#include "core/trace/writer.h"
#include "tests/support/packed.h"
#include "tests/support/test_data.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace ponderscope {
namespace {

/// An option of two tokens behind a context of three, a byte each: NLL of its tokens at steps 0 and 1; it ran
/// `ran` steps.
struct Option {
    const char* label;
    std::vector<std::vector<float>> nll;
    std::int32_t ran = 1;
    std::string text = " y";
};

class Tasks : public ::testing::Test {
protected:
    RunInfo write(const std::string& name, const std::vector<std::vector<Option>>& documents) {
        TraceWriter writer(trace_);
        RunInfo info;
        info.name = name;
        info.record_level = "steps";
        info.max_steps = 1;
        info.vocab_size = 256;
        info.context = 8;
        info.stride = 8;
        SignalInfo nll{signal::nll, {"token", "step"}, "nats", "NLL by step", ""};
        SignalInfo rank{signal::rank, {"token", "step"}, "", "Rank by step", ""};
        rank.dtype = DType::i32;
        rank.of_target = true;
        writer.begin_run(info, {nll, rank});
        for (std::size_t d = 0; d < documents.size(); ++d) {
            for (const Option& option : documents[d]) {
                const std::string text = "abc" + option.text;
                writer.begin_sequence("", text, "letters/" + std::to_string(d));
                writer.put_labels({{0, 3, "context"}, {3, text.size(), option.label}});
                TokenColumns tokens;
                std::vector<float> by_step;
                std::vector<std::int32_t> ranks;
                for (std::size_t t = 0; t < text.size(); ++t) {
                    const bool last = t + 1 == text.size();
                    const bool asked = t >= 2 && !last;
                    tokens.id.push_back(text[t]);
                    tokens.begin.push_back(t);
                    tokens.end.push_back(t + 1);
                    tokens.steps.push_back(asked ? option.ran : 0);
                    tokens.flops.push_back(10);
                    tokens.entropy.push_back(1);
                    tokens.max_probability.push_back(0.5F);
                    for (std::int32_t k = 0; k < 2; ++k) {
                        const bool ran = k <= tokens.steps.back();
                        const float value = asked ? option.nll[t - 2][static_cast<std::size_t>(k)] : 3.0F;
                        by_step.push_back(ran && !last ? value : NAN);
                        ranks.push_back(!ran ? did_not_run : last ? 0 : value < 1 ? 1 : 2);
                    }
                    const std::size_t exit = 2 * t + static_cast<std::size_t>(tokens.steps.back());
                    tokens.nll.push_back(by_step[exit]);
                    tokens.rank.push_back(ranks[exit]);
                }
                const std::vector<std::int64_t> shape{static_cast<std::int64_t>(text.size()), 2};
                writer.append(std::move(tokens), {{signal::nll, testing::packed(DType::f32, shape, by_step)},
                                                  {signal::rank, testing::packed(DType::i32, shape, ranks)}});
                writer.end_sequence();
            }
        }
        writer.end_run(1);
        writer.finish();
        return find_run(TraceReader::open(trace_), name);
    }
    std::vector<TaskSample> read(const RunInfo& run) const {
        return read_tasks(TraceReader::open(trace_), run);
    }

    testing::TemporaryFolder folder_;
    std::filesystem::path trace_ = folder_ / "a.ponder";
};

TEST_F(Tasks, AccuracyStepsAndFlips) {
    const RunInfo run =
        write("a", {// Wrong at step 0, right at step 1.
                    {{"right 0", {{2, 0.5}, {2, 0.5}}}, {"wrong 1", {{1, 1}, {1, 1}}}},
                    // Right at step 0, wrong at step 1.
                    {{"wrong 0", {{2, 0.1}, {2, 0.1}}}, {"right 1", {{1, 1}, {1, 1}}}},
                    // Right by sum, wrong by length; the second option stopped at step 0.
                    {{"right 0", {{1, 1}, {1, 1}}}, {"wrong 1", {{2, 9}, {0.5, 9}, {0.1F, 9}}, 0, " yz"}}});
    const std::vector<TaskSample> samples = read(run);
    ASSERT_EQ(samples.size(), 1U);
    EXPECT_EQ(samples[0].task, "letters");
    ASSERT_EQ(samples[0].documents.size(), 3U);
    EXPECT_EQ(samples[0].max_steps, 1);
    const TaskReport report = report_task(samples[0]);
    EXPECT_NEAR(report.accuracy.value, 2.0 / 3, 1e-12);
    EXPECT_NEAR(report.accuracy_norm.value, 1.0 / 3, 1e-12);
    ASSERT_EQ(report.accuracy_by_step.size(), 2U);
    EXPECT_NEAR(report.accuracy_by_step[0].value, 2.0 / 3, 1e-12);
    EXPECT_NEAR(report.accuracy_by_step[1].value, 2.0 / 3, 1e-12);
    EXPECT_EQ(report.flips[1].became_right, std::vector<std::size_t>{0});
    EXPECT_EQ(report.flips[1].became_wrong, std::vector<std::size_t>{1});
    EXPECT_EQ(report.context_steps.value, 0);
    EXPECT_EQ(report.right_steps.value, 1);
    EXPECT_NEAR(report.wrong_steps.value, 4.0 / 7, 1e-12);       // 2 + 2 of tokens that ran, 3 that did not
    EXPECT_NEAR(report.flops.value, (60 + 60 + 70) / 3.0, 1e-9); // the context once
    EXPECT_NEAR(report.perplexity.value, std::exp((0.5 + 0.5 + 1 + 1 + 1 + 1) / 6), 1e-6);
    EXPECT_LE(report.accuracy.low, report.accuracy.value);
}

TEST_F(Tasks, ASingleOptionIsRightWhereGreedyDecodingSaysIt) {
    const TaskReport report = report_task(
        read(write("a", {{{"right 0", {{2, 0.5}, {0.5, 0.5}}}}, {{"right 0", {{2, 2}, {0.5, 0.5}}}}})).at(0));
    EXPECT_EQ(report.accuracy.value, 0.5);
    EXPECT_EQ(report.accuracy_by_step.at(0).value, 0);
    EXPECT_TRUE(std::isnan(report.accuracy_norm.value));
    EXPECT_TRUE(std::isnan(report.wrong_steps.value));
}

TEST_F(Tasks, TwoRunsArePairedByDocument) {
    const std::vector<Option> right{{"right 0", {{1, 1}, {1, 1}}}, {"wrong 1", {{2, 2}, {2, 2}}}};
    const std::vector<Option> wrong{{"right 0", {{3, 3}, {3, 3}}}, {"wrong 1", {{2, 2}, {2, 2}}}};
    const TaskSample a = read(write("a", {right, right, wrong, wrong, right})).at(0);
    const TaskSample b = read(write("b", {right, wrong, right, wrong, wrong})).at(0);
    const TaskComparison pair = compare_task(a, b);
    EXPECT_EQ(pair.flips.tokens, 5);
    EXPECT_EQ(pair.flips.both_right, 1);
    EXPECT_EQ(pair.flips.both_wrong, 1);
    EXPECT_EQ(pair.only_a, (std::vector<std::size_t>{1, 4}));
    EXPECT_EQ(pair.only_b, std::vector<std::size_t>{2});
    EXPECT_NEAR(pair.flips.difference.value, 0.2, 1e-12);
    EXPECT_EQ(pair.flips.mcnemar, mcnemar_p(2, 1));
}

TEST_F(Tasks, WhatIsNoTaskIsLeftOut) {
    EXPECT_TRUE(read(write("a", {{{"easy", {{1, 1}, {1, 1}}}}})).empty());
    const RunInfo one = write("b", {{{"right 0", {{1, 1}, {1, 1}}}}});
    EXPECT_THROW(report_task(read(one).at(0)), InputError); // no interval over one document
}

} // namespace
} // namespace ponderscope
