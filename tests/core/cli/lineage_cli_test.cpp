// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/core/cli/run_program.h"
#include "tests/support/test_data.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace ponderscope {
namespace {

using testing::run_ponderscope;

std::string sample(const std::string& name) {
    return testing::source_tree() / "sample_models" / name;
}

TEST(LineageVerb, SaysAVerdictAndWhatItRestsOn) {
    const std::string words =
        testing::succeed({"lineage", sample("vanilla-neox-1m"), sample("ponderlm-neox-1m")});
    EXPECT_NE(words.find("common origin: "), std::string::npos) << words;
    EXPECT_NE(words.find("Basis: "), std::string::npos) << words;

    const nlohmann::json report =
        testing::json_of({"lineage", sample("vanilla-neox-1m"), sample("chains/vanilla"), "--tokens", "50"});
    EXPECT_EQ(report.at("verdict"), "no common origin found");
    EXPECT_LT(report.at("awm").at("z").get<double>(), 3);
    EXPECT_LT(report.at("awm").at("similarity"), report.at("awm").at("common_origin_from"));
    EXPECT_NEAR(report.at("awm").at("common_origin_from").get<double>(),
                0.00375 + 6 * std::max(0.0028, report.at("awm").at("chance_deviation").get<double>()), 1e-12);
    EXPECT_EQ(report.at("awm").at("layer_pairs").size(), 1U);
    EXPECT_EQ(report.at("huref").at("tokens"), 50);
    EXPECT_TRUE(report.at("huref").at("ics").is_number());
}

TEST(LineageVerb, WrongUseIsASentence) {
    const auto absent = run_ponderscope({"lineage", sample("vanilla-neox-1m"), "/nowhere/at-all"});
    EXPECT_EQ(absent.code, 2);
    EXPECT_NE(absent.err.find("/nowhere/at-all"), std::string::npos) << absent.err;
    EXPECT_EQ(absent.out, "");
    EXPECT_EQ(run_ponderscope({"lineage", sample("vanilla-neox-1m")}).code, 2);
    const std::string help = testing::succeed({"lineage", "--help"});
    EXPECT_NE(help.find("Example:"), std::string::npos);
}

} // namespace
} // namespace ponderscope
