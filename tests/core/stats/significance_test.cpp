// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/significance.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/splitmix.h"
#include "core/stats/front.h"
#include "core/stats/rank_correlation.h"
#include "core/stats/token_groups.h"
#include "tests/support/test_data.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <numbers>

namespace ponderscope {
namespace {

const std::filesystem::path folder = testing::source_tree() / "tests/core/stats";

const nlohmann::json& reference() {
    static const auto values = nlohmann::json::parse(read_file(folder / "significance_values.json"));
    return values;
}

Moments moments_of(const std::vector<double>& values) {
    Moments moments;
    for (const double value : values) {
        moments.add(value);
    }
    return moments;
}

TEST(Significance, StoredValuesAreThoseOfTheInstalledSciPy) {
    if (std::system("python3 -c 'import scipy, statsmodels' >/dev/null 2>&1") != 0) {
        GTEST_SKIP() << "SciPy and statsmodels are not installed; the stored values are used as they are";
    }
    EXPECT_EQ(std::system(("python3 " + (folder / "significance_values.py").string() + " --check").c_str()),
              0);
}

TEST(Significance, WelchAgreesWithSciPy) {
    for (const nlohmann::json& entry : reference().at("welch")) {
        const double p = welch_p(moments_of(entry["a"]), moments_of(entry["b"]));
        const double expected = entry["p"];
        EXPECT_NEAR(p, expected, 1e-10 * std::max(expected, 1e-3)) << entry["a"] << entry["b"];
    }
    EXPECT_EQ(welch_p(moments_of({1, 1}), moments_of({1, 1})), 1);
    EXPECT_EQ(welch_p(moments_of({1, 1}), moments_of({2, 2})), 0);
    EXPECT_TRUE(std::isnan(welch_p(moments_of({1}), moments_of({1, 2}))));
}

TEST(Significance, StudentAgreesWithSciPy) {
    for (const nlohmann::json& entry : reference().at("student")) {
        const double expected = entry[2];
        EXPECT_NEAR(student_cdf(entry[0], entry[1]), expected, 1e-9 * expected + 1e-15) << entry;
    }
    EXPECT_TRUE(std::isnan(student_cdf(0, 0)));
    EXPECT_TRUE(std::isnan(student_cdf(std::nan(""), 3)));
}

TEST(Significance, FalseDiscoveryControlAgreesWithStatsmodels) {
    for (const nlohmann::json& entry : reference().at("discovery")) {
        const auto p = entry["p"].get<std::vector<double>>();
        const std::vector<double> q = benjamini_hochberg(p);
        for (std::size_t i = 0; i < p.size(); ++i) {
            EXPECT_NEAR(q[i], entry["q"][i].get<double>(), 1e-12) << entry;
        }
    }
    const std::vector<double> holes = benjamini_hochberg(std::vector<double>{std::nan(""), 0.01, 0.04});
    EXPECT_TRUE(std::isnan(holes[0]));
    EXPECT_NEAR(holes[1], 0.02, 1e-15);
    EXPECT_TRUE(benjamini_hochberg({}).empty());
}

TEST(Significance, FalseDiscoveriesAreControlled) {
    // Nothing to be found: called at q < 0.05 in about one table of twenty, of 400.
    int tables = 0;
    for (std::uint64_t table = 0; table < 400; ++table) {
        std::vector<double> p;
        for (std::uint64_t i = 0; i < 50; ++i) {
            p.push_back(token_draw(5, table, i));
        }
        const std::vector<double> q = benjamini_hochberg(p);
        tables += *std::min_element(q.begin(), q.end()) < 0.05 ? 1 : 0;
    }
    EXPECT_GE(tables, 8);
    EXPECT_LE(tables, 34);
}

TEST(Significance, MomentsOfTheRest) {
    const std::vector<double> part{1, 5, 2};
    const std::vector<double> rest{7, 7.5, -3, 0};
    std::vector<double> whole = part;
    whole.insert(whole.end(), rest.begin(), rest.end());
    const Moments left = Moments::without(moments_of(whole), moments_of(part));
    EXPECT_EQ(left.count, 4);
    EXPECT_NEAR(left.mean, moments_of(rest).mean, 1e-12);
    EXPECT_NEAR(left.variance(), moments_of(rest).variance(), 1e-12);
    EXPECT_EQ(Moments::without(moments_of(part), moments_of(part)).count, 0);
}

TEST(RankCorrelation, AgreesWithSciPy) {
    const nlohmann::json want = reference()["spearman"];
    const auto steps = want["steps"].get<std::vector<double>>();
    const auto nll = want["nll"].get<std::vector<double>>();
    BootstrapOptions options;
    options.block = 8;
    options.replicates = 1000;
    const Estimate rho = spearman_with_interval(steps, nll, {40, 20}, options);
    EXPECT_NEAR(rho.value, want["rho"].get<double>(), 1e-12);
    EXPECT_LT(rho.low, rho.value);
    EXPECT_GT(rho.high, rho.value);
    EXPECT_TRUE(std::isnan(spearman_with_interval(std::vector<double>(60, 1.0), nll, {60}, options).value));
    EXPECT_THROW(spearman_with_interval(steps, std::vector<double>(3), {60}, options), InputError);
}

TEST(TokenGroups, ClassesOfTokens) {
    const struct {
        const char* bytes;
        const char* name;
    } cases[] = {
        {"", "empty"},
        {" ", "white space"},
        {"\n\n", "white space"},
        {" the", "word"},
        {"ing", "word part"},
        {" 12", "number"},
        {"7", "number"},
        {",", "punctuation"},
        {" (", "punctuation"},
        {"\xC3\xBC", "word part"},
        {"\xBC", "piece of a character"},
        {" x9", "word"},
    };
    for (const auto& [bytes, name] : cases) {
        EXPECT_EQ(token_class(bytes), name) << bytes;
    }
}

TEST(TokenGroups, CountWhatEachTypeDoes) {
    const float none = std::numeric_limits<float>::quiet_NaN();
    const std::vector<std::string> bytes{" the", "a", ","};
    const std::vector<std::int32_t> ids{0, 1, 0, 2, 0, 1, 1, 7, 0};
    const std::vector<std::int32_t> steps{3, 1, 2, 0, 3, 1, 2, 3, 0};
    const std::vector<float> nll{1, 2, 3, 4, 2, 2, 2, 9, none};
    const TokenGroups groups = group_tokens(ids, steps, nll, 3, bytes);
    EXPECT_EQ(groups.scored, 8);
    ASSERT_EQ(groups.types.size(), 2U); // those that came once are no test
    const TokenGroup& the = groups.types[0];
    EXPECT_EQ(the.id, 0);
    EXPECT_EQ(the.name, " the");
    EXPECT_EQ(the.count, 3);
    EXPECT_NEAR(the.mean_steps, 8.0 / 3, 1e-12);
    EXPECT_NEAR(the.mean_nll, 2, 1e-12);
    EXPECT_NEAR(the.dropped, 1.0 / 3, 1e-12);
    EXPECT_NEAR(the.steps_elsewhere, 7.0 / 5, 1e-12);
    EXPECT_NEAR(the.p, welch_p(moments_of({3, 2, 3}), moments_of({1, 0, 1, 2, 3})), 1e-12);
    EXPECT_NEAR(the.q, std::min(2 * std::min(the.p, groups.types[1].p), std::max(the.p, groups.types[1].p)),
                1e-12);
    std::int64_t counted = 0;
    for (const TokenGroup& group : groups.classes) {
        counted += group.count;
    }
    EXPECT_EQ(counted, 8);
    EXPECT_EQ(groups.classes[0].name, "word");
    EXPECT_THROW(group_tokens(ids, {}, nll, 3, bytes), InputError);
}

/// One draw of Gauss.
double normal(std::uint64_t seed, std::uint64_t n) {
    const double u = 1 - unit_interval(splitmix64(seed, 2 * n));
    const double v = unit_interval(splitmix64(seed, 2 * n + 1));
    return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

TEST(Coverage, OfPairedDifferencesOfAutocorrelatedNll) {
    // Skewed losses with memory: NLL = 3 exp(0.4 x), x an AR(1) process with coefficient 0.6, of 12 texts of
    // 1024 tokens; the other model is worse by 2 % of the loss and noise. The true difference is known.
    constexpr std::uint64_t sets = 1000;
    constexpr std::size_t texts = 12;
    constexpr std::size_t length = 1024;
    constexpr double memory = 0.6;
    const double truth = 0.02 * 3 * std::exp(0.08 / (1 - memory * memory));
    int covers[2] = {0, 0};
    for (std::uint64_t set = 0; set < sets; ++set) {
        const std::uint64_t seed = splitmix64(4711, set);
        std::vector<double> a;
        std::vector<double> b;
        std::uint64_t draw = 0;
        for (std::size_t text = 0; text < texts; ++text) {
            double x = normal(seed, draw++) / std::sqrt(1 - memory * memory); // in its steady state
            for (std::size_t t = 0; t < length; ++t) {
                x = memory * x + normal(seed, draw++);
                a.push_back(3 * std::exp(0.4 * x));
                b.push_back(a.back() * 1.02 + 0.1 * normal(seed, draw++));
            }
        }
        BootstrapOptions options;
        options.replicates = 400;
        options.seed = set;
        for (const IntervalKind kind : {IntervalKind::percentile, IntervalKind::bca}) {
            options.kind = kind;
            const Estimate estimate = paired_differences(
                a, std::vector<std::vector<double>>{b}, std::vector<std::int64_t>(texts, length), options)[0];
            covers[kind == IntervalKind::bca ? 1 : 0] +=
                estimate.low <= truth && truth <= estimate.high ? 1 : 0;
        }
    }
    std::printf(
        "95 %% intervals of the paired difference cover the truth in %.1f %% (percentile) and %.1f %% (BCa) "
        "of %d simulations\n",
        100.0 * covers[0] / static_cast<double>(sets), 100.0 * covers[1] / static_cast<double>(sets),
        static_cast<int>(sets));
    for (const int count : covers) {
        EXPECT_GE(count, 930);
        EXPECT_LE(count, 970);
    }
}

} // namespace
} // namespace ponderscope
