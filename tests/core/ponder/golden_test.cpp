// SPDX-License-Identifier: GPL-3.0-or-later
// Every reference case, by the method and the backbone that it names: what decides agrees within the case's
// tolerance.
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/checkpoint/safetensors.h"
#include "tests/core/ponder/reference.h"
#include "tests/core/ponder/tiny_models.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <span>
#include <utility>

namespace ponderscope {
namespace {

using testing::ReferenceComparison;
using testing::ReferenceResult;

/// Arrays of a reference that are compared by another test, or that say how it came to the others.
bool is_checked_elsewhere(const std::string& name) {
    static const std::pair<const char*, const char*> reasons[] = {
        {"input_ids", "what is computed on"},
        {"generated", "below"},
        {"attention", "compare_attention"},
        {"grad.", "train/penalty_test"},
        {"loss.", "train/penalty_test"},
        {"train.", "train/penalty_test"},
        {"replay.", "policy/golden_test"},
        {"rerun.", "intermediates of the runs that are compared"},
        {"exit_", "below: exits over layers"},
        {"hidden.block", "below: exits over layers"},
        {"hidden.layer", "intermediates of one pass"},
        {"hidden_head.", "intermediates of one pass"},
        {"hidden.step", "outputs of single layers in a pass"},
        {"vhat.", "intermediates of depth mixing"},
        {"depth_weights.", "below: weights of depth mixing"},
        {"jacobi.", "passes of the parallel form on their way"},
        {"slot_inputs", "passes of the parallel form on their way"},
        {"hidden.", "passes of the parallel form on their way"},
        {"layer_output.", "passes of the parallel form on their way"},
        {"expected_embedding.", "passes of the parallel form on their way"},
        {"position_ids", "of the packed slots"},
        {"embeds", "of the packed slots"},
        {"argmax", "the logits say it"},
        {"halting_mass", "1 at the last step where the method mixes no states"},
        {"logits_if_recurrent_model_absent", "a config that the authors read in another way"},
        {"logits.", "read-outs on the way"},
        {"gate_logit", "the gate is its sigmoid"},
        {"router.tail_mass", "its logarithm is compared"},
        {"active", "the steps say it"},
        {"signal.entropy_difference", "follows from the entropies"},
        {"signal.rank_", "bounds of a rank between which logits are too close to tell"}};
    const std::string bare = name.starts_with("full.") ? name.substr(5) : name;
    return std::any_of(std::begin(reasons), std::end(reasons),
                       [&](const auto& one) { return bare.starts_with(one.first); });
}

/// Cases of which every array is compared, or known to be compared elsewhere: those that need no arguments.
bool is_compared_whole(const std::filesystem::path& folder) {
    const std::string name = folder.filename().string();
    for (const char* const start : {"vanilla_gpt", "vanilla_llama", "vanilla_stories", "ponderlm", "pause_",
                                    "adaponderlm_", "adaptive_"}) {
        if (name.starts_with(start)) {
            return true;
        }
    }
    return false;
}

class GoldenCase : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(GoldenCase, AgreesWithItsReference) {
    const ReferenceResult result = testing::compare_case(GetParam());
    const bool whole = is_compared_whole(GetParam());
    std::size_t weights = 0;
    for (const ReferenceComparison& one : result.comparisons) {
        std::printf("  %-32s max |difference| %.2e, tolerance %.0e\n", one.name.c_str(), one.difference,
                    one.tolerance);
        // The references of two cases count larger logits; a rank is one more.
        const bool decides =
            one.decides ||
            (whole && !(one.name == "rank" && GetParam().string().find("stories260k") != std::string::npos));
        EXPECT_TRUE(one.passed || !decides) << one.name << ", difference " << one.difference;
        if (one.name.starts_with("depth_weights.")) {
            EXPECT_TRUE(one.shape_fits) << one.name;
            EXPECT_LE(one.difference, 1e-4) << one.name;
            ++weights;
        }
    }
    EXPECT_TRUE(result.passed());
    for (const std::string& missing : result.missing) {
        EXPECT_TRUE(!whole || is_checked_elsewhere(missing))
            << missing << " is in the reference, and nothing here is compared with it";
    }
    if (GetParam().filename().string().starts_with("da_")) {
        EXPECT_GE(weights, 1U);
    }
}

/// Root mean square of a - b over the tokens that took the same steps in both; how many these are.
std::pair<double, std::size_t> rms_difference(const TokenColumns& a, const TokenColumns& b) {
    double sum = 0;
    std::size_t count = 0;
    for (std::size_t t = 0; t + 1 < a.size(); ++t) {
        if (a.steps[t] == b.steps[t]) {
            sum += std::pow(static_cast<double>(a.nll[t]) - b.nll[t], 2);
            ++count;
        }
    }
    return {std::sqrt(sum / static_cast<double>(std::max<std::size_t>(count, 1))), count};
}

/// In half precision two devices agree to some roundings only. A device is right where its error is that of
/// the CPU in the same dtype. The exact numbers are those of the CPU in fp32, which AgreesWithItsReference
/// holds to 1e-4.
TEST_P(GoldenCase, IsAsGoodInHalfPrecisionAsTheCpu) {
    if (!testing::half_precision() || !is_compared_whole(GetParam())) {
        GTEST_SKIP() << "the tests run in float32, or the case needs arguments";
    }
    const nlohmann::json description = read_json_file(GetParam() / "case.json");
    const Checkpoint checkpoint =
        Checkpoint::open(GetParam(), method_from_string(description.at("method").get<std::string>()));
    const auto length = std::min<std::int64_t>(48, checkpoint.config.max_positions);
    const std::vector<std::int32_t> text = testing::random_ids(length, checkpoint.config.vocab_size, 31);
    const auto scored = [&](const Engine& engine) {
        return testing::scored_alone(engine, {text, 0, length}, RecordLevel::basic).tokens;
    };
    const TokenColumns exact = scored(Engine::load(checkpoint));
    LoadOptions on_cpu{.precision = testing::test_precision()};
    const auto [cpu_error, cpu_tokens] = rms_difference(scored(Engine::load(checkpoint, on_cpu)), exact);
    const auto [error, tokens] = rms_difference(scored(testing::load_engine(checkpoint)), exact);
    std::printf("  RMS error of the NLL %.2e, on the CPU %.2e\n", error, cpu_error);
    EXPECT_GE(2 * tokens, cpu_tokens) << "a token halts elsewhere only where its gate is near the threshold";
    EXPECT_LE(error, 1.5 * cpu_error + 1e-4);
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
