// SPDX-License-Identifier: GPL-3.0-or-later
// Reruns of the reference cases: the policy in the place of the model's own rule, decided on the signals of
// the run itself. Steps equal, NLL to 1e-4.
#include "core/base/json.h"
#include "core/checkpoint/safetensors.h"
#include "tests/core/cli/run_program.h"
#include "tests/support/test_data.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace ponderscope {
namespace {

using testing::ProgramResult;
using testing::run_ponderscope;
using testing::succeed;

template <typename T>
std::vector<T> values(const SafetensorsFile& file, const std::string& name) {
    const TensorView* view = file.find(name);
    if (view == nullptr) {
        ADD_FAILURE() << file.path() << " has no " << name;
        return {};
    }
    std::vector<T> numbers(view->bytes.size() / sizeof(T));
    std::memcpy(numbers.data(), view->bytes.data(), view->bytes.size());
    return numbers;
}

/// The policy of that name among the case's replays.
std::string rerun_spec_of(const nlohmann::json& description, const std::string& name) {
    for (const nlohmann::json& entry : description["replay"]) {
        if (entry["name"] != name) {
            continue;
        }
        const std::string policy = entry["policy"];
        std::string text = policy + ":";
        if (entry.contains("threshold")) {
            text += (policy.starts_with("calm") ? "lambda=" : "theta=") + entry["threshold"].dump();
        } else if (entry.contains("rate")) {
            text += "rate=" + entry["rate"].dump() + ",seed=" + entry["seed"].dump();
        } else {
            text += "n=" + entry["steps"].dump();
        }
        return text;
    }
    return "unknown";
}

class Rerun : public ::testing::TestWithParam<std::string> {};

TEST_P(Rerun, StepsAreEqualAndNllIsClose) {
    const std::string folder = GetParam();
    PONDERSCOPE_REQUIRE_GOLDEN(folder);
    const std::filesystem::path where = testing::golden_case(folder);
    const SafetensorsFile golden = SafetensorsFile::open(where / "golden.safetensors");
    const nlohmann::json description = read_json_file(where / "case.json");
    const testing::TemporaryFolder output;
    int compared = 0;
    for (const nlohmann::json& entry : description["rerun"]) {
        const std::string name = entry["name"];
        const std::string spec = rerun_spec_of(description, name);
        SCOPED_TRACE(name + " = " + spec);
        const std::filesystem::path out = output / (name + ".safetensors");
        succeed({"logits", where.string(), "--ids", (where / "golden.safetensors").string(), "--policy", spec,
                 "-o", out.string()});
        const SafetensorsFile ours = SafetensorsFile::open(out);
        EXPECT_EQ(values<std::int64_t>(ours, "steps"),
                  values<std::int64_t>(golden, "rerun." + name + ".steps"));
        const std::vector<float> nll = values<float>(ours, "nll");
        const std::vector<float> expected = values<float>(golden, "rerun." + name + ".nll");
        ASSERT_EQ(nll.size(), expected.size());
        float largest = 0;
        for (std::size_t i = 0; i < nll.size(); ++i) {
            largest = std::max(largest, std::abs(nll[i] - expected[i]));
        }
        EXPECT_LE(largest, 1e-4F);
        ++compared;
    }
    EXPECT_EQ(compared, 3);
}

INSTANTIATE_TEST_SUITE_P(Cases, Rerun,
                         ::testing::Values("adaponderlm_gpt_neox_tau_1e4", "adaponderlm_llama_tau_03",
                                           "adaptive_latent_cot_gpt_neox_tau_01",
                                           "adaptive_latent_cot_llama_tau_1e4",
                                           "adaptive_latent_cot_stories_router_per_step",
                                           "ponderlm3_llama_tau_1e4", "ponderlm3_stories_tau_02",
                                           "vanilla_gpt_neox_layers"),
                         [](const auto& one) { return one.param; });

TEST(RerunRefuses, WhatDoesNotFitTheModel) {
    const struct {
        const char* folder;
        const char* policy;
        const char* says;
    } cases[] = {
        {"adaponderlm_llama_tau_03", "oracle", "[policy.unsuited]"},
        {"adaponderlm_llama_tau_03", "fixed:n=9", "[policy.value]"},
        {"adaponderlm_llama_tau_03", "uniform", "[policy.unsuited]"},
        {"adaponderlm_llama_tau_03", "calm", "[policy.unknown]"},
        {"ponderlm_gpt2_s1_scaled_tied", "learned:theta=0.5", "[policy.unsuited]"},
        {"vanilla_gpt2_inverse_layer_scale_exit", "learned:theta=0.5", "[policy.unsuited]"},
        {"vanilla_gpt2_inverse_layer_scale_exit", "fixed:n=5", "[policy.value]"},
    };
    const testing::TemporaryFolder output;
    for (const auto& [folder, policy, says] : cases) {
        const ProgramResult result =
            run_ponderscope({"logits", testing::golden_case(folder).string(), "--ids",
                             (testing::golden_case(folder) / "golden.safetensors").string(), "--policy",
                             policy, "-o", (output / "o.safetensors").string()});
        EXPECT_EQ(result.code, 2) << policy;
        EXPECT_NE(result.err.find(says), std::string::npos) << result.err;
        EXPECT_FALSE(std::filesystem::exists(output / "o.safetensors"));
    }
}

} // namespace
} // namespace ponderscope
