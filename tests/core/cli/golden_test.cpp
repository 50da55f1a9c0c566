// SPDX-License-Identifier: GPL-3.0-or-later
// Reference models as the program runs them; tests/core/ponder/golden_test.cpp compares every case.
#include "core/base/files.h"
#include "tests/core/cli/run_program.h"
#include "tests/support/test_data.h"

#include <gtest/gtest.h>

#include <set>

namespace ponderscope {
namespace {

using namespace testing;

TEST(Golden, ASourceCanBeLeftOut) {
    PONDERSCOPE_REQUIRE_GOLDEN("da_llama_gqa_stride2_window2");
    const std::string model = golden_case("da_llama_gqa_stride2_window2").string();
    const TemporaryFolder temporary;
    write_file_atomically(temporary / "ids.json", "[[1, 5, 9, 200, 31, 77, 5, 9, 12, 400, 3, 8]]");
    const std::string trace = (temporary / "t.ponder").string();
    std::set<std::string> means;
    std::set<std::string> names;
    const std::vector<std::vector<std::string>> changes{{},
                                                        {"--ablate-source", "2"},
                                                        {"--ablate-source", "2:5"},
                                                        {"--ablate-source", "0", "--ablate-source", "4:5"}};
    for (const std::vector<std::string>& change : changes) {
        const std::string result = succeed(
            Words{"record", model, "--ids", (temporary / "ids.json").string(), "-o", trace, "--json"} +
            change);
        const nlohmann::json report = nlohmann::json::parse(result);
        means.insert(report.at("mean_nll").dump());
        names.insert(report.at("run").get<std::string>());
    }
    EXPECT_EQ(means.size(), changes.size()) << "every change changes the result";
    EXPECT_TRUE(names.contains("da_llama_gqa_stride2_window2-without-source-2")) << *names.begin();
    EXPECT_TRUE(names.contains("da_llama_gqa_stride2_window2-without-source-2-in-layer-5"));
    const auto refusal = [&](const std::string& folder, const std::string& spec) {
        const ProgramResult result =
            run_ponderscope({"record", folder, "--ids", (temporary / "ids.json").string(), "-o", trace,
                             "--ablate-source", spec});
        EXPECT_EQ(result.code, 2) << spec;
        return result.err;
    };
    EXPECT_NE(refusal(model, "3:4:1").find("[usage.value]"), std::string::npos);
    EXPECT_NE(refusal(model, "-1").find("[usage.value]"), std::string::npos);
    EXPECT_NE(refusal(model, "5").find("[usage.value]"), std::string::npos);
    EXPECT_NE(refusal(model, "1:5").find("[usage.value]"), std::string::npos);
    EXPECT_NE(refusal(golden_case("mhc_llama_4streams").string(), "0").find("[usage.unsuited]"),
              std::string::npos);
}

} // namespace
} // namespace ponderscope
