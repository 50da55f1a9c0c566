// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/splitmix.h"
#include "core/stats/bootstrap.h"
#include "tests/support/correlation.h"
#include "tests/support/notices.h"
#include "tests/support/test_data.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <nlohmann/json.hpp>

namespace ponderscope {
namespace {

/// Made by reference_values.py with NumPy, SciPy and arch.
const nlohmann::json& reference_values() {
    static const auto values =
        nlohmann::json::parse(read_file(testing::source_tree() / "tests/core/stats/reference_values.json"));
    return values;
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

TEST(Correlation, AgreesWithSciPy) {
    const nlohmann::json& want = reference_values();
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
    EXPECT_TRUE(std::isnan(quantile_of_sorted({}, 0.5)));
    const double infinity = std::numeric_limits<double>::infinity();
    EXPECT_EQ(quantile_of_sorted(std::vector<double>{1, infinity, infinity}, 0.9), infinity);
}

TEST(Bootstrap, EqualsTheSlowWay) {
    const nlohmann::json want = reference_values()["bootstrap"];
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
        BootstrapOptions options{.block = want["block"].get<std::int64_t>(),
                                 .replicates = want["replicates"].get<std::int64_t>(),
                                 .seed = want["seed"].get<std::uint64_t>()};
        const nlohmann::json& expected = want["estimates"][name];
        for (const int threads : {1, 3}) {
            options.threads = threads;
            options.unit = ResamplingUnit::blocks;
            const Estimate got = bootstrap(sums, {&statistic, 1}, options)[0];
            EXPECT_NEAR(got.value, expected["value"].get<double>(), 1e-10) << name;
            EXPECT_NEAR(got.standard_error, expected["standard_error"].get<double>(), 1e-10) << name;
            EXPECT_NEAR(got.low, expected["expanded"][0].get<double>(), 1e-10) << name;
            EXPECT_NEAR(got.high, expected["expanded"][1].get<double>(), 1e-10) << name;
        }
    }
}

TEST(Bootstrap, OfSingleTokensAgreesWithSciPy) {
    const nlohmann::json want = reference_values()["single_tokens"];
    const auto values = want["values"].get<std::vector<double>>();
    const PrefixSums sums(values, 1, {static_cast<std::int64_t>(values.size())});
    BootstrapOptions options{.block = 1, .replicates = 200'000};
    std::vector<double> means(static_cast<std::size_t>(options.replicates));
    for_each_replicate(sums, choose_resampling(sums.layout(), {}, options), options,
                       [&](std::int64_t r, std::span<const double> total, std::int64_t tokens) {
                           means[static_cast<std::size_t>(r)] = total[0] / static_cast<double>(tokens);
                       });
    std::sort(means.begin(), means.end());
    const double low = want["percentile"][0].get<double>();
    const double high = want["percentile"][1].get<double>();
    const double noise = 0.01 * (high - low); // of 200,000 replicates on either side
    EXPECT_NEAR(quantile_of_sorted(means, 0.025), low, noise);
    EXPECT_NEAR(quantile_of_sorted(means, 0.975), high, noise);
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
    BootstrapOptions options{.unit = ResamplingUnit::blocks, .block = 64, .replicates = 2000, .threads = 1};
    const std::vector<Statistic> statistics = {[&](std::span<const double> s, std::int64_t n) {
        total += s[0] / static_cast<double>(n);
        return s[0] / static_cast<double>(n);
    }};
    const Estimate estimate = bootstrap(sums, statistics, options)[0];
    EXPECT_NEAR(total / 2001, 0.5, 0.01);
    EXPECT_LT(estimate.low, 0.5);
    EXPECT_GT(estimate.high, 0.5);
}

TEST(Bootstrap, OfClustersEqualsTheSlowWay) {
    const nlohmann::json want = reference_values()["clusters"];
    TokenLayout layout(want["stretches"].get<std::vector<std::int64_t>>());
    layout.cluster_of = want["cluster_of"].get<std::vector<std::int64_t>>();
    const Sample sample =
        reference_sample(static_cast<std::size_t>(layout.tokens()), want["seed"].get<std::uint64_t>());
    std::vector<double> apart;
    for (std::size_t i = 0; i < sample.a.size(); ++i) {
        apart.push_back(sample.b[i] - sample.a[i]);
    }
    const PrefixSums sums(apart, 1, layout);
    const std::vector<Statistic> statistics = {mean_of(0)};
    BootstrapOptions options{.replicates = 400};
    const Estimate got = bootstrap(sums, statistics, options)[0]; // 40 clusters: they are drawn whole
    EXPECT_NEAR(got.value, want["value"].get<double>(), 1e-12);
    EXPECT_NEAR(got.low, want["expanded"][0].get<double>(), 1e-9);
    EXPECT_NEAR(got.high, want["expanded"][1].get<double>(), 1e-9);
    EXPECT_NEAR(got.standard_error, want["standard_error"].get<double>(), 1e-12);
}

TEST(Bootstrap, WhatIsDrawn) {
    const auto units = [](std::size_t clusters, BootstrapOptions options = {}) {
        const TokenLayout layout(std::vector<std::int64_t>(clusters, 50));
        const std::vector<double> values(clusters * 50, 1.0);
        const std::span<const double> series[] = {values};
        return choose_resampling(layout, series, options);
    };
    EXPECT_EQ(units(29).unit, ResamplingUnit::blocks);
    EXPECT_EQ(units(30).unit, ResamplingUnit::clusters);
    EXPECT_TRUE(units(30).notices().empty());
    EXPECT_EQ(units(30).words(), "30 clusters drawn whole");
    EXPECT_EQ(testing::ids_of(units(29).notices()), testing::NoticeIds{NoticeId::stats_same_texts});
    EXPECT_EQ(units(1).notices().at(0).id, NoticeId::stats_same_texts);
    const Resampling five = units(5, {.unit = ResamplingUnit::clusters});
    EXPECT_EQ(testing::ids_of(five.notices()), testing::NoticeIds{NoticeId::stats_small_sample});
    EXPECT_THROW(units(1, {.unit = ResamplingUnit::clusters}), InputError);
    const Resampling few = units(1, {.block = 20});
    EXPECT_EQ(testing::ids_of(few.notices()),
              (testing::NoticeIds{NoticeId::stats_same_texts, NoticeId::stats_small_sample}));
    // At most 10,000 blocks of a chosen length, however little the tokens depend on each other.
    const std::vector<double> long_text(50'000, 1.0);
    const std::span<const double> series[] = {long_text};
    EXPECT_EQ(choose_resampling({50'000}, series).block, 5);
    EXPECT_EQ(choose_resampling({50'000}, series, {.block = 2}).block, 2);
}

TEST(BlockLength, AgreesWithArch) {
    for (const nlohmann::json& entry : reference_values()["block_length"]) {
        std::vector<double> series;
        for (std::uint64_t t = 0; t < entry["n"].get<std::uint64_t>(); ++t) {
            const double before = series.empty() ? 0.0 : entry["memory"].get<double>() * series.back();
            series.push_back(before + unit_interval(splitmix64(17, t)) - 0.5);
        }
        const double length = optimal_block_length(series, {static_cast<std::int64_t>(series.size())});
        EXPECT_NEAR(length, std::max(1.0, entry["circular"].get<double>()), 1e-9 * length) << entry;
    }
    EXPECT_EQ(optimal_block_length(std::vector<double>(100, 2.0), {100}), 1);
    EXPECT_EQ(optimal_block_length({}, {}), 1);
    EXPECT_THROW(optimal_block_length(std::vector<double>(100, 2.0), {99}), InputError);
    // Texts that differ from each other ask for blocks that are longer than what a text's own memory asks
    // for.
    std::vector<double> texts;
    for (std::uint64_t t = 0; t < 2000; ++t) {
        texts.push_back(unit_interval(splitmix64(17, t)) + (t / 400 % 2 == 0 ? 0.0 : 1.0));
    }
    const TokenLayout five(std::vector<std::int64_t>(5, 400));
    EXPECT_GT(optimal_block_length(texts, five), 20);
}

TEST(Bootstrap, DegenerateSamplesAndOptions) {
    const std::vector<Statistic> statistics = {mean_of(0)};
    const std::vector<double> flat(200, 1.5);
    BootstrapOptions short_blocks{.block = 64, .replicates = 50};
    const Estimate same = bootstrap(PrefixSums(flat, 1, {200}), statistics, short_blocks)[0];
    EXPECT_EQ(same.value, 1.5);
    EXPECT_EQ(same.low, 1.5);
    EXPECT_EQ(same.high, 1.5);
    const Estimate single =
        bootstrap(PrefixSums(std::vector<double>{2.0}, 1, {1}), statistics, short_blocks)[0];
    EXPECT_EQ(single.value, 2.0);
    EXPECT_TRUE(std::isnan(single.low)); // one block says nothing of how others would be
    EXPECT_TRUE(std::isnan(bootstrap(PrefixSums({}, 1, {}), statistics)[0].value));
    EXPECT_THROW(PrefixSums(flat, 1, {199}), InputError);
    EXPECT_THROW(PrefixSums(flat, 1, {200, 0}), InputError);
    EXPECT_THROW(PrefixSums(std::vector<double>{1, std::nan("")}, 1, {2}), InputError);
    const PrefixSums sums(flat, 1, {200});
    for (const auto& change : std::vector<std::function<void(BootstrapOptions&)>>{
             [](BootstrapOptions& o) { o.block = -1; }, [](BootstrapOptions& o) { o.replicates = 0; },
             [](BootstrapOptions& o) { o.replicates = std::int64_t{1} << 60; },
             [](BootstrapOptions& o) { o.level = 1; },
             [](BootstrapOptions& o) { o.level = std::numeric_limits<double>::quiet_NaN(); }}) {
        BootstrapOptions options;
        change(options);
        EXPECT_THROW(bootstrap(sums, statistics, options), InputError);
    }
    std::stop_source stop;
    stop.request_stop();
    BootstrapOptions options{.stop = stop.get_token()};
    EXPECT_THROW(bootstrap(sums, statistics, options), Cancelled);
}

} // namespace
} // namespace ponderscope
