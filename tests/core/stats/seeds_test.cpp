// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/seeds.h"

#include "core/base/error.h"
#include "core/base/splitmix.h"
#include "core/stats/significance.h"
#include "core/trace/writer.h"
#include "tests/core/stats/simulated.h"
#include "tests/core/trace/sample.h"
#include "tests/support/errors.h"
#include "tests/support/test_data.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ponderscope {
namespace {

using namespace testing;

double mean_of(const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

TEST(Seeds, EqualTheSlowWay) {
    const SeedSample sample = equal_methods(5, 6, 5, 0.1);
    BootstrapOptions options{.replicates = 200};
    const SeedComparison found = compare_seeds(sample, false, options);
    ASSERT_EQ(found.means_a.size(), 6U);
    EXPECT_NEAR(found.means_b[1], mean_of(sample.b[1]), 1e-12);
    EXPECT_NEAR(found.difference.value, mean_of(found.means_a) - mean_of(found.means_b), 1e-12);
    double sum = 0;
    double squares = 0;
    for (std::uint64_t r = 0; r < 200; ++r) {
        std::vector<std::size_t> rows;
        for (std::uint64_t i = 0; i < 40; ++i) {
            const std::uint64_t cluster = bounded(splitmix64(splitmix64(options.seed, r), i), 40);
            for (std::size_t t = 0; t < 10; ++t) {
                rows.push_back(cluster * 10 + t);
            }
        }
        const std::uint64_t stream = splitmix64(options.seed, (std::uint64_t{1} << 32U) + r);
        const auto side = [&](const std::vector<std::vector<double>>& runs, std::uint64_t first) {
            double total = 0;
            for (std::uint64_t j = 0; j < runs.size(); ++j) {
                const std::vector<double>& run = runs[bounded(splitmix64(stream, first + j), runs.size())];
                for (const std::size_t row : rows) {
                    total += run[row] / static_cast<double>(rows.size() * runs.size());
                }
            }
            return total;
        };
        const double difference = side(sample.b, 6) - side(sample.a, 0);
        sum += difference;
        squares += difference * difference;
    }
    const double deviation = std::sqrt((squares - sum * sum / 200) / 199);
    EXPECT_NEAR(found.difference.standard_error, deviation, 1e-9);
}

TEST(Seeds, SayWhatFewOfThemMean) {
    BootstrapOptions options{.replicates = 100};
    const SeedComparison one = compare_seeds(equal_methods(5, 1, 4, 0.1), false, options);
    EXPECT_EQ(one.notices.back().id, NoticeId::compare_one_seed);
    EXPECT_TRUE(std::isnan(one.share_of_seeds));
    EXPECT_TRUE(std::isnan(one.deviation_a));
    const SeedComparison three = compare_seeds(equal_methods(5, 3, 4, 0.1), false, options);
    EXPECT_EQ(three.notices.back().id, NoticeId::compare_few_seeds);
    EXPECT_GT(three.share_of_seeds, 0);
    EXPECT_LT(three.share_of_seeds, 1);
    EXPECT_TRUE(compare_seeds(equal_methods(5, 6, 6, 0.1), false, options).notices.empty());
    EXPECT_THROW(compare_seeds(equal_methods(5, 3, 4, 0.1), true, options), InputError);
    EXPECT_THROW(compare_seeds({}, false, options), InputError);
    // The same data order on both sides: what pairs of runs share is no difference of the methods.
    SeedSample pairs = equal_methods(6, 5, 5, 0.5);
    for (std::size_t s = 0; s < 5; ++s) {
        pairs.b[s] = pairs.a[s];
        Normal draw(s);
        for (double& value : pairs.b[s]) {
            value += 0.01 + 0.001 * draw();
        }
    }
    EXPECT_LT(compare_seeds(pairs, true, options).p, 1e-4);
    EXPECT_GT(compare_seeds(pairs, false, options).p, 0.5);
}

TEST(Seeds, OfLessThanTwoBlocksSayNothing) {
    SeedSample sample = equal_methods(5, 6, 6, 0.1);
    sample.layout = {400};
    const SeedComparison found = compare_seeds(sample, false, {.block = 300, .replicates = 100});
    for (const Estimate& one : {found.mean_a, found.mean_b, found.difference}) {
        EXPECT_TRUE(std::isnan(one.low) && std::isnan(one.high) && std::isnan(one.detectable));
    }
    EXPECT_TRUE(std::isnan(found.p));
    EXPECT_TRUE(std::isnan(found.share_of_seeds));
}

TEST(Seeds, LieAroundTheirMeans) {
    SeedSample sample = equal_methods(8, 6, 7, 0.1);
    for (std::vector<double>& run : sample.b) {
        std::ranges::transform(run, run.begin(), [](double value) { return value + 2; });
    }
    const SeedComparison found = compare_seeds(sample, false, {.replicates = 400});
    for (const Estimate& one : {found.mean_a, found.mean_b, found.difference}) {
        EXPECT_LT(one.low, one.value);
        EXPECT_GT(one.high, one.value);
        EXPECT_LT(one.high - one.low, 6 * one.standard_error);
    }
    EXPECT_NEAR(found.mean_b.value, found.mean_a.value + 2, 0.3);
}

TEST(Seeds, FewerThanFiveHaveTheIntervalOfTheirError) {
    BootstrapOptions options{.replicates = 200};
    for (const std::size_t seeds : {3U, 4U, 5U}) {
        const SeedComparison found = compare_seeds(equal_methods(9, seeds, seeds, 0.2), false, options);
        const Estimate& one = found.difference;
        const bool even = std::abs(one.high - one.value - (one.value - one.low)) < 1e-12;
        EXPECT_EQ(even, seeds < 5) << seeds;
        if (even) {
            const double t = one.value / one.standard_error;
            EXPECT_NEAR(2 * student_cdf(-std::abs(t), found.degrees), found.p, 1e-12);
            EXPECT_NEAR(2 * student_cdf(-(one.high - one.value) / one.standard_error, found.degrees), 0.05,
                        1e-9);
        }
    }
}

/// What runs differ by because their tokens do is counted once, with the text.
TEST(Seeds, ThatDifferByTheirTokensAloneHaveNoShare) {
    SeedSample sample;
    std::vector<double> noise;
    Normal draw(3);
    for (int cluster = 0; cluster < 50; ++cluster) {
        for (int t = 0; t < 8; ++t) {
            sample.layout.add(cluster, t > 0);
            noise.push_back(draw());
        }
    }
    // Two runs either side of what they share: their means are apart by \p errors standard errors of the
    // noise.
    const auto share = [&](double errors) {
        const double shift = errors / std::sqrt(400.0) - mean_of(noise);
        sample.a.assign(2, std::vector<double>(400, 3.0));
        sample.b.assign(2, std::vector<double>(400, 3.0));
        for (std::size_t t = 0; t < 400; ++t) {
            for (const auto runs : {&sample.a, &sample.b}) {
                const double apart = noise[t] + shift;
                (*runs)[0][t] += apart + (runs == &sample.b ? 0.1 * noise[399 - t] : 0);
                (*runs)[1][t] -= apart;
            }
        }
        BootstrapOptions options{.replicates = 100};
        return compare_seeds(sample, false, options).share_of_seeds;
    };
    EXPECT_NEAR(share(0.8), 0, 1e-12);
    EXPECT_GT(share(3), 0.5);
}

TEST(Seeds, AreReadFromRunsOfOneText) {
    const TemporaryFolder folder;
    const auto write = [&](const std::string& name, std::uint64_t seed, std::int64_t tokens,
                           const std::string& group) {
        TraceWriter writer(folder / (name + ".ponder"));
        writer.begin_run(sample_run(name), {});
        writer.begin_sequence("s", sample_text(300), group);
        TokenColumns columns = sample_tokens(seed, 0, tokens, 300);
        columns.id = sample_tokens(1, 0, tokens, 300).id;
        writer.append(columns, {});
        writer.end_sequence();
        writer.end_run(1);
        writer.finish();
        auto reader = std::make_shared<TraceReader>(TraceReader::open(folder / (name + ".ponder")));
        return SeedRun{reader, reader->runs().front()};
    };
    const std::vector<SeedRun> a{write("a1", 2, 300, "austen"), write("a2", 3, 300, "austen")};
    const std::vector<SeedRun> b{write("b1", 4, 300, "")};
    const SeedSample sample = read_seeds(a, b);
    EXPECT_EQ(sample.a.size(), 2U);
    EXPECT_EQ(sample.b.size(), 1U);
    EXPECT_EQ(sample.layout.stretches, std::vector<std::int64_t>{299});
    EXPECT_THROW(read_seeds(a, {}), InputError);
    EXPECT_THROW(read_seeds(a, {write("short", 5, 200, "")}), InputError);
    const std::string refusal = error_of([&] { (void)read_seeds(a, {write("other", 5, 300, "melville")}); });
    EXPECT_NE(refusal.find("\"austen\" and \"melville\""), std::string::npos) << refusal;
}

TEST(Clusters, AreGroupsWhereTheyAreGiven) {
    ClusterNumbers numbers;
    SequenceInfo first, second, third;
    second.number = 1;
    third.number = 2;
    first.group = third.group = "austen";
    EXPECT_EQ(numbers.of(first), 0);
    EXPECT_EQ(numbers.of(second), 1);
    EXPECT_EQ(numbers.of(third), 0);
    SequenceInfo unknown;
    unknown.number = 2;
    EXPECT_EQ(numbers.of(unknown, third, "a and b"), 0);
    unknown.group = "melville";
    EXPECT_THROW(numbers.of(unknown, third, "a and b"), InputError);
    // A hundred thousand groups of one token each.
    TokenLayout layout;
    std::vector<double> values;
    ClusterNumbers many;
    for (std::int64_t i = 0; i < 100'000; ++i) {
        SequenceInfo sequence;
        sequence.number = i;
        sequence.group = "g" + std::to_string(i);
        layout.add(many.of(sequence), false);
        values.push_back(unit_interval(splitmix64(3, static_cast<std::uint64_t>(i))));
    }
    BootstrapOptions options{.replicates = 200};
    const Statistic mean_of_all = [](std::span<const double> sums, std::int64_t tokens) {
        return sums[0] / static_cast<double>(tokens);
    };
    const Estimate found = bootstrap(PrefixSums(values, 1, layout), {&mean_of_all, 1}, options).front();
    EXPECT_NEAR(found.standard_error, std::sqrt(1.0 / 12 / 100'000), 1.5e-4);
    EXPECT_LT(found.low, found.value);
}

} // namespace
} // namespace ponderscope
