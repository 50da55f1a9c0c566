// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/byte_alignment.h"

#include "core/base/error.h"
#include "core/base/splitmix.h"
#include "core/trace/writer.h"
#include "tests/core/trace/sample.h"
#include "tests/support/test_data.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <numeric>

namespace ponderscope {
namespace {

using Spans = std::vector<ScoredSpan>;

TEST(AlignByBytes, MeetsAtCommonBoundaries) {
    const Spans a{{0, 2, 1, 3}, {2, 5, 2, 1}, {5, 6, 4, 5}, {6, 9, 8, 2}};
    const Spans b{{0, 5, 10}, {5, 7, 20}, {7, 9, 40}};
    const std::vector<AlignedSegment> segments = align_by_bytes(a, b);
    ASSERT_EQ(segments.size(), 2U);
    EXPECT_EQ(segments[0].end, 5U);
    EXPECT_EQ(segments[0].nll_a, 3);
    EXPECT_EQ(segments[0].nll_b, 10);
    EXPECT_FALSE(segments[0].follows);
    EXPECT_EQ(segments[1].end, 9U);
    EXPECT_EQ(segments[1].nll_a, 12);
    EXPECT_EQ(segments[1].nll_b, 60);
    EXPECT_EQ(segments[0].steps_a, 2); // means of A's tokens
    EXPECT_EQ(segments[1].steps_a, 3.5);
    EXPECT_TRUE(segments[1].follows);
}

TEST(AlignByBytes, LeavesOutWhatOneDidNotScore) {
    // A starts at byte 2 and has a hole from 6 to 8.
    const Spans a{{2, 4, 1}, {4, 6, 1}, {8, 10, 1}};
    const Spans b{{0, 2, 1}, {2, 4, 1}, {4, 7, 1}, {7, 8, 1}, {8, 10, 1}};
    const std::vector<AlignedSegment> segments = align_by_bytes(a, b);
    ASSERT_EQ(segments.size(), 2U);
    EXPECT_EQ(segments[0].begin, 2U);
    EXPECT_EQ(segments[0].end, 4U);
    EXPECT_EQ(segments[1].begin, 8U);
    EXPECT_FALSE(segments[1].follows);
    EXPECT_TRUE(align_by_bytes(a, {}).empty());
    EXPECT_TRUE(align_by_bytes(Spans{{0, 5, 1}}, Spans{{0, 4, 1}}).empty());
    EXPECT_TRUE(align_by_bytes(Spans{{0, 5, 1}}, Spans{{1, 5, 1}}).empty());
}

TEST(AlignByBytes, TokensWithoutBytesCostWhatTheyCost) {
    const Spans a{{0, 2, 1}, {2, 2, 5}, {2, 4, 1}};
    const Spans b{{0, 2, 1}, {2, 4, 1}, {4, 4, 7}};
    const std::vector<AlignedSegment> segments = align_by_bytes(a, b);
    ASSERT_EQ(segments.size(), 2U);
    EXPECT_EQ(segments[0].nll_a, 6);
    EXPECT_EQ(segments[1].nll_b, 8);
}

TEST(AlignByBytes, LosesNothingOfTwoWholeTokenizations) {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        Spans sides[2];
        double sums[2] = {0, 0};
        for (std::uint64_t side = 0; side < 2; ++side) {
            std::uint64_t at = 0;
            for (std::uint64_t i = 0; at < 100; ++i) {
                const std::uint64_t end =
                    std::min<std::uint64_t>(100, at + 1 + bounded(splitmix64(seed * 2 + side, i), 6));
                sides[side].push_back({at, end, token_draw(seed, side, i)});
                sums[side] += sides[side].back().nll;
                at = end;
            }
        }
        double a = 0;
        double b = 0;
        std::uint64_t end = 0;
        for (const AlignedSegment& segment : align_by_bytes(sides[0], sides[1])) {
            EXPECT_EQ(segment.begin, end);
            end = segment.end;
            a += segment.nll_a;
            b += segment.nll_b;
        }
        EXPECT_EQ(end, 100U);
        EXPECT_NEAR(a, sums[0], 1e-12);
        EXPECT_NEAR(b, sums[1], 1e-12);
    }
}

/// Tokens of \p width bytes over the sample text.
void write_run(TraceWriter& writer, const std::string& name, std::uint64_t width, bool complete) {
    const std::string text = testing::sample_text(200);
    RunInfo run = testing::sample_run(name);
    run.tokenizer_digest = name;
    writer.begin_run(run, {});
    writer.begin_sequence("s", text);
    TokenColumns tokens;
    for (std::uint64_t at = 0; at < text.size(); at += width) {
        const bool last = at + width >= text.size();
        tokens.id.push_back(1);
        tokens.begin.push_back(at);
        tokens.end.push_back(std::min<std::uint64_t>(text.size(), at + width));
        tokens.nll.push_back(
            last ? std::numeric_limits<float>::quiet_NaN()
                 : static_cast<float>(std::min<std::uint64_t>(text.size() - at - width, width)));
        tokens.entropy.push_back(1);
        tokens.max_probability.push_back(0.5F);
        tokens.rank.push_back(last ? 0 : 1);
        tokens.steps.push_back(0);
        tokens.flops.push_back(1);
    }
    writer.append(tokens, {});
    writer.end_sequence();
    if (complete) {
        writer.end_run(1);
    } else {
        writer.leave_run();
    }
}

TEST(CompareByBytes, RunsOfDifferentTokenizers) {
    const testing::TemporaryFolder folder;
    {
        TraceWriter writer(folder / "t.ponder");
        write_run(writer, "two", 2, true);
        write_run(writer, "three", 3, false);
        writer.finish();
    }
    const TraceReader trace = TraceReader::open(folder / "t.ponder");
    const RunInfo two = find_run(trace, "two");
    const RunInfo three = find_run(trace, "three");
    const PairedSample sample = pair_runs_by_bytes(trace, two, trace, three);
    BootstrapOptions options;
    options.replicates = 200;
    options.block = 8;
    const PairedComparison comparison = compare_paired(sample, options);
    // A nat a byte in both, on stretches of six bytes.
    EXPECT_NEAR(comparison.bits_per_byte_a.value, 1 / std::numbers::ln2, 1e-9);
    EXPECT_NEAR(comparison.bits_per_byte_b.value, 1 / std::numbers::ln2, 1e-9);
    EXPECT_NEAR(comparison.bits_per_byte_difference.value, 0, 1e-12);
    EXPECT_GT(std::accumulate(sample.bytes.begin(), sample.bytes.end(), 0.0),
              static_cast<double>(comparison.tokens - 1) * 6);
    EXPECT_EQ(sample.steps_a, std::vector<double>(sample.a.size(), 0.0));
    std::string said;
    for (const std::string& notice : comparison.notices) {
        said += notice + "\n";
    }
    EXPECT_NE(said.find("different tokenizers"), std::string::npos) << said;
    EXPECT_NE(said.find("Run three is partial"), std::string::npos) << said;
    EXPECT_NE(said.find("left out"), std::string::npos) << said;

    RunInfo other = three;
    other.text_digest = "another";
    EXPECT_THROW(pair_runs_by_bytes(trace, two, trace, other), InputError);
    other = three;
    other.scored_bytes = 0;
    EXPECT_THROW(pair_runs_by_bytes(trace, two, trace, other), InputError);
}

} // namespace
} // namespace ponderscope
