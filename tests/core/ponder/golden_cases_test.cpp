// SPDX-License-Identifier: GPL-3.0-or-later
// Every reference case, by the method and the backbone that it names: what decides agrees within the case's
// tolerance.
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/checkpoint/safetensors.h"
#include "tests/core/ponder/reference.h"
#include "tests/core/ponder/tiny_models.h"
#include "tests/support/known_cases.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <set>
#include <span>

namespace ponderscope {
namespace {

using testing::ReferenceComparison;
using testing::ReferenceResult;

class GoldenCase : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(GoldenCase, AgreesWithItsReference) {
    // What this build claims to run. A case of these that fails is a failure, whatever the reason.
    static const std::set<std::string> methods{"vanilla",        "looped",
                                               "pause",          "ponderlm",
                                               "ponderlm_reset", "ponderlm_hidden",
                                               "ponderlm2",      "adaponderlm",
                                               "ponderlm3",      "adaptive_latent_cot",
                                               "ouro",           "huginn",
                                               "parcae",         "tah",
                                               "dory",           "hrm_text"};
    const nlohmann::json description = read_json_file(GetParam() / "case.json");
    if (!methods.contains(description.at("method").get<std::string>()) || !testing::runs_here(GetParam())) {
        GTEST_SKIP() << "for a method or a backbone that this build does not run";
    }
    const ReferenceResult result = testing::compare_case(GetParam());
    std::size_t weights = 0;
    for (const ReferenceComparison& one : result.comparisons) {
        std::printf("  %-32s max |difference| %.2e, tolerance %.0e\n", one.name.c_str(), one.difference,
                    one.tolerance);
        EXPECT_TRUE(one.passed || !one.decides) << one.name << ", difference " << one.difference;
        if (one.name.starts_with("depth_weights.")) {
            EXPECT_TRUE(one.shape_fits) << one.name;
            EXPECT_LE(one.difference, 1e-4) << one.name;
            ++weights;
        }
    }
    EXPECT_TRUE(result.passed());
    if (GetParam().filename().string().starts_with("da_")) {
        EXPECT_GE(weights, 1U);
    }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenCase, ::testing::ValuesIn(testing::golden_cases()),
                         [](const auto& one) { return one.param.filename().string(); });

TEST(GoldenCases, AreThere) {
    EXPECT_GE(testing::golden_cases().size(), 20U) << "tests/golden alone has as many";
}

TEST(GoldenCases, ADifferenceBeyondTheToleranceFails) {
    // Our own logits as the reference, once as they are and once with one of them moved.
    const testing::TemporaryFolder folder;
    const Checkpoint checkpoint = testing::make_checkpoint(folder / "model", testing::tiny_gpt_neox());
    NamedArray logits = testing::load_engine(checkpoint).inspect_batch({{5, 6, 7, 8}}).at("logits");
    write_file_atomically(folder / "model" / "case.json", R"({"method": "vanilla", "tolerance": 1e-4})");
    const std::vector<std::int64_t> ids{5, 6, 7, 8};
    const auto compare_moved = [&](float moved) {
        NamedArray theirs = logits;
        theirs.floats.front() += moved;
        write_safetensors(folder / "model" / "golden.safetensors",
                          {{"input_ids", DType::i64, {1, 4}, std::as_bytes(std::span(ids))},
                           {"logits", DType::f32, theirs.shape, std::as_bytes(std::span(theirs.floats))}},
                          {});
        return testing::compare_case(folder / "model").passed();
    };
    EXPECT_TRUE(compare_moved(0));
    EXPECT_TRUE(compare_moved(5e-5F));
    EXPECT_FALSE(compare_moved(2e-4F));
}

} // namespace
} // namespace ponderscope
