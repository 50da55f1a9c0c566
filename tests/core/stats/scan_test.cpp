// SPDX-License-Identifier: GPL-3.0-or-later
// Statistics of runs that several threads read, from one file and from shards.
#include "core/base/error.h"
#include "core/base/splitmix.h"
#include "core/stats/paired.h"
#include "core/stats/run_study.h"
#include "core/trace/shard.h"
#include "core/trace/writer.h"
#include "tests/core/trace/sample.h"
#include "tests/support/correlation.h"
#include "tests/support/test_data.h"

#include "tests/core/stats/simulated.h"
#include "tests/support/errors.h"
#include <bit>
#include <cmath>

#include <gtest/gtest.h>
#include <limits>
#include <map>

namespace ponderscope {
namespace {

constexpr std::int64_t sequences = 45;
constexpr std::int64_t length = 4700; // in all more than a thread takes at once

TokenColumns tokens_of(std::uint64_t run, std::int64_t sequence) {
    TokenColumns tokens;
    for (std::int64_t t = 0; t < length; ++t) {
        const auto draw = [&](std::uint64_t purpose) {
            return token_draw(purpose, static_cast<std::uint64_t>(sequence), static_cast<std::uint64_t>(t));
        };
        // Some are not scored, here and there, and one sequence not at all.
        const bool scored = t + 1 < length && draw(1) > 0.01 && sequence != 7;
        const double loss =
            -3 * std::log(1 - draw(2)) + draw(10 + run) + 0.1 * static_cast<double>(sequence % 5);
        tokens.id.push_back(static_cast<std::int32_t>(draw(3) * draw(3) * 300));
        tokens.begin.push_back(static_cast<std::uint64_t>(2 * t));
        tokens.end.push_back(static_cast<std::uint64_t>(2 * t + 2));
        tokens.nll.push_back(scored ? static_cast<float>(loss) : std::numeric_limits<float>::quiet_NaN());
        tokens.entropy.push_back(static_cast<float>(loss * draw(4)));
        tokens.rank.push_back(scored ? 1 + static_cast<std::int32_t>(2 * draw(20 + run)) : 0);
        tokens.steps.push_back(static_cast<std::int32_t>(4 * draw(5) * draw(30 + run)));
        tokens.flops.push_back(1);
    }
    tokens.max_probability.assign(tokens.id.size(), std::numeric_limits<float>::quiet_NaN());
    return tokens;
}

/// A trace, or shards of it. Sequences 3 and 4, 13 and 14, ... are of one group.
void write(const std::filesystem::path& trace, std::uint64_t number, std::int64_t world) {
    for (std::int64_t rank = 0; rank < world; ++rank) {
        RunInfo run = testing::sample_run(number == 0 ? "a" : "b");
        run.record_level = "scalars";
        run.max_steps = 3;
        TraceWriter writer(world > 1 ? shard_path(trace, rank, world) : trace);
        writer.begin_run(run, {}, ShardInfo{rank, world, 1});
        for (std::int64_t s = rank; s < sequences; s += world) {
            const std::string group = s % 10 == 3 || s % 10 == 4 ? "g" + std::to_string(s / 10) : "";
            writer.begin_sequence("s", std::string(static_cast<std::size_t>(2 * length), 'x'), group, s);
            writer.append(tokens_of(number, s), {});
            writer.end_sequence();
        }
        writer.end_run(1);
        writer.finish();
    }
}

bool same(const Estimate& a, const Estimate& b) {
    const auto bits = [](double value) { return std::bit_cast<std::uint64_t>(value); };
    return bits(a.value) == bits(b.value) && bits(a.low) == bits(b.low) && bits(a.high) == bits(b.high) &&
           bits(a.standard_error) == bits(b.standard_error);
}

void expect_same(const PairedComparison& a, const PairedComparison& b) {
    EXPECT_EQ(a.tokens, b.tokens);
    EXPECT_EQ(a.resampling.words(), b.resampling.words());
    EXPECT_TRUE(same(a.difference, b.difference));
    EXPECT_TRUE(same(a.bits_per_byte_a, b.bits_per_byte_a));
    EXPECT_TRUE(same(a.pearson, b.pearson));
    EXPECT_EQ(a.p, b.p);
    ASSERT_TRUE(a.flips && b.flips);
    EXPECT_EQ(a.flips->p, b.flips->p);
    EXPECT_EQ(a.notices, b.notices);
}

class Scanned : public ::testing::Test {
protected:
    void SetUp() override {
        write(folder / "a.ponder", 0, 3);
        write(folder / "b.ponder", 1, 1);
        write(folder / "whole.ponder", 0, 1);
    }
    testing::TemporaryFolder folder;
    BootstrapOptions options{.replicates = 200};
};

TEST_F(Scanned, PairsHaveTheSameBitsFromShardsAndFromAnyNumberOfThreads) {
    const TraceReader a = TraceReader::open(folder / "a.ponder"); // stands for its shards
    const TraceReader b = TraceReader::open(folder / "b.ponder");
    const TraceReader whole = TraceReader::open(folder / "whole.ponder");
    EXPECT_EQ(a.files().size(), 3U);
    const auto pair = [&](const TraceReader& first, int threads) {
        return pair_runs(first, find_run(first, ""), b, find_run(b, ""), {.threads = threads});
    };
    const PairedSample sample = pair(a, 3);
    EXPECT_EQ(sample.layout.clusters(), sequences - 6); // five groups of two, and one that is not scored
    const PairedComparison found = compare_paired(sample, options);
    EXPECT_EQ(found.resampling.unit, ResamplingUnit::clusters);
    EXPECT_EQ(found.tokens, static_cast<std::int64_t>(sample.a.size()));
    EXPECT_NEAR(found.pearson.value, pearson(sample.a, sample.b), 1e-12);
    expect_same(compare_paired(pair(a, 1), options), found);
    options.threads = 1;
    expect_same(compare_paired(pair(whole, 3), options), found);
}

TEST_F(Scanned, ARunHasTheSameBitsFromShardsAndFromAnyNumberOfThreads) {
    const TraceReader a = TraceReader::open(folder / "a.ponder");
    const TraceReader whole = TraceReader::open(folder / "whole.ponder");
    const RunInfo run = find_run(a, "");
    GroupingOptions grouping{5, options};
    const RunStudy found = study_run(a, run, grouping);
    EXPECT_EQ(found.groups.scored, found.estimate.scored_tokens);
    grouping.bootstrap.threads = 1;
    const RunStudy again = study_run(whole, find_run(whole, ""), grouping);
    EXPECT_TRUE(same(found.estimate.mean_nll, again.estimate.mean_nll));
    EXPECT_TRUE(same(found.estimate.bits_per_byte, again.estimate.bits_per_byte));
    EXPECT_TRUE(same(found.estimate.mean_nll, estimate_run(a, run, options).mean_nll));
    ASSERT_EQ(found.correlations.size(), 2U);
    EXPECT_TRUE(same(found.correlations[1].rho, again.correlations[1].rho));
    ASSERT_EQ(found.groups.types.size(), again.groups.types.size());
    for (std::size_t i = 0; i < again.groups.types.size(); ++i) {
        EXPECT_EQ(found.groups.types[i].q, again.groups.types[i].q);
    }
    // By the token that was predicted, where that is asked for.
    std::map<std::int32_t, std::int64_t> predicted;
    for (const SequenceInfo& sequence : a.sequences(run.id)) {
        const TokenColumns tokens = a.tokens(run.id, sequence.number);
        for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
            predicted[tokens.id[i + 1]] += std::isnan(tokens.nll[i]) ? 0 : 1;
        }
    }
    grouping.types = LabelPlace::prediction;
    const RunStudy by_prediction = study_run(a, run, grouping);
    EXPECT_FALSE(by_prediction.groups.types.empty());
    for (const TokenGroup& type : by_prediction.groups.types) {
        EXPECT_EQ(type.count, predicted[type.id]) << type.id;
    }

    const TraceReader b = TraceReader::open(folder / "b.ponder");
    const StepsCorrelation against = correlate_steps(a, run, b, find_run(b, ""), options);
    const PairedSample pairs = pair_runs(a, run, b, find_run(b, ""));
    EXPECT_TRUE(same(against.rho, spearman_with_interval(pairs.steps_a, pairs.b, pairs.layout, options)));
    EXPECT_NEAR(against.rho.value, spearman(pairs.steps_a, pairs.b), 1e-12);
}

TEST_F(Scanned, OfSeveralFaultsTheFirstIsSaid) {
    TraceWriter writer(folder / "other.ponder");
    RunInfo run = testing::sample_run("b");
    run.record_level = "scalars";
    writer.begin_run(run, {});
    for (std::int64_t s = 0; s < sequences; ++s) {
        TokenColumns tokens = tokens_of(1, s);
        tokens.id[100] += s >= 2 ? 1 : 0;
        testing::add_sequence(writer, "s", std::string(static_cast<std::size_t>(2 * length), 'x'), tokens);
    }
    writer.end_run(1);
    writer.finish();
    const TraceReader a = TraceReader::open(folder / "a.ponder");
    const TraceReader other = TraceReader::open(folder / "other.ponder");
    const std::string refusal = testing::error_of(
        [&] { (void)pair_runs(a, find_run(a, ""), other, find_run(other, ""), {.threads = 3}); });
    EXPECT_NE(refusal.find("token 100 of sequence 2"), std::string::npos) << refusal;
    std::stop_source stop;
    stop.request_stop();
    options.stop = stop.get_token();
    EXPECT_THROW((void)pair_runs(a, find_run(a, ""), a, find_run(a, ""), {{}, stop.get_token()}), Cancelled);
    EXPECT_THROW((void)study_run(a, find_run(a, ""), {2, options}), Cancelled);
}

TEST(TokenTypes, OfManyClustersNeighboursAreTestedTogether) {
    std::vector<std::int32_t> ids, steps;
    std::vector<float> nll;
    TokenLayout layout;
    constexpr std::int64_t clusters = 3000;
    for (std::int64_t c = 0; c < clusters; ++c) {
        for (std::int64_t t = 0; t < 4; ++t) {
            const double draw = token_draw(1, static_cast<std::uint64_t>(c), static_cast<std::uint64_t>(t));
            ids.push_back(t == 0 ? 5 : 6);
            steps.push_back(static_cast<std::int32_t>(4 * draw) + (t == 0 ? 1 : 0));
            nll.push_back(1);
            layout.add(c, t > 0);
        }
    }
    const TokenGroups groups = testing::groups_of(ids, steps, nll, layout, 4, {});
    EXPECT_EQ(groups.units, most_test_units);
    EXPECT_EQ(groups.resampling.clusters, clusters);
    ASSERT_EQ(groups.types.size(), 2U);
    EXPECT_EQ(groups.types[0].count, 3 * clusters);
    EXPECT_LT(groups.types[1].p, 1e-6); // id 5 takes a step more
    double least = 1;
    for (std::uint64_t draw = 0; draw < 20; ++draw) { // ids that nothing goes with have no small p
        for (std::size_t i = 0; i < ids.size(); ++i) {
            ids[i] = splitmix64(draw, i) % 2 == 0 ? 5 : 6;
        }
        least = std::min(least, testing::groups_of(ids, steps, nll, layout, 4, {}).types[0].p);
    }
    EXPECT_GT(least, 1e-3);
}

} // namespace
} // namespace ponderscope
