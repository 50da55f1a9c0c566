// SPDX-License-Identifier: GPL-3.0-or-later
// How often tests reject what is true, and how often intervals hold the truth, over simulated samples whose
// truth is known. With PONDERSCOPE_CALIBRATION=full (calibrate.sh) at full size, else smaller.
#include "core/base/splitmix.h"
#include "core/stats/bootstrap.h"
#include "core/stats/paired.h"
#include "core/stats/significance.h"
#include "core/stats/token_groups.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numbers>

namespace ponderscope {
namespace {

bool full_size() {
    const char* asked = std::getenv("PONDERSCOPE_CALIBRATION");
    return asked != nullptr && std::strcmp(asked, "full") == 0;
}

/// Simulated samples of each kind: the standard error of a rate of 5 % is 0.34 % at full size, 1.3 % else.
int samples() {
    return full_size() ? 4000 : 300;
}

/// A stream of draws of Gauss.
class Normal {
public:
    explicit Normal(std::uint64_t seed) : seed_(seed) {}
    double operator()() {
        const double u = 1 - unit_interval(splitmix64(seed_, draw_++));
        const double v = unit_interval(splitmix64(seed_, draw_++));
        return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
    }
    double uniform() { return unit_interval(splitmix64(seed_, draw_++)); }

private:
    std::uint64_t seed_;
    std::uint64_t draw_ = 0;
};

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
    int naive = 0;      ///< intervals that take tokens as independent and do not hold the truth
    int covered = 0;    ///< intervals of the default kind that hold it
    int flips = 0;      ///< sign flips below 0.05
    int classes = 0;    ///< the test of a class of tokens below 0.05
    int equivalent = 0; ///< two one-sided tests that call equivalent what is exactly the margin away

    [[nodiscard]] double share(int count) const { return 100.0 * count / tried; }
};

/// One sample more. A class of tokens: a cluster's first ones, steps as in \p values.
void try_one(Rates& rates, const std::vector<double>& values, const TokenLayout& layout, Normal& draw,
             std::uint64_t seed) {
    const PrefixSums sums(values, 1, layout);
    const Statistic mean = [](std::span<const double> total, std::int64_t tokens) {
        return total[0] / static_cast<double>(tokens);
    };
    BootstrapOptions options;
    options.replicates = full_size() ? 2000 : 500;
    options.seed = seed;
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
    // At the boundary: the true difference is the margin, many errors above zero.
    std::vector<double> shifted = units.column(0);
    const double margin = 20 * found.standard_error;
    for (std::size_t u = 0; u < shifted.size(); ++u) {
        shifted[u] += margin * units.tokens[u];
    }
    rates.equivalent += equivalence_test(shifted, units.tokens, margin).p < 0.05 ? 1 : 0;
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
    GroupingOptions grouping;
    grouping.bootstrap = how.apply(options);
    const TokenGroups groups = group_tokens(ids, steps, std::vector<float>(ids.size(), 1.0F), layout,
                                            1'000'000, {"a", "b"}, grouping);
    rates.classes += groups.types.front().p < 0.05 ? 1 : 0;
}

void report(const char* name, const Rates& rates) {
    std::printf("%-44s tokens as independent %5.1f %%   sign flips %4.1f %%   class %4.1f %%   equivalence "
                "%4.1f %%   coverage %4.1f %%\n",
                name, rates.share(rates.naive), rates.share(rates.flips), rates.share(rates.classes),
                rates.share(rates.equivalent), rates.share(rates.covered));
    std::fflush(stdout);
    // At full size what is promised; at the small one what three standard errors around it allow.
    const double slack = full_size() ? 0 : 3.8;
    for (const int count : {rates.flips, rates.classes, rates.equivalent}) {
        EXPECT_GE(rates.share(count), 4 - slack) << name;
        EXPECT_LE(rates.share(count), 6.5 + slack) << name;
    }
    EXPECT_GE(rates.share(rates.covered), 93.5 - slack) << name;
    EXPECT_LE(rates.share(rates.covered), 96.5 + slack) << name;
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

} // namespace
} // namespace ponderscope
