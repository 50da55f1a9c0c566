// SPDX-License-Identifier: GPL-3.0-or-later
// What other implementations computed on small checkpoints, tensor by tensor.
#include "tests/core/ponder/reference.h"
#include "tests/core/ponder/tiny_models.h"
#include "tests/support/test_data.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ponderscope {
namespace {

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
        {"rerun.", "cli/rerun_cli_test and golden_cases_test"},
        {"exit_", "golden_cases_test: exits over layers"},
        {"hidden.block", "golden_cases_test: exits over layers"},
        {"hidden.layer", "intermediates of one pass"},
        {"hidden_head.", "intermediates of one pass"},
        {"hidden.step", "outputs of single layers in a pass"},
        {"vhat.", "intermediates of depth mixing"},
        {"depth_weights.", "golden_cases_test: weights of depth mixing"},
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

class Golden : public ::testing::TestWithParam<const char*> {};

TEST_P(Golden, EqualsTheReference) {
    const std::string name = GetParam();
    PONDERSCOPE_REQUIRE_GOLDEN(name);
    const std::filesystem::path folder = testing::golden_case(name);
    nlohmann::json description;
    std::ifstream(folder / "case.json") >> description;
    Engine engine = testing::load_engine(
        Checkpoint::open(folder, method_from_string(description.at("method").get<std::string>())));
    const testing::ReferenceResult result = testing::compare_with_reference(engine, folder);
    std::size_t deciding = 0;
    for (const testing::ReferenceComparison& one : result.comparisons) {
        deciding += one.name == "nll" || one.name == "logits" || one.name == "logits_tail" ? 1 : 0;
        EXPECT_TRUE(one.shape_fits) << one.name;
        if (one.name == "rank" && name.starts_with("vanilla_stories")) {
            continue; // these two references count larger logits; a rank is one more
        }
        EXPECT_TRUE(one.passed) << one.name << ", difference " << one.difference;
        std::printf("  %-32s max |difference| %.2e, tolerance %.0e\n", one.name.c_str(), one.difference,
                    one.tolerance);
    }
    EXPECT_GE(deciding, 2U) << "the logits and the NLL";
    for (const std::string& missing : result.missing) {
        EXPECT_TRUE(is_checked_elsewhere(missing))
            << missing << " is in the reference, and nothing here is compared with it";
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
/// the CPU in the same dtype. The exact numbers are those of the CPU in fp32, which EqualsTheReference holds
/// to 1e-4.
TEST_P(Golden, IsAsGoodInHalfPrecisionAsTheCpu) {
    if (!testing::half_precision()) {
        GTEST_SKIP() << "the tests run in float32";
    }
    const std::string name = GetParam();
    PONDERSCOPE_REQUIRE_GOLDEN(name);
    const std::filesystem::path folder = testing::golden_case(name);
    nlohmann::json description;
    std::ifstream(folder / "case.json") >> description;
    const Checkpoint checkpoint =
        Checkpoint::open(folder, method_from_string(description.at("method").get<std::string>()));
    const auto length = std::min<std::int64_t>(48, checkpoint.config.max_positions);
    const std::vector<std::int32_t> text = testing::random_ids(length, checkpoint.config.vocab_size, 31);
    const Window window{text, 0, length};
    const auto scored = [&](const Engine& engine) {
        return engine.score(std::span(&window, 1), RecordLevel::basic).front().tokens;
    };
    const TokenColumns exact = scored(Engine::load(checkpoint));
    LoadOptions on_cpu;
    on_cpu.precision = testing::test_precision();
    const auto [cpu_error, cpu_tokens] = rms_difference(scored(Engine::load(checkpoint, on_cpu)), exact);
    const auto [error, tokens] = rms_difference(scored(testing::load_engine(checkpoint)), exact);
    std::printf("  RMS error of the NLL %.2e, on the CPU %.2e\n", error, cpu_error);
    EXPECT_GE(2 * tokens, cpu_tokens) << "a token halts elsewhere only where its gate is near the threshold";
    EXPECT_LE(error, 1.5 * cpu_error + 1e-4);
}

INSTANTIATE_TEST_SUITE_P(
    Vanilla, Golden,
    ::testing::Values("vanilla_gpt_neox_layers", "vanilla_gpt_neox_parallel_pct25_padded_exit",
                      "vanilla_gpt_neox_sequential_pct100_nobias", "vanilla_llama_gqa_untied_eps01_exit",
                      "vanilla_llama_head_dim_biases_linear_tied", "vanilla_llama_minimal_config_f16",
                      "vanilla_llama_rope_dynamic", "vanilla_llama_rope_llama3_sharded",
                      "vanilla_llama_rope_yarn", "vanilla_llama_stories_bf16_sharded",
                      "vanilla_stories260k_story_400", "vanilla_stories260k_story_400_b",
                      "ponderlm2code_vanilla_llama_stories_flag_off"),
    [](const auto& one) { return std::string(one.param); });

INSTANTIATE_TEST_SUITE_P(PonderLm, Golden,
                         ::testing::Values("ponderlm_gpt_neox_multiply_start",
                                           "ponderlm_neox_s3_scaled_multiply_untied",
                                           "ponderlm_llama_s3_scaled_multiply_temp_untied_gqa",
                                           "ponderlm_llama_s3_stories_tied_gqa"),
                         [](const auto& one) { return std::string(one.param); });

INSTANTIATE_TEST_SUITE_P(Gpt2, Golden,
                         ::testing::Values("vanilla_gpt2_hub_names_full_length",
                                           "vanilla_gpt2_inverse_layer_scale_exit",
                                           "ponderlm_gpt2_s1_scaled_tied"),
                         [](const auto& one) { return std::string(one.param); });

INSTANTIATE_TEST_SUITE_P(Relatives, Golden,
                         ::testing::Values("ponderlm_reset_llama_k3_scaled", "ponderlm_hidden_neox_k2"),
                         [](const auto& one) { return std::string(one.param); });

INSTANTIATE_TEST_SUITE_P(Interleaved, Golden,
                         ::testing::Values("pause_llama_k2", "pause_neox_k3_scaled",
                                           "ponderlm2_llama_k1_j2_interpolation_topk_unscaled",
                                           "ponderlm2_llama_k1_j3_scaled",
                                           "ponderlm2_llama_k3_j1_interpolation_scaled_gqa_tied",
                                           "ponderlm2_llama_k3_j5_scaled_stories_gqa_tied",
                                           "ponderlm2_neox_k2_j3_scaled", "ponderlm3_llama_tau_1e4",
                                           "ponderlm3_stories_tau_02"),
                         [](const auto& one) { return std::string(one.param); });

INSTANTIATE_TEST_SUITE_P(Halting, Golden,
                         ::testing::Values("adaponderlm_gpt_neox_tau_1e4", "adaponderlm_llama_tau_03",
                                           "adaptive_latent_cot_gpt_neox_tau_01",
                                           "adaptive_latent_cot_llama_tau_1e4",
                                           "adaptive_latent_cot_stories_router_per_step"),
                         [](const auto& one) { return std::string(one.param); });

} // namespace
} // namespace ponderscope
