// SPDX-License-Identifier: GPL-3.0-or-later
// `ponderscope compare` of several runs: each has one interval.
#include "core/base/splitmix.h"
#include "tests/core/cli/run_program.h"
#include "tests/core/trace/sample.h"
#include "tests/support/test_data.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace ponderscope {
namespace {

/// Runs over the same tokens, whose losses hang together over more and more of them.
void write_runs_that_drift(const std::filesystem::path& path) {
    constexpr std::int64_t length = 600;
    TraceWriter writer(path);
    int number = 0;
    for (const auto& [name, memory] : {std::pair{"a", 0.0}, {"b", 0.1}, {"slow", 0.95}}) {
        writer.begin_run(testing::sample_run(name), {});
        TokenColumns tokens = testing::sample_tokens(1, 0, length, length);
        double drift = 0;
        for (std::int64_t t = 0; t + 1 < length; ++t) {
            const auto position = static_cast<std::uint64_t>(t);
            drift = memory * drift + token_draw(static_cast<std::uint64_t>(number), 0, position) - 0.5;
            tokens.nll[static_cast<std::size_t>(t)] = static_cast<float>(3 + drift);
        }
        testing::add_sequence(writer, "text", testing::sample_text(length), tokens);
        writer.end_run(1);
        ++number;
    }
    writer.finish();
}

TEST(CompareVerb, GivesARunOneIntervalInOneReport) {
    const testing::TemporaryFolder folder;
    write_runs_that_drift(folder / "t.ponder");
    const std::string trace = (folder / "t.ponder").string();
    const auto compare = [&](std::vector<std::string> runs) {
        runs.insert(runs.begin(), "compare");
        runs.insert(runs.end(), {"--replicates", "200", "--json"});
        return nlohmann::json::parse(testing::succeed(runs))["pairs"];
    };
    const nlohmann::json two = compare({trace + "#a", trace + "#b"});
    const nlohmann::json three = compare({trace + "#a", trace + "#b", trace + "#slow"});
    ASSERT_EQ(three.size(), 2U);
    EXPECT_LT(two[0]["block"], three[1]["block"]) << "the pairs by themselves ask for other lengths";
    EXPECT_EQ(three[0]["block"], three[1]["block"]);
    EXPECT_EQ(three[0]["block_from_data"], true);
    EXPECT_EQ(three[0]["mean_nll_a"], three[1]["mean_nll_a"]);
    EXPECT_NE(three[0]["mean_nll_a"], two[0]["mean_nll_a"]);
}

} // namespace
} // namespace ponderscope
