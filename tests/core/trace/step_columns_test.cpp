// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trace/tools/step_columns.h"

#include "core/base/error.h"
#include "tests/core/trace/sample.h"
#include "tests/core/trace/trace_test.h"
#include "tests/support/errors.h"
#include "tests/support/packed.h"

#include <cmath>
#include <gtest/gtest.h>

namespace ponderscope {
namespace {

TEST(StepColumns, AreReadAsTyped) {
    const StepColumn one = StepColumn::parse("entropy@2");
    EXPECT_EQ(one.of.signal, "entropy");
    EXPECT_EQ(one.of.step, 2);
    EXPECT_FALSE(one.minus);
    const StepColumn gain = StepColumn::parse("nll@0-nll@last");
    EXPECT_EQ(gain.of.step, 0);
    ASSERT_TRUE(gain.minus);
    EXPECT_EQ(gain.minus->step, StepColumn::last_step);
    EXPECT_FALSE(StepColumn::parse("answer_flips").of.step);
    for (const char* text : {"", "@0", "nll@", "nll@x", "nll@-1", "nll@1.5", "nll@0-", "-nll@0", "nll@0-a-b",
                             "N L L@0", "nll@99999999999999999999"}) {
        EXPECT_THROW((void)StepColumn::parse(text), InputError) << text;
    }
}

class Derived : public testing::TraceTest {
protected:
    void SetUp() override {
        testing::add_sample_run(path, "one", 1, {40, 30}, 16);
        testing::add_sample_run(path, "two", 2, {40, 30}, 16);
        testing::add_sample_run(path, "short", 2, {40}, 16);
    }
};

TEST_F(Derived, StandAtTheTokenThatWasPredicted) {
    const TraceReader trace = TraceReader::open(path);
    const RunInfo run = find_run(trace, "one");
    const Annotation first = annotation_by_step(trace, run, "x", StepColumn::parse("nll@0"));
    const Annotation gain = annotation_by_step(trace, run, "x", StepColumn::parse("nll@0-nll@1"));
    const Annotation last = annotation_by_step(trace, run, "x", StepColumn::parse("nll@last"));
    ASSERT_EQ(first.values.size(), 2U);
    int compared = 0;
    for (std::int64_t s = 0; s < 2; ++s) {
        const std::optional<SignalChunk> chunk = trace.signal(run.id, s, signal::nll);
        ASSERT_TRUE(chunk);
        const std::vector<float> all = to_floats(*chunk);
        const auto steps = static_cast<std::size_t>(chunk->shape[1]);
        const auto tokens = static_cast<std::size_t>(chunk->shape[0]);
        const auto& values = first.values[static_cast<std::size_t>(s)];
        ASSERT_EQ(values.size(), tokens);
        EXPECT_TRUE(std::isnan(values[0]));
        for (std::size_t row = 0; row + 1 < tokens; ++row) {
            const auto at = [&](std::size_t step) { return static_cast<double>(all[row * steps + step]); };
            const double zero = at(0);
            if (std::isnan(zero)) {
                EXPECT_TRUE(std::isnan(values[row + 1]));
                continue;
            }
            EXPECT_EQ(values[row + 1], zero);
            std::size_t ran = steps - 1;
            while (std::isnan(at(ran))) {
                --ran;
            }
            EXPECT_EQ(last.values[static_cast<std::size_t>(s)][row + 1], at(ran));
            const double paid = gain.values[static_cast<std::size_t>(s)][row + 1];
            if (std::isnan(at(1))) {
                EXPECT_TRUE(std::isnan(paid)); // a step that did not run gained nothing that is known
            } else {
                EXPECT_EQ(paid, zero - at(1));
                ++compared;
            }
        }
    }
    EXPECT_GT(compared, 20);
    // A step that no token has.
    const Annotation far = annotation_by_step(trace, run, "x", StepColumn::parse("nll@77"));
    EXPECT_TRUE(std::isnan(far.values[0][5]));
}

TEST_F(Derived, TheLastStepIsTheOneThatIsReadOutAndNoRankIsNoNumber) {
    // All steps ran and have numbers; the column of steps says where a token is read out.
    const std::filesystem::path full = folder / "full.ponder";
    TokenColumns tokens;
    tokens.id = {1, 2, 3, 4};
    tokens.nll = tokens.entropy = tokens.max_probability = {1, 1, 1, 1};
    tokens.rank = {5, 5, 5, 0};
    tokens.steps = {2, 0, 1, 2};
    tokens.flops = {1, 1, 1, 1};
    const std::vector<float> nll{0, 1, 2, 10, 11, 12, 20, 21, 22, 30, 31, 32};
    const std::vector<std::int32_t> rank{5, 4, 3, 0, 0, 0, 7, 7, 7, 0, 0, 0};
    testing::write_trace(full, [&](TraceWriter& writer) {
        RunInfo info = testing::sample_run("full");
        info.max_steps = 2;
        writer.begin_run(info, testing::sample_signals());
        testing::add_sequence(writer, "", "", tokens,
                              {{signal::nll, testing::packed(DType::f32, {4, 3}, nll)},
                               {signal::rank, testing::packed(DType::i32, {4, 3}, rank)}});
        writer.end_run(1);
    });
    const TraceReader trace = TraceReader::open(full);
    const RunInfo run = find_run(trace, "full");
    const auto column = [&](const char* text) {
        return annotation_by_step(trace, run, "x", StepColumn::parse(text)).values.front();
    };
    const std::vector<double> last = column("nll@last");
    EXPECT_EQ(std::vector<double>(last.begin() + 1, last.end()), (std::vector<double>{2, 10, 21}));
    const std::vector<double> ranks = column("rank@0");
    EXPECT_EQ(ranks[1], 5);
    EXPECT_TRUE(std::isnan(ranks[2])) << "nothing to predict";
    EXPECT_EQ(ranks[3], 7);
}

TEST_F(Derived, ASignalThatIsNotThereIsSaid) {
    const TraceReader trace = TraceReader::open(path);
    const RunInfo run = find_run(trace, "one");
    for (const char* text : {"nothing@0", "nll", "candidate_ids@0", "answer_flips@0"}) {
        const std::string refusal =
            testing::error_of([&] { (void)annotation_by_step(trace, run, "x", StepColumn::parse(text)); });
        EXPECT_TRUE(refusal.starts_with(path.string())) << text << ": " << refusal;
    }
}

TEST_F(Derived, TakesNoMemoryForTokensThatAreNotThere) {
    testing::sql(path, "UPDATE sequence SET tokens = 1000000000000 WHERE run = 1 AND number = 0");
    EXPECT_THROW(
        {
            const TraceReader trace = TraceReader::open(path);
            (void)annotation_by_step(trace, find_run(trace, "one"), "x", StepColumn::parse("nll@0"));
        },
        InputError);
}

TEST_F(Derived, RunsOfOtherLengthsHaveOtherTokens) {
    testing::sql(path, "UPDATE sequence SET tokens = 12 WHERE run = 2 AND number = 1");
    const TraceReader trace = TraceReader::open(path);
    const std::string refusal = testing::error_of(
        [&] { require_same_tokens(trace, find_run(trace, "one"), trace, find_run(trace, "two")); });
    EXPECT_NE(refusal.find(" sequence 1 "), std::string::npos) << refusal;
    EXPECT_TRUE(refusal.ends_with("[trace.signal]")) << refusal;
}

} // namespace
} // namespace ponderscope
