// SPDX-License-Identifier: GPL-3.0-or-later
// Statistics of runs that are read by several threads and not kept, against the same of tokens in memory.
#include "core/base/error.h"
#include "core/base/splitmix.h"
#include "core/stats/paired.h"
#include "core/stats/ranks.h"
#include "core/stats/run_study.h"
#include "core/trace/shard.h"
#include "core/trace/writer.h"
#include "tests/core/trace/sample.h"
#include "tests/support/correlation.h"
#include "tests/support/test_data.h"

#include "tests/core/stats/simulated.h"
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
    EXPECT_TRUE(same(a.mean_a, b.mean_a));
    EXPECT_TRUE(same(a.difference, b.difference));
    EXPECT_TRUE(same(a.bits_per_byte_difference, b.bits_per_byte_difference));
    EXPECT_TRUE(same(a.documents.difference, b.documents.difference));
    EXPECT_TRUE(same(a.documents.bits_per_byte_a, b.documents.bits_per_byte_a));
    EXPECT_TRUE(same(a.pearson, b.pearson));
    EXPECT_TRUE(same(a.spearman, b.spearman));
    EXPECT_EQ(a.p, b.p);
    EXPECT_EQ(a.share_b_better, b.share_b_better);
    ASSERT_TRUE(a.equivalence && b.equivalence && a.flips && b.flips);
    EXPECT_EQ(a.equivalence->p, b.equivalence->p);
    EXPECT_EQ(a.flips->only_a, b.flips->only_a);
    EXPECT_EQ(a.flips->both_wrong, b.flips->both_wrong);
    EXPECT_EQ(a.flips->p, b.flips->p);
    EXPECT_EQ(a.notices, b.notices);
}

void expect_same(const std::vector<TokenGroup>& a, const std::vector<TokenGroup>& b) {
    ASSERT_EQ(a.size(), b.size());
    ASSERT_GT(a.size(), 0U);
    for (std::size_t i = 0; i < a.size(); ++i) {
        EXPECT_EQ(a[i].id, b[i].id);
        EXPECT_EQ(a[i].count, b[i].count);
        EXPECT_EQ(a[i].mean_steps, b[i].mean_steps);
        EXPECT_NEAR(a[i].mean_nll, b[i].mean_nll, 1e-12 * b[i].mean_nll);
        EXPECT_EQ(a[i].dropped, b[i].dropped);
        EXPECT_TRUE(std::isnan(b[i].p) ? std::isnan(a[i].p) : std::abs(a[i].p - b[i].p) < 1e-12);
        EXPECT_TRUE(std::isnan(b[i].q) ? std::isnan(a[i].q) : std::abs(a[i].q - b[i].q) < 1e-12);
    }
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

TEST_F(Scanned, PairsThatAreNotKeptSayWhatPairsInMemorySay) {
    const TraceReader a = TraceReader::open(folder / "a.ponder"); // stands for its shards
    const TraceReader b = TraceReader::open(folder / "b.ponder");
    const TraceReader whole = TraceReader::open(folder / "whole.ponder");
    const RunInfo run_a = find_run(a, "");
    const RunInfo run_b = find_run(b, "");
    EXPECT_EQ(a.files().size(), 3U);
    const PairedSample sample = pair_runs(a, run_a, b, run_b);
    EXPECT_EQ(sample.layout.clusters(), sequences - 6); // five groups of two, and one that is not scored
    options.threads = 3;
    const PairedComparison kept = compare_paired(sample, options, 0.1);
    const PairedComparison found = compare_runs(a, run_a, b, run_b, options, 0.1);
    expect_same(found, kept);
    EXPECT_EQ(found.resampling.unit, ResamplingUnit::clusters);
    EXPECT_EQ(found.tokens, static_cast<std::int64_t>(sample.a.size()));
    EXPECT_NEAR(found.spearman.value, spearman(sample.a, sample.b), 1e-12);
    EXPECT_NEAR(found.pearson.value, pearson(sample.a, sample.b), 1e-12);
    options.threads = 1;
    expect_same(compare_runs(a, run_a, b, run_b, options, 0.1), kept);
    expect_same(compare_runs(whole, find_run(whole, ""), b, run_b, options, 0.1), kept);
    // Blocks are drawn from tokens.
    options.unit = ResamplingUnit::blocks;
    options.block = 50;
    expect_same(compare_runs(a, run_a, b, run_b, options, 0.1), compare_paired(sample, options, 0.1));
}

TEST_F(Scanned, ARunThatIsNotKeptSaysWhatOneInMemorySays) {
    const TraceReader a = TraceReader::open(folder / "a.ponder");
    const RunInfo run = find_run(a, "");
    options.block = 100; // of the rows by block length
    const GroupingOptions grouping{5, DiscoveryControl::benjamini_hochberg, options};
    const RunStudy found = study_run(a, run, grouping);
    const RunStudy kept = study_run(a, run, grouping, true); // needs the tokens, for blocks
    EXPECT_TRUE(same(found.estimate.mean_nll, kept.estimate.mean_nll));
    EXPECT_TRUE(same(found.estimate.mean_steps, kept.estimate.mean_steps));
    EXPECT_TRUE(same(found.estimate.bits_per_byte, kept.estimate.bits_per_byte));
    EXPECT_TRUE(same(found.estimate.document_mean_nll, kept.estimate.document_mean_nll));
    EXPECT_EQ(found.estimate.notices, kept.estimate.notices);
    EXPECT_EQ(kept.estimate.by_block.size(), 3U);
    ASSERT_EQ(found.correlations.size(), 2U);
    for (std::size_t i = 0; i < 2; ++i) {
        EXPECT_TRUE(same(found.correlations[i].rho, kept.correlations[i].rho));
        EXPECT_EQ(found.correlations[i].with, kept.correlations[i].with);
    }
    EXPECT_EQ(found.groups.scored, found.estimate.scored_tokens);
    EXPECT_EQ(found.groups.resampling.words(), kept.groups.resampling.words());
    expect_same(found.groups.types, kept.groups.types);
    expect_same(found.groups.classes, kept.groups.classes);
    EXPECT_TRUE(same(found.estimate.mean_nll, estimate_run(a, run, options).mean_nll));
    // By the token that was predicted, where that is asked for.
    std::map<std::int32_t, std::int64_t> predicted;
    for (const SequenceInfo& sequence : a.sequences(run.id)) {
        const TokenColumns tokens = a.tokens(run.id, sequence.number);
        for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
            predicted[tokens.id[i + 1]] += std::isnan(tokens.nll[i]) ? 0 : 1;
        }
    }
    GroupingOptions what_came = grouping;
    what_came.types = LabelPlace::prediction;
    for (const bool keep : {false, true}) {
        const RunStudy study = study_run(a, run, what_came, keep);
        EXPECT_FALSE(study.groups.types.empty());
        for (const TokenGroup& type : study.groups.types) {
            EXPECT_EQ(type.count, predicted[type.id]) << type.id;
        }
    }

    const TraceReader b = TraceReader::open(folder / "b.ponder");
    const StepsCorrelation against = correlate_steps(a, run, b, find_run(b, ""), options);
    const PairedSample pairs = pair_runs(a, run, b, find_run(b, ""));
    const std::vector<double> steps(pairs.steps_a.begin(), pairs.steps_a.end());
    EXPECT_TRUE(same(against.rho, spearman_with_interval(steps, pairs.b, pairs.layout, options)));
    EXPECT_NEAR(against.rho.value, spearman(steps, pairs.b), 1e-12);
}

TEST_F(Scanned, OfSeveralFaultsTheFirstIsSaid) {
    TraceWriter writer(folder / "other.ponder");
    RunInfo run = testing::sample_run("b");
    run.record_level = "scalars";
    writer.begin_run(run, {});
    for (std::int64_t s = 0; s < sequences; ++s) {
        TokenColumns tokens = tokens_of(1, s);
        tokens.id[100] += s >= 2 ? 1 : 0;
        writer.begin_sequence("s", std::string(static_cast<std::size_t>(2 * length), 'x'));
        writer.append(std::move(tokens), {});
        writer.end_sequence();
    }
    writer.end_run(1);
    writer.finish();
    const TraceReader a = TraceReader::open(folder / "a.ponder");
    const TraceReader other = TraceReader::open(folder / "other.ponder");
    options.threads = 3;
    try {
        (void)compare_runs(a, find_run(a, ""), other, find_run(other, ""), options);
        FAIL();
    } catch (const InputError& error) {
        EXPECT_NE(std::string(error.what()).find("token 100 of sequence 2;"), std::string::npos)
            << error.what();
    }
    std::stop_source stop;
    stop.request_stop();
    options.stop = stop.get_token();
    EXPECT_THROW((void)compare_runs(a, find_run(a, ""), a, find_run(a, ""), options), Cancelled);
    EXPECT_THROW((void)study_run(a, find_run(a, ""), {2, DiscoveryControl::benjamini_hochberg, options}),
                 Cancelled);
}

TEST(RankTable, ExactOfFewAndWithinABinOfMany) {
    std::vector<double> values{-0.0, 0.0, 3, 3, -5, 1e300, std::numeric_limits<double>::infinity()};
    for (std::uint64_t i = 0; i < 3000; ++i) {
        values.push_back(static_cast<double>(static_cast<float>(8 * unit_interval(splitmix64(1, i)) - 2)));
    }
    const std::vector<double> ranks = average_ranks(values);
    for (const std::int64_t most : {RankTable::exact_values, RankTable::exact_values + 1}) {
        std::vector<RankTable> tables;
        tables.emplace_back(most);
        tables.emplace_back(most);
        for (std::size_t i = 0; i < values.size(); ++i) {
            tables[i % 2].add(values[i]);
        }
        const RankTable table = merged(std::move(tables));
        ASSERT_EQ(table.count(), static_cast<std::int64_t>(values.size()));
        double sum = 0;
        for (std::size_t i = 0; i < values.size(); ++i) {
            const double rank = table.rank(values[i]);
            sum += rank;
            if (most == RankTable::exact_values) {
                EXPECT_EQ(rank, ranks[i]) << values[i];
                continue;
            }
            // At most those that differ by less than 1/8192 are taken as equal.
            double closer = 0;
            for (const double other : values) {
                closer += std::abs(other - values[i]) <= std::abs(values[i]) / 8192 ? 1 : 0;
            }
            EXPECT_LE(std::abs(rank - ranks[i]), closer) << values[i];
        }
        const auto n = static_cast<double>(values.size());
        EXPECT_NEAR(sum, n * (n + 1) / 2, 1e-6);
    }
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
