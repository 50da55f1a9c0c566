// SPDX-License-Identifier: GPL-3.0-or-later
// How often tests reject what is true, and how often intervals hold the truth, over simulated samples whose
// truth is known. With PONDERSCOPE_CALIBRATION=full (calibrate.sh) at full size, else smaller.
#include "core/stats/bootstrap.h"
#include "core/stats/paired.h"
#include "core/stats/seeds.h"
#include "core/stats/significance.h"
#include "core/stats/token_groups.h"
#include "tests/core/stats/simulated.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace ponderscope {
namespace {

using testing::equal_methods;
using testing::Normal;

bool full_size() {
    const char* asked = std::getenv("PONDERSCOPE_CALIBRATION");
    return asked != nullptr && std::strcmp(asked, "full") == 0;
}

/// Simulated samples of each kind: the standard error of a rate of 5 % is 0.34 % at full size, 1.3 % else.
/// PONDERSCOPE_CALIBRATION_SAMPLES is another number of them for full size.
int samples() {
    const char* asked = std::getenv("PONDERSCOPE_CALIBRATION_SAMPLES");
    return full_size() ? (asked != nullptr ? std::max(100, std::atoi(asked)) : 4000) : 300;
}

int replicates() {
    return full_size() ? 2000 : 500;
}

/// Differences of two runs that are none in truth: clusters of \p size tokens (half to one and a half times
/// that where \p uneven), a share \p correlation of the variance between clusters.
struct Clustered {
    std::vector<double> values;
    TokenLayout layout;
};
Clustered clustered(Normal& draw, int clusters, int size, double correlation, bool uneven) {
    Clustered sample;
    for (int g = 0; g < clusters; ++g) {
        const double mine = std::sqrt(correlation) * draw();
        const int tokens = uneven ? size / 2 + static_cast<int>(draw.uniform() * (size + 1)) : size;
        for (int t = 0; t < tokens; ++t) {
            sample.values.push_back(mine + std::sqrt(1 - correlation) * draw());
            sample.layout.add(g, t > 0);
        }
    }
    return sample;
}

/// One text whose differences are an AR(1) process of variance 1.
std::vector<double> series(Normal& draw, int tokens, double memory) {
    std::vector<double> values;
    double state = draw();
    for (int t = 0; t < tokens; ++t) {
        state = memory * state + std::sqrt(1 - memory * memory) * draw();
        values.push_back(state);
    }
    return values;
}

struct Rates {
    int tried = 0;
    int naive = 0;   ///< intervals that take tokens as independent and do not hold the truth
    int covered = 0; ///< intervals of the default kind that hold it
    int flips = 0;   ///< sign flips below 0.05
    int classes = 0; ///< the test of a class of tokens below 0.05

    [[nodiscard]] double share(int count) const { return 100.0 * count / tried; }
};

/// One sample more. A class of tokens: a cluster's first ones, steps as in \p values.
void try_one(Rates& rates, const std::vector<double>& values, const TokenLayout& layout, Normal& draw,
             std::uint64_t seed) {
    const PrefixSums sums(values, 1, layout);
    const Statistic mean = [](std::span<const double> total, std::int64_t tokens) {
        return total[0] / static_cast<double>(tokens);
    };
    BootstrapOptions options{.replicates = replicates(), .seed = seed, .threads = 1};
    const std::span<const double> list[] = {values};
    const Resampling how = choose_resampling(layout, list, options);
    const Estimate found = bootstrap(sums, {&mean, 1}, how.apply(options)).front();
    ++rates.tried;
    rates.covered += found.low <= 0 && 0 <= found.high ? 1 : 0;
    const UnitSums units = unit_sums(sums, how);
    rates.flips += sign_flip_p(units.column(0)) < 0.05 ? 1 : 0;
    Moments moments;
    for (const double value : values) {
        moments.add(value);
    }
    const double error = std::sqrt(moments.variance() / static_cast<double>(moments.count));
    rates.naive += std::abs(moments.mean) > 1.96 * error ? 1 : 0;
    // A class that has nothing to do with the values: some clusters or places have more of it than others.
    std::vector<std::int32_t> ids;
    std::vector<std::int32_t> steps;
    std::size_t at = 0;
    for (const std::int64_t length : layout.stretches) {
        double share = 0.15 + 0.5 * draw.uniform();
        for (std::int64_t t = 0; t < length; ++t, ++at) {
            if (t % 50 == 49) {
                share = 0.15 + 0.5 * draw.uniform();
            }
            ids.push_back(draw.uniform() < share ? 0 : 1);
            steps.push_back(static_cast<std::int32_t>(std::lround(100 * values[at])));
        }
    }
    GroupingOptions grouping{.bootstrap = how.apply(options)};
    const TokenGroups groups = testing::groups_of(ids, steps, std::vector<float>(ids.size(), 1.0F), layout,
                                                  1'000'000, {"a", "b"}, grouping);
    rates.classes += groups.types.front().p < 0.05 ? 1 : 0;
}

/// At full size what is promised; with fewer samples what three standard errors around it allow.
double slack() {
    return samples() >= 4000 ? 0 : 3 * 100 * std::sqrt(0.05 * 0.95 / samples());
}

// However few the samples: intervals that are far too wide hold always, and tests that say nothing reject
// never.
void expect_coverage(const char* name, double covered) {
    EXPECT_GE(covered, 93.5 - slack()) << name;
    EXPECT_LE(covered, std::min(96.5 + slack(), 99.0)) << name;
}

void expect_rejected(const char* name, double rejected) {
    EXPECT_GE(rejected, std::max(4 - slack(), 1.5)) << name;
    EXPECT_LE(rejected, 6.5 + slack()) << name;
}

void report(const char* name, const Rates& rates) {
    std::printf(
        "%-44s tokens as independent %5.1f %%   sign flips %4.1f %%   class %4.1f %%   coverage %4.1f %%\n",
        name, rates.share(rates.naive), rates.share(rates.flips), rates.share(rates.classes),
        rates.share(rates.covered));
    std::fflush(stdout);
    for (const int count : {rates.flips, rates.classes}) {
        expect_rejected(name, rates.share(count));
    }
    expect_coverage(name, rates.share(rates.covered));
}

TEST(Calibration, OverClusters) {
    for (const int clusters : {30, 50, 200}) {
        for (const double correlation : {0.0, 0.3, 0.7}) {
            for (const bool uneven : {false, true}) {
                Rates rates;
                for (int s = 0; s < samples(); ++s) {
                    Normal draw(splitmix64(71, static_cast<std::uint64_t>(s)));
                    const Clustered sample = clustered(draw, clusters, 10, correlation, uneven);
                    try_one(rates, sample.values, sample.layout, draw, static_cast<std::uint64_t>(s));
                }
                char name[64];
                std::snprintf(name, sizeof name, "%d clusters, ICC %.1f, %s", clusters, correlation,
                              uneven ? "5 to 15 tokens" : "10 tokens");
                report(name, rates);
            }
        }
    }
}

TEST(Calibration, WhatNaiveIntervalsDo) {
    // The figures of the literature: 50 clusters of 10 tokens at an intra-class correlation of 0.71.
    Rates rates;
    for (int s = 0; s < samples(); ++s) {
        Normal draw(splitmix64(72, static_cast<std::uint64_t>(s)));
        const Clustered sample = clustered(draw, 50, 10, 0.71, false);
        try_one(rates, sample.values, sample.layout, draw, static_cast<std::uint64_t>(s));
    }
    report("50 clusters, ICC 0.71, 10 tokens", rates);
    EXPECT_GT(rates.share(rates.naive), 37);
    EXPECT_LT(rates.share(rates.naive), 49);
}

TEST(Calibration, OverBlocksOfOneText) {
    for (const int tokens : {2000, 8000}) {
        for (const double memory : {0.0, 0.3, 0.6}) {
            Rates rates;
            for (int s = 0; s < samples(); ++s) {
                Normal draw(splitmix64(73, static_cast<std::uint64_t>(s)));
                const std::vector<double> values = series(draw, tokens, memory);
                try_one(rates, values, {tokens}, draw, static_cast<std::uint64_t>(s));
            }
            char name[64];
            std::snprintf(name, sizeof name, "one text of %d tokens, AR(1) %.1f", tokens, memory);
            report(name, rates);
        }
    }
}

/// Rules at several costs, none of which differs in truth: how often one of the bands misses zero.
TEST(Calibration, BandsHoldTogether) {
    for (const int clusters : {30, 50, 200}) {
        for (const std::size_t estimates : {std::size_t{3}, std::size_t{18}}) {
            int together = 0;
            int alone = 0;
            for (int s = 0; s < samples(); ++s) {
                Normal draw(splitmix64(76, static_cast<std::uint64_t>(s)));
                TokenLayout layout;
                std::vector<double> values;
                for (int g = 0; g < clusters; ++g) {
                    // Costs of one rule are alike, rules less so.
                    std::vector<double> cluster;
                    double rule = 0;
                    for (std::size_t e = 0; e < estimates; ++e) {
                        rule = e % 3 == 0 ? draw() : rule;
                        cluster.push_back(std::sqrt(0.2) * rule + std::sqrt(0.1) * draw());
                    }
                    for (int t = 0; t < 10; ++t) {
                        layout.add(g, t > 0);
                        for (std::size_t e = 0; e < estimates; ++e) {
                            rule = e % 3 == 0 ? draw() : rule;
                            values.push_back(cluster[e] + std::sqrt(0.5) * rule + std::sqrt(0.2) * draw());
                        }
                    }
                }
                const PrefixSums sums(values, estimates, layout);
                BootstrapOptions options{
                    .replicates = replicates(), .seed = static_cast<std::uint64_t>(s), .threads = 1};
                const Resampling how = choose_resampling(layout, {}, options);
                std::vector<std::vector<double>> drawn(
                    estimates, std::vector<double>(static_cast<std::size_t>(options.replicates)));
                for_each_replicate(sums, how, options,
                                   [&](std::int64_t r, std::span<const double> total, std::int64_t tokens) {
                                       for (std::size_t e = 0; e < estimates; ++e) {
                                           drawn[e][static_cast<std::size_t>(r)] =
                                               total[e] / static_cast<double>(tokens);
                                       }
                                   });
                std::vector<double> found;
                for (const double sum : sums.before(sums.tokens())) {
                    found.push_back(sum / static_cast<double>(sums.tokens()));
                }
                const SmallSample small = SmallSample::of_units(how.units);
                bool all = true;
                for (const Estimate& band : simultaneous_bands(found, drawn, small, options)) {
                    all = all && band.low <= 0 && 0 <= band.high;
                }
                together += all ? 1 : 0;
                bool every = true;
                for (std::size_t e = 0; e < estimates; ++e) {
                    const Estimate one = interval_of(found[e], drawn[e], small, options);
                    every = every && one.low <= 0 && 0 <= one.high;
                }
                alone += every ? 1 : 0;
            }
            char name[64];
            std::snprintf(name, sizeof name, "%d clusters, %zu estimates", clusters, estimates);
            const auto share = [](int count) { return 100.0 * count / samples(); };
            std::printf("%-44s all hold: bands %4.1f %%   intervals %4.1f %%\n", name, share(together),
                        share(alone));
            std::fflush(stdout);
            expect_coverage(name, share(together));
            EXPECT_LT(share(alone), share(together)) << name << ": intervals are for one estimate";
        }
    }
}

/// Methods that are equally good, runs that differ more than the text does.
TEST(Calibration, OverSeeds) {
    struct Case {
        std::size_t a, b;
        double between;
        bool paired;
    };
    for (const Case& one :
         {Case{3, 3, 0.2, false}, Case{5, 5, 0.2, false}, Case{6, 6, 0.2, false}, Case{10, 10, 0.2, false},
          Case{10, 5, 0.2, false}, Case{6, 6, 0.02, false}, Case{6, 6, 0.2, true}}) {
        int rejected = 0;
        int covered = 0;
        int text_alone = 0;
        for (int s = 0; s < samples(); ++s) {
            SeedSample sample = equal_methods(splitmix64(91, static_cast<std::uint64_t>(s)), one.a, one.b,
                                              one.between, one.paired);
            BootstrapOptions options{
                .replicates = replicates(), .seed = static_cast<std::uint64_t>(s), .threads = 1};
            const SeedComparison found = compare_seeds(sample, one.paired, options);
            rejected += found.p < 0.05 ? 1 : 0;
            const bool holds = found.difference.low <= 0 && 0 <= found.difference.high;
            covered += holds ? 1 : 0;
            if (std::min(one.a, one.b) < 5) {
                EXPECT_EQ(holds, found.p >= 0.05) << "interval and p lean on one error";
            }
            sample.a.resize(1);
            sample.b.resize(1);
            options.replicates = 50; // p alone, which needs no replicates
            text_alone += compare_seeds(sample, false, options).p < 0.05 ? 1 : 0;
        }
        char name[64];
        std::snprintf(name, sizeof name, "%zu and %zu seeds that differ by %.2f%s", one.a, one.b, one.between,
                      one.paired ? ", paired" : "");
        const auto share = [](int count) { return 100.0 * count / samples(); };
        std::printf(
            "%-44s rejected %4.1f %%   coverage %4.1f %%   one checkpoint a side: rejected %4.1f %%\n", name,
            share(rejected), share(covered), share(text_alone));
        std::fflush(stdout);
        if (std::min(one.a, one.b) >= 5) { // below, a sentence says that it leans on the normal
            expect_rejected(name, share(rejected));
            expect_coverage(name, share(covered));
        }
        if (one.between > 0.1) {
            EXPECT_GT(share(text_alone), 50) << name;
        }
    }
}

} // namespace
} // namespace ponderscope
