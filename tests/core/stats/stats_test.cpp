// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/splitmix.h"
#include "core/stats/bootstrap.h"
#include "core/stats/correlation.h"
#include "tests/support/test_data.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <numbers>

namespace ponderscope {
namespace {

/// Made by reference_values.py with NumPy and SciPy.
nlohmann::json reference() {
    return nlohmann::json::parse(
        read_file(testing::source_tree() / "tests/core/stats/reference_values.json"));
}

struct Sample {
    std::vector<double> a;
    std::vector<double> b;
};

/// The sample of reference_values.py.
Sample reference_sample(std::size_t n, std::uint64_t seed) {
    Sample sample;
    double level = 0.5;
    for (std::uint64_t t = 0; t < n; ++t) {
        level = 0.8 * level + 0.2 * unit_interval(splitmix64(seed, 3 * t));
        const double x = 6 * level * level + unit_interval(splitmix64(seed, 3 * t + 1));
        sample.a.push_back(std::nearbyint(x * 64) / 64);
        sample.b.push_back(
            std::nearbyint((0.9 * x + 0.5 * unit_interval(splitmix64(seed, 3 * t + 2)) - 0.2) * 64) / 64);
    }
    return sample;
}

Statistic mean_of(std::size_t column) {
    return [column](std::span<const double> sums, std::int64_t n) {
        return sums[column] / static_cast<double>(n);
    };
}

TEST(Correlation, AgreesWithSciPy) {
    const nlohmann::json want = reference();
    const Sample sample = reference_sample(500, 7);
    for (std::size_t i = 0; i < 5; ++i) {
        ASSERT_EQ(sample.a[i], want["sample"]["first_a"][i].get<double>());
        ASSERT_EQ(sample.b[i], want["sample"]["first_b"][i].get<double>());
        EXPECT_EQ(average_ranks(sample.a)[i], want["first_ranks_a"][i].get<double>());
    }
    EXPECT_NEAR(pearson(sample.a, sample.b), want["pearson"].get<double>(), 1e-12);
    EXPECT_NEAR(spearman(sample.a, sample.b), want["spearman"].get<double>(), 1e-12);
    std::vector<double> sorted = sample.a;
    std::sort(sorted.begin(), sorted.end());
    for (const nlohmann::json& pair : want["quantiles"]) {
        EXPECT_NEAR(quantile_of_sorted(sorted, pair[0].get<double>()), pair[1].get<double>(), 1e-12);
    }
}

TEST(Correlation, SaysNothingWhereNothingCanBeSaid) {
    const std::vector<double> one{1};
    const std::vector<double> flat{2, 2, 2};
    const std::vector<double> rising{1, 2, 3};
    EXPECT_TRUE(std::isnan(pearson(one, one)));
    EXPECT_TRUE(std::isnan(pearson(flat, rising)));
    EXPECT_TRUE(std::isnan(spearman(rising, flat)));
    EXPECT_NEAR(pearson(rising, rising), 1, 1e-15);
    EXPECT_TRUE(std::isnan(quantile_of_sorted({}, 0.5)));
    const double infinity = std::numeric_limits<double>::infinity();
    const std::vector<double> ends{1, infinity, infinity};
    EXPECT_EQ(quantile_of_sorted(ends, 0.9), infinity);
}

TEST(Bootstrap, EqualsTheSlowWay) {
    const nlohmann::json want = reference()["bootstrap"];
    const Sample sample = reference_sample(500, 7);
    const std::vector<double> ranks_a = average_ranks(sample.a);
    const std::vector<double> ranks_b = average_ranks(sample.b);
    std::vector<double> columns;
    for (std::size_t i = 0; i < sample.a.size(); ++i) {
        const double a = sample.a[i];
        const double b = sample.b[i];
        const double ra = ranks_a[i] - 250.5;
        const double rb = ranks_b[i] - 250.5;
        columns.insert(columns.end(), {a, b, a * a, b * b, a * b, ra, rb, ra * ra, rb * rb, ra * rb});
    }
    const auto correlation = [](std::size_t x, std::size_t y, std::size_t squares) {
        return [=](std::span<const double> s, std::int64_t tokens) {
            const auto n = static_cast<double>(tokens);
            return (s[squares + 2] - s[x] * s[y] / n) /
                   std::sqrt((s[squares] - s[x] * s[x] / n) * (s[squares + 1] - s[y] * s[y] / n));
        };
    };
    const PrefixSums sums(columns, 10, {150, 40, 310});
    const std::vector<std::pair<std::string, Statistic>> statistics = {
        {"mean_a", mean_of(0)},
        {"mean_b", mean_of(1)},
        {"difference",
         [](std::span<const double> s, std::int64_t n) { return (s[1] - s[0]) / static_cast<double>(n); }},
        {"pearson", correlation(0, 1, 2)},
        {"spearman", correlation(5, 6, 7)},
    };
    for (const auto& [name, statistic] : statistics) {
        BootstrapOptions options;
        options.block = want["block"].get<std::int64_t>();
        options.seed = want["seed"].get<std::uint64_t>();
        options.replicates = want["replicates"].get<std::int64_t>();
        const nlohmann::json& expected = want["estimates"][name];
        for (const int threads : {1, 3}) {
            options.threads = threads;
            options.kind = IntervalKind::percentile;
            Estimate got = block_bootstrap(sums, {&statistic, 1}, options)[0];
            EXPECT_NEAR(got.value, expected["value"].get<double>(), 1e-10) << name;
            EXPECT_NEAR(got.low, expected["percentile"][0].get<double>(), 1e-10) << name;
            EXPECT_NEAR(got.high, expected["percentile"][1].get<double>(), 1e-10) << name;
            EXPECT_NEAR(got.standard_error, expected["standard_error"].get<double>(), 1e-10) << name;
            options.kind = IntervalKind::bca;
            got = block_bootstrap(sums, {&statistic, 1}, options)[0];
            EXPECT_NEAR(got.low, expected["bca"][0].get<double>(), 1e-9) << name;
            EXPECT_NEAR(got.high, expected["bca"][1].get<double>(), 1e-9) << name;
        }
    }
}

TEST(Bootstrap, OfSingleTokensAgreesWithSciPy) {
    const nlohmann::json want = reference()["single_tokens"];
    const auto values = want["values"].get<std::vector<double>>();
    const PrefixSums sums(values, 1, {static_cast<std::int64_t>(values.size())});
    const std::vector<Statistic> statistics = {mean_of(0)};
    BootstrapOptions options;
    options.block = 1;
    options.replicates = 200'000;
    for (const auto& [kind, name] :
         {std::pair{IntervalKind::percentile, "percentile"}, std::pair{IntervalKind::bca, "bca"}}) {
        options.kind = kind;
        const Estimate got = block_bootstrap(sums, statistics, options)[0];
        const double low = want[name][0].get<double>();
        const double high = want[name][1].get<double>();
        const double noise = 0.01 * (high - low); // of 200,000 replicates on either side
        EXPECT_NEAR(got.low, low, noise) << name;
        EXPECT_NEAR(got.high, high, noise) << name;
    }
    // The two kinds differ by more than that noise here, so the test above tells them apart.
    EXPECT_GT(want["bca"][1].get<double>() - want["percentile"][1].get<double>(),
              0.04 * (want["bca"][1].get<double>() - want["bca"][0].get<double>()));
}

TEST(Bootstrap, EveryStretchGivesAsMuchAsItHas) {
    // Forty short stretches against one long one, half of the tokens each: the mean of the replicates is that
    // of the sample.
    std::vector<double> values;
    std::vector<std::int64_t> stretches;
    for (int s = 0; s < 40; ++s) {
        stretches.push_back(25);
        values.insert(values.end(), 25, 1.0);
    }
    stretches.push_back(1000);
    values.insert(values.end(), 1000, 0.0);
    const PrefixSums sums(values, 1, stretches);
    double total = 0;
    BootstrapOptions options;
    options.threads = 1;
    options.replicates = 2000;
    const std::vector<Statistic> statistics = {[&](std::span<const double> s, std::int64_t n) {
        total += s[0] / static_cast<double>(n);
        return s[0] / static_cast<double>(n);
    }};
    const Estimate estimate = block_bootstrap(sums, statistics, options)[0];
    EXPECT_NEAR(total / 2001, 0.5, 0.01);
    EXPECT_LT(estimate.low, 0.5);
    EXPECT_GT(estimate.high, 0.5);
}

TEST(Bootstrap, IntervalsCoverOnAutocorrelatedData) {
    // An AR(1) process with coefficient 0.7, mean 3, 4,000 tokens in four sequences: single tokens would give
    // intervals 2.4 times too narrow. 300 data sets, so that a true coverage of 0.95 shows up between 0.91
    // and 0.985 in 997 of 1000 runs of other seeds.
    constexpr int sets = 300;
    constexpr int naive_sets = 60;
    int blocks_cover = 0;
    int tokens_cover = 0;
    for (std::uint64_t set = 0; set < sets; ++set) {
        std::vector<double> values;
        const std::uint64_t seed = splitmix64(99, set);
        std::uint64_t draw = 0;
        for (int sequence = 0; sequence < 4; ++sequence) {
            double state = 0;
            for (int t = -100; t < 1000; ++t) { // the first hundred bring it into its steady state
                const double u = 1 - unit_interval(splitmix64(seed, draw++));
                const double v = unit_interval(splitmix64(seed, draw++));
                state = 0.7 * state + std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
                if (t >= 0) {
                    values.push_back(3 + state);
                }
            }
        }
        const PrefixSums sums(values, 1, {1000, 1000, 1000, 1000});
        const std::vector<Statistic> statistics = {mean_of(0)};
        BootstrapOptions options;
        options.replicates = 600;
        options.seed = set;
        const Estimate blocks = block_bootstrap(sums, statistics, options)[0];
        blocks_cover += blocks.low <= 3 && 3 <= blocks.high;
        if (set >= naive_sets) {
            continue;
        }
        options.block = 1;
        options.replicates = 200;
        const Estimate tokens = block_bootstrap(sums, statistics, options)[0];
        tokens_cover += tokens.low <= 3 && 3 <= tokens.high;
    }
    RecordProperty("covered_of_300", blocks_cover);
    std::printf("95 %% intervals: blocks of 64 cover %.1f %%, single tokens %.1f %%\n",
                100.0 * blocks_cover / sets, 100.0 * tokens_cover / naive_sets);
    EXPECT_GE(blocks_cover, sets * 91 / 100);
    EXPECT_LE(blocks_cover, sets * 985 / 1000);
    EXPECT_LT(tokens_cover, naive_sets * 80 / 100);
}

TEST(Bootstrap, DegenerateSamplesAndOptions) {
    const std::vector<Statistic> statistics = {mean_of(0)};
    const std::vector<double> flat(200, 1.5);
    for (const IntervalKind kind : {IntervalKind::percentile, IntervalKind::bca}) {
        BootstrapOptions options;
        options.kind = kind;
        options.replicates = 50;
        const Estimate same = block_bootstrap(PrefixSums(flat, 1, {200}), statistics, options)[0];
        EXPECT_EQ(same.value, 1.5);
        EXPECT_EQ(same.low, 1.5);
        EXPECT_EQ(same.high, 1.5);
        const Estimate single =
            block_bootstrap(PrefixSums(std::vector<double>{2.0}, 1, {1}), statistics, options)[0];
        EXPECT_EQ(single.value, 2.0);
    }
    EXPECT_TRUE(std::isnan(block_bootstrap(PrefixSums({}, 1, {}), statistics)[0].value));
    EXPECT_THROW(PrefixSums(flat, 1, {199}), InputError);
    EXPECT_THROW(PrefixSums(flat, 1, {200, 0}), InputError);
    const PrefixSums sums(flat, 1, {200});
    for (const auto& change : std::vector<std::function<void(BootstrapOptions&)>>{
             [](BootstrapOptions& o) { o.block = 0; }, [](BootstrapOptions& o) { o.replicates = 0; },
             [](BootstrapOptions& o) { o.replicates = std::int64_t{1} << 60; },
             [](BootstrapOptions& o) { o.level = 1; },
             [](BootstrapOptions& o) { o.level = std::numeric_limits<double>::quiet_NaN(); }}) {
        BootstrapOptions options;
        change(options);
        EXPECT_THROW(block_bootstrap(sums, statistics, options), InputError);
    }
    std::stop_source stop;
    stop.request_stop();
    BootstrapOptions options;
    options.stop = stop.get_token();
    EXPECT_THROW(block_bootstrap(sums, statistics, options), Cancelled);
}

} // namespace
} // namespace ponderscope
