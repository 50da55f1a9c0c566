// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/significance.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/splitmix.h"
#include "core/stats/rank_correlation.h"
#include "core/stats/token_groups.h"
#include "tests/support/correlation.h"
#include "tests/support/test_data.h"

#include "tests/core/stats/simulated.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace ponderscope {
namespace {

const std::filesystem::path folder = testing::source_tree() / "tests/core/stats";

const nlohmann::json& reference() {
    static const auto values = nlohmann::json::parse(read_file(folder / "significance_values.json"));
    return values;
}

TEST(Significance, StoredValuesAreThoseOfTheInstalledSciPy) {
    if (std::system("python3 -c 'import scipy, statsmodels' >/dev/null 2>&1") != 0) {
        GTEST_SKIP() << "SciPy and statsmodels are not installed; the stored values are used as they are";
    }
    EXPECT_EQ(std::system(("python3 " + (folder / "significance_values.py").string() + " --check").c_str()),
              0);
}

TEST(Significance, StudentAgreesWithSciPy) {
    for (const double p : {-0.1, 1.1, std::nan("")}) {
        EXPECT_TRUE(std::isnan(student_quantile(p, 5))) << p;
    }
    EXPECT_TRUE(std::isnan(student_quantile(0.5, 0)));
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
        const std::vector<double> q = false_discovery_q(p);
        for (std::size_t i = 0; i < p.size(); ++i) {
            EXPECT_NEAR(q[i], entry["q"][i].get<double>(), 1e-12) << entry;
        }
    }
    const std::vector<double> holes = false_discovery_q(std::vector<double>{std::nan(""), 0.01, 0.04});
    EXPECT_TRUE(std::isnan(holes[0]));
    EXPECT_NEAR(holes[1], 0.02, 1e-15);
    EXPECT_TRUE(false_discovery_q({}).empty());
}

TEST(Significance, McNemarAgreesWithStatsmodels) {
    for (const nlohmann::json& entry : reference()["mcnemar"]) {
        EXPECT_NEAR(mcnemar_p(entry["a"], entry["b"]), entry["p"].get<double>(), 1e-12) << entry;
    }
}

TEST(Significance, DetectableShiftAgreesWithStatsmodels) {
    for (const nlohmann::json& entry : reference()["power"]) {
        EXPECT_NEAR(detectable_shift(entry["n"], entry["alpha"], 0.8), entry["shift"].get<double>(), 2e-6)
            << entry;
    }
    EXPECT_NEAR(detectable_shift(1e7, 0.05, 0.8), detectable_shift(9e4, 0.05, 0.8), 1e-4);
    EXPECT_TRUE(std::isnan(detectable_shift(1, 0.05, 0.8)));
}

TEST(Significance, SignFlipsAgreeWithSciPy) {
    for (const nlohmann::json& entry : reference()["sign_flips"]) {
        // SciPy enumerates few values as we do; of many it draws 400,000 choices, whose noise is 0.0007.
        const double tolerance = entry.contains("drawn") ? 0.003 : 1e-12;
        EXPECT_NEAR(sign_flip_p(entry["values"].get<std::vector<double>>()), entry["p"].get<double>(),
                    tolerance)
            << entry;
    }
    EXPECT_EQ(sign_flip_p({}), 1);
    EXPECT_EQ(sign_flip_p(std::vector<double>(50, 0.0)), 1);
    EXPECT_EQ(sign_flip_p(std::vector<double>{3}), 1); // one unit: both signs are as far
    EXPECT_TRUE(std::isnan(sign_flip_p(std::vector<double>{3, std::nan("")})));
    // Alike units: as far only where all signs agree.
    EXPECT_NEAR(sign_flip_p(std::vector<double>(12, 0.1)), std::ldexp(1, -11), 1e-15);
    EXPECT_NEAR(sign_flip_p(std::vector<double>(12, 1)), std::ldexp(1, -11), 1e-15);
    // Many of them: the normal part errs to the safe side, here by little.
    const double p = sign_flip_p(std::vector<double>(40, 0.1));
    EXPECT_GT(p, std::ldexp(1, -39));
    EXPECT_LT(p, 1e-7);
    // Units that cancel: nothing is less far, and no probability is above 1.
    std::vector<double> cancels(40, 0.1);
    std::fill(cancels.begin() + 20, cancels.end(), -0.1);
    EXPECT_EQ(sign_flip_p(cancels), 1);
}

TEST(Significance, BandsHoldTogether) {
    // Twenty independent means: bands need 3.02 standard errors where single intervals need 1.96 (1 -
    // 0.95^(1/20)).
    std::vector<double> values(20, 1.0);
    std::vector<std::vector<double>> replicates(20);
    for (std::uint64_t e = 0; e < 20; ++e) {
        for (std::uint64_t r = 0; r < 20'000; ++r) {
            const double u = unit_interval(splitmix64(splitmix64(5, e), r));
            replicates[e].push_back(1 + 0.1 * normal_quantile(std::clamp(u, 1e-12, 1 - 1e-12)));
        }
    }
    values.push_back(7);
    replicates.emplace_back(20'000, 7.0); // does not vary
    const std::vector<Estimate> bands =
        simultaneous_bands(values, replicates, SmallSample{}, BootstrapOptions{});
    ASSERT_EQ(bands.size(), 21U);
    EXPECT_NEAR((bands[0].high - 1) / 0.1, normal_quantile((1 + std::pow(0.95, 1.0 / 20)) / 2), 0.05);
    // Of few units they lie at Student's quantile with the same tail, further out than single intervals are
    // moved.
    const SmallSample few = SmallSample::of_units(12);
    const double wider = (simultaneous_bands(values, replicates, few, BootstrapOptions{})[0].high - 1) /
                         bands[0].standard_error;
    EXPECT_NEAR(wider,
                std::sqrt(12.0 / 11) *
                    student_quantile(normal_cdf((bands[0].high - 1) / bands[0].standard_error), 11),
                1e-6);
    EXPECT_GT(wider, 1.1 * 3.02 * critical_value(few, BootstrapOptions{}) / 1.96);
    EXPECT_EQ(bands[20].low, 7);
    EXPECT_EQ(bands[20].high, 7);
    EXPECT_THROW(simultaneous_bands(values, std::span(replicates).first(3), SmallSample{}, {}), InputError);
    EXPECT_TRUE(simultaneous_bands({}, {}, SmallSample{}, {}).empty());
}

TEST(Significance, FalseDiscoveriesAreControlled) {
    // Nothing to be found: called at q < 0.05 in about one table of twenty, of 400.
    int tables = 0;
    for (std::uint64_t table = 0; table < 400; ++table) {
        std::vector<double> p;
        for (std::uint64_t i = 0; i < 50; ++i) {
            p.push_back(token_draw(5, table, i));
        }
        const std::vector<double> q = false_discovery_q(p);
        tables += *std::min_element(q.begin(), q.end()) < 0.05 ? 1 : 0;
    }
    EXPECT_GE(tables, 8);
    EXPECT_LE(tables, 34);
}

TEST(RankCorrelation, AgreesWithSciPy) {
    const nlohmann::json want = reference()["spearman"];
    const auto steps = want["steps"].get<std::vector<double>>();
    const auto nll = want["nll"].get<std::vector<double>>();
    BootstrapOptions options{.block = 8, .replicates = 1000};
    const Estimate rho = spearman_with_interval(steps, nll, TokenLayout{40, 20}, options);
    EXPECT_NEAR(rho.value, want["rho"].get<double>(), 1e-12);
    EXPECT_LT(rho.low, rho.value);
    EXPECT_GT(rho.high, rho.value);
    EXPECT_TRUE(std::isnan(
        spearman_with_interval(std::vector<double>(60, 1.0), nll, TokenLayout{60}, options).value));
    EXPECT_THROW(spearman_with_interval(steps, std::vector<double>(3), TokenLayout{60}, options), InputError);
}

TEST(RankCorrelation, ItsErrorEqualsTheSlowWay) {
    // 40 clusters of 10 tokens, some steps many times; ranks are those of the whole sample.
    TokenLayout layout;
    std::vector<double> steps, nll;
    for (std::uint64_t i = 0; i < 400; ++i) {
        layout.add(static_cast<std::int64_t>(i / 10), i % 10 > 0);
        const double u = unit_interval(splitmix64(41, i));
        steps.push_back(std::floor(4 * u * u));
        nll.push_back(u + 2 * unit_interval(splitmix64(42, i / 7)));
    }
    BootstrapOptions options{.replicates = 200};
    const Estimate found = spearman_with_interval(steps, nll, layout, options);
    const auto ranks = [](const std::vector<double>& values) {
        std::vector<double> all;
        for (const double one : values) {
            double below = 0, equal = 0;
            for (const double other : values) {
                below += other < one ? 1 : 0;
                equal += other == one ? 1 : 0;
            }
            all.push_back(below + equal / 2);
        }
        return all;
    };
    const std::vector<double> x = ranks(steps), y = ranks(nll);
    double sum = 0, squares = 0;
    for (std::uint64_t r = 0; r < 200; ++r) {
        std::vector<double> drawn_x, drawn_y;
        for (std::uint64_t i = 0; i < 40; ++i) {
            const std::uint64_t cluster = bounded(splitmix64(splitmix64(options.seed, r), i), 40);
            for (std::size_t t = cluster * 10; t < (cluster + 1) * 10; ++t) {
                drawn_x.push_back(x[t]);
                drawn_y.push_back(y[t]);
            }
        }
        const double rho = pearson(drawn_x, drawn_y);
        sum += rho;
        squares += rho * rho;
    }
    EXPECT_NEAR(found.standard_error, std::sqrt((squares - sum * sum / 200) / 199), 1e-9);
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
    const TokenLayout layout{3, 3, 2};
    GroupingOptions options;
    options.bootstrap.unit = ResamplingUnit::clusters;
    const TokenGroups groups = testing::groups_of(ids, steps, nll, layout, 3, bytes, options);
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
    // Mean 15/8, share 3/8: (x - 3/8)(steps - 15/8), summed over three clusters of 3, 3 and 2 tokens.
    const auto score = [](double x, double k) { return (x - 3.0 / 8) * (k - 15.0 / 8); };
    const std::vector<double> scores{score(1, 3) + score(0, 1) + score(1, 2),
                                     score(0, 0) + score(1, 3) + score(0, 1), score(0, 2) + score(0, 3)};
    EXPECT_NEAR(the.p, sign_flip_p(scores), 1e-12);
    EXPECT_NEAR(the.q, std::min(2 * std::min(the.p, groups.types[1].p), std::max(the.p, groups.types[1].p)),
                1e-12);
    std::int64_t counted = 0;
    for (const TokenGroup& group : groups.classes) {
        counted += group.count;
    }
    EXPECT_EQ(counted, 8);
    EXPECT_EQ(groups.classes[0].name, "word");
}

} // namespace
} // namespace ponderscope
