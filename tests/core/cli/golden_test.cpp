// SPDX-License-Identifier: GPL-3.0-or-later
// Reference models as the program runs them; tests/core/ponder/golden_test.cpp compares every case.
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/checkpoint/safetensors.h"
#include "tests/core/cli/run_program.h"
#include "tests/support/test_data.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iostream>
#include <set>

namespace ponderscope {
namespace {

using testing::ProgramResult;
using testing::run_ponderscope;
using testing::succeed;
using testing::TemporaryFolder;
using testing::test_data;

TEST(Golden, ASourceCanBeLeftOut) {
    PONDERSCOPE_REQUIRE_GOLDEN("da_llama_gqa_stride2_window2");
    const std::string model = testing::golden_case("da_llama_gqa_stride2_window2").string();
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
        const std::string result =
            succeed(testing::Words{"record", model, "--ids", (temporary / "ids.json").string(), "-o", trace,
                                   "--json"} +
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
    EXPECT_NE(refusal(testing::golden_case("mhc_llama_4streams").string(), "0").find("[usage.unsuited]"),
              std::string::npos);
}

TEST(Golden, Stories260kAgreesWithItsReferenceIdsAndLogits) {
    PONDERSCOPE_REQUIRE_TEST_DATA("external/checkpoints/stories260K_hf/golden.json");
    const std::filesystem::path folder = test_data() / "external/checkpoints/stories260K_hf";
    const nlohmann::json golden = read_json_file(folder / "golden.json");
    const auto ids = golden.at("ids").get<std::vector<std::int64_t>>();
    const auto expected = golden.at("logits_first_8_positions").get<std::vector<std::vector<float>>>();

    const TemporaryFolder temporary;
    write_file_atomically(temporary / "ids.json", nlohmann::json{ids}.dump());
    const std::string out = (temporary / "out.safetensors").string();
    succeed({"logits", folder.string(), "--ids", (temporary / "ids.json").string(), "-o", out});
    const SafetensorsFile file = SafetensorsFile::open(out);
    const TensorView& tensor = *file.find("logits");
    const auto vocabulary = static_cast<std::size_t>(tensor.shape.at(2));
    std::vector<float> logits(ids.size() * vocabulary);
    ASSERT_EQ(tensor.bytes.size(), logits.size() * sizeof(float));
    std::memcpy(logits.data(), tensor.bytes.data(), tensor.bytes.size());

    float largest = 0;
    for (std::size_t t = 0; t < expected.size(); ++t) {
        for (std::size_t v = 0; v < vocabulary; ++v) {
            largest = std::max(largest, std::abs(logits[t * vocabulary + v] - expected[t][v]));
        }
    }
    std::cout << "stories260K logits: max |difference| " << largest << " (tolerance 1e-4)\n";
    EXPECT_LE(largest, 1e-4F);
    // The reference is a greedy continuation: at every position the next id is the most likely one.
    for (std::size_t t = 0; t + 1 < ids.size(); ++t) {
        const auto row = logits.begin() + static_cast<std::ptrdiff_t>(t * vocabulary);
        EXPECT_EQ(std::max_element(row, row + static_cast<std::ptrdiff_t>(vocabulary)) - row, ids[t + 1])
            << "position " << t;
    }
    write_file_atomically(temporary / "text.txt", golden.at("text").get<std::string>());
    const std::string tokens =
        succeed({"tokenize", folder.string(), "--text", (temporary / "text.txt").string()});
    EXPECT_EQ(nlohmann::json::parse(tokens).at(0).get<std::vector<std::int64_t>>(), ids);
}

} // namespace
} // namespace ponderscope
