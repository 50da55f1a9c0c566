// SPDX-License-Identifier: GPL-3.0-or-later
// What other implementations computed on small checkpoints, tensor by tensor.
#include "core/checkpoint/safetensors.h"
#include "core/ponder/engine/engine.h"
#include "core/ponder/halting/halting_rules.h"
#include "tests/core/ponder/tiny_models.h"
#include "tests/support/test_data.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>

namespace ponderscope {
namespace {

struct Array {
    std::vector<std::int64_t> shape;
    std::vector<float> floats;
    std::vector<std::int64_t> integers;
};

std::map<std::string, Array> read_golden(const std::filesystem::path& path) {
    std::map<std::string, Array> arrays;
    const SafetensorsFile file = SafetensorsFile::open(path);
    for (const TensorView& view : file.tensors()) {
        Array array;
        array.shape = view.shape;
        if (view.dtype == DType::f32) {
            array.floats.resize(view.bytes.size() / sizeof(float));
            std::memcpy(array.floats.data(), view.bytes.data(), view.bytes.size());
        } else if (view.dtype == DType::i64) {
            array.integers.resize(view.bytes.size() / sizeof(std::int64_t));
            std::memcpy(array.integers.data(), view.bytes.data(), view.bytes.size());
        }
        arrays.emplace(view.name, std::move(array));
    }
    return arrays;
}

std::vector<std::vector<std::int32_t>> rows(const Array& ids, std::int64_t length) {
    std::vector<std::vector<std::int32_t>> result;
    for (std::int64_t b = 0; b < ids.shape[0]; ++b) {
        const auto begin = ids.integers.begin() + b * ids.shape[1];
        result.emplace_back(begin, begin + length);
    }
    return result;
}

/// Names of the reference under which we compute the same.
std::string our_name(const std::string& theirs) {
    static const std::map<std::string, std::string> others{
        {"gate", "signal.gate"},
        {"reach", "signal.reach"},
        {"halting_mass", "signal.halting_mass"},
        {"router.probability", "signal.router_probability"},
        {"router.log_tail_mass", "signal.router_log_tail_mass"}};
    if (const auto found = others.find(theirs); found != others.end()) {
        return found->second;
    }
    return theirs.starts_with("input.step") ? "embeds" + theirs.substr(5) : theirs;
}

/// Sequence attention of the layers that the reference kept, [1, head, query, key] of the first sequence (its
/// beginning, perhaps). Ours are fp16. Returns how many were compared.
int compare_attention(Engine& engine, const std::map<std::string, Array>& golden,
                      const std::vector<std::vector<std::int32_t>>& ids) {
    int compared = 0;
    for (const auto& [name, theirs] : golden) {
        if (!name.starts_with("attention.layer") && !name.starts_with("attention_head.layer")) {
            continue;
        }
        engine.use_attention(AttentionChoice::parse(name.substr(name.rfind("layer") + 5), engine.config()));
        const auto arrays = engine.inspect_batch({ids.front()});
        engine.use_attention({});
        const NamedArray& ours = arrays.at("signal.attention"); // [1, token, step, layer, head, back]
        const auto heads = static_cast<std::size_t>(theirs.shape[1]);
        const auto length = static_cast<std::size_t>(theirs.shape[2]);
        const auto back = static_cast<std::size_t>(ours.shape.back());
        EXPECT_EQ(ours.shape[4], theirs.shape[1]);
        double largest = 0;
        for (std::size_t h = 0; h < heads; ++h) {
            for (std::size_t q = 0; q < length; ++q) {
                for (std::size_t k = 0; k < length; ++k) {
                    const float expected = theirs.floats[(h * length + q) * length + k];
                    const float got = k <= q ? ours.floats[(q * heads + h) * back + q - k] : 0.0F;
                    largest = std::max(largest, std::abs(static_cast<double>(got) - expected));
                }
            }
        }
        std::printf("  %-32s max |difference| %.2e, tolerance 5e-04 (fp16)\n", name.c_str(), largest);
        EXPECT_LE(largest, 5e-4) << name;
        ++compared;
    }
    return compared;
}

/// Puts the outputs of a layer at all steps, [B, T, d] each, into one array of slots, [B, T * steps, d].
void interleave(std::map<std::string, NamedArray>& arrays, std::int64_t steps, const std::string& layer) {
    const std::string name = "layer_output.step";
    const std::vector<std::int64_t> shape = arrays.at(name + "0" + layer).shape;
    const auto d = static_cast<std::size_t>(shape[2]);
    NamedArray all;
    all.shape = {shape[0], shape[1] * steps, shape[2]};
    for (std::size_t token = 0; token < static_cast<std::size_t>(shape[0] * shape[1]); ++token) {
        for (std::int64_t k = 0; k < steps; ++k) {
            const std::vector<float>& one = arrays.at(name + std::to_string(k) + layer).floats;
            const auto begin = one.begin() + static_cast<std::ptrdiff_t>(token * d);
            all.floats.insert(all.floats.end(), begin, begin + static_cast<std::ptrdiff_t>(d));
        }
    }
    arrays[name + "0" + layer] = std::move(all);
}

/// Arrays of a reference that are compared by another test, or that say how it came to the others.
bool is_checked_elsewhere(const std::string& name, bool over_layers) {
    static const std::pair<const char*, const char*> reasons[] = {
        {"input_ids", "what is computed on"},
        {"generated", "below"},
        {"attention", "compare_attention"},
        {"grad.", "train/penalty_test"},
        {"loss.", "train/penalty_test"},
        {"train.", "train/penalty_test"},
        {"replay.", "policy/golden_test"},
        {"rerun.", "cli/rerun_cli_test and verify"},
        {"exit_", "verify: exits over layers"},
        {"hidden.block", "verify: exits over layers"},
        {"hidden.layer", "intermediates of one pass"},
        {"hidden_head.", "intermediates of one pass"},
        {"hidden.step", "outputs of single layers in a pass"},
        {"vhat.", "intermediates of depth mixing"},
        {"depth_weights.", "cli/golden_test: weights of depth mixing"},
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
                       [&](const auto& one) { return bare.starts_with(one.first); }) ||
           (over_layers && name.starts_with("full.")); // verify: exits over layers
}

std::map<std::string, NamedArray> compute(const Engine& engine,
                                          const std::vector<std::vector<std::int32_t>>& ids) {
    auto arrays = engine.inspect_batch(ids);
    put_zeros_where_nothing_ran(arrays);
    return arrays;
}

class Golden : public ::testing::TestWithParam<const char*> {};

TEST_P(Golden, EqualsTheReference) {
    const std::string name = GetParam();
    PONDERSCOPE_REQUIRE_GOLDEN(name);
    const std::filesystem::path folder = testing::golden_case(name);
    nlohmann::json description;
    std::ifstream(folder / "case.json") >> description;
    const double tolerance = description.value("tolerance", 1e-4);
    const auto golden = read_golden(folder / "golden.safetensors");
    const Checkpoint checkpoint =
        Checkpoint::open(folder, method_from_string(description.at("method").get<std::string>()));
    Engine engine = testing::load_engine(checkpoint);
    const Array& ids = golden.at("input_ids");
    auto ours = compute(engine, rows(ids, ids.shape[1]));
    if (golden.contains("logits_sequential")) {
        EXPECT_NE(engine.scoring(), "exact");
        engine.use_scoring(std::nullopt);
        auto exact = compute(engine, rows(ids, ids.shape[1]));
        ours["logits_sequential"] = std::move(exact.at("logits"));
        ours["nll_sequential"] = std::move(exact.at("nll"));
        for (std::int64_t k = 0; k <= engine.config().ponder.max_steps; ++k) {
            ours["hidden_sequential.slot" + std::to_string(k)] =
                std::move(exact.at("hidden.step" + std::to_string(k)));
        }
    }

    const MethodKind method = engine.config().ponder.method;
    if (method == MethodKind::pause) {
        // One pass runs all slots: theirs is [B, token and slot, d], ours has a step each.
        for (std::int64_t l = 0; l < engine.config().layers; ++l) {
            interleave(ours, engine.config().ponder.max_steps + 1, ".layer" + std::to_string(l));
        }
    }
    for (const auto& [theirs_name, theirs] : golden) {
        // PonderLM-3's parallel form: K growth passes, refreshes, and a last one.
        if (theirs_name.starts_with("jacobi.pass") && theirs_name.ends_with(".logits")) {
            const std::string pass = theirs_name.substr(0, theirs_name.size() - std::strlen("logits"));
            engine.use_scoring(std::stoll(pass.substr(std::strlen("jacobi.pass"))) -
                               engine.config().ponder.max_steps - 1);
            auto refreshed = compute(engine, rows(ids, ids.shape[1]));
            ours[pass + "logits"] = std::move(refreshed.at("logits"));
            ours[pass + "steps"] = std::move(refreshed.at("steps"));
            engine.use_scoring(std::nullopt);
        }
    }
    if (golden.contains("full.nll") && method != MethodKind::vanilla) {
        engine.use_halting(full_halting());
        auto full = compute(engine, rows(ids, ids.shape[1]));
        for (const auto& [theirs_name, theirs] : golden) {
            const auto found =
                theirs_name.starts_with("full.") ? full.find(our_name(theirs_name.substr(5))) : full.end();
            if (found != full.end()) {
                ours[theirs_name] = found->second;
            }
        }
        engine.use_halting(nullptr);
        EXPECT_TRUE(ours.contains("full.nll"));
    }

    int compared = compare_attention(engine, golden, rows(ids, ids.shape[1]));
    for (const auto& [theirs_name, theirs] : golden) {
        const auto found = ours.find(our_name(theirs_name));
        if (theirs_name == "logits_tail") {
            const NamedArray& logits = ours.at("logits");
            const std::size_t count = theirs.floats.size();
            ASSERT_EQ(theirs.shape[0], 1);
            double largest = 0;
            for (std::size_t i = 0; i < count; ++i) {
                largest = std::max(
                    largest, std::abs(static_cast<double>(logits.floats[logits.floats.size() - count + i]) -
                                      static_cast<double>(theirs.floats[i])));
            }
            std::printf("  %-32s max |difference| %.2e, tolerance %.0e\n", theirs_name.c_str(), largest,
                        tolerance);
            EXPECT_LE(largest, tolerance) << name << " " << theirs_name;
            ++compared;
            continue;
        }
        if (found == ours.end()) {
            EXPECT_TRUE(is_checked_elsewhere(theirs_name, method == MethodKind::vanilla))
                << name << " holds " << theirs_name << ", which nothing here is compared with";
            continue;
        }
        ASSERT_EQ(found->second.shape, theirs.shape) << theirs_name;
        if (theirs_name == "rank" && name.starts_with("vanilla_stories")) {
            // These two references count larger logits; a rank is one more.
            std::vector<std::int64_t> expected = theirs.integers;
            for (std::int64_t& rank : expected) {
                ++rank;
            }
            EXPECT_EQ(found->second.integers, expected) << name << " rank";
            continue;
        }
        if (!theirs.integers.empty()) {
            EXPECT_EQ(found->second.integers, theirs.integers) << name << " " << theirs_name;
            std::printf("  %-32s equal\n", theirs_name.c_str());
            ++compared;
            continue;
        }
        // Signals near a kink magnify the rounding of logits; the reference bounds them by what 1e-4 on every
        // logit does.
        const double allowed = theirs_name.find("signal.") != std::string::npos ? 5 * tolerance : tolerance;
        double largest = 0;
        for (std::size_t i = 0; i < theirs.floats.size(); ++i) {
            const double difference = std::abs(static_cast<double>(found->second.floats[i]) -
                                               static_cast<double>(theirs.floats[i]));
            largest = std::isnan(difference) ? INFINITY : std::max(largest, difference);
        }
        std::printf("  %-32s max |difference| %.2e, tolerance %.0e\n", theirs_name.c_str(), largest, allowed);
        EXPECT_LE(largest, allowed) << name << " " << theirs_name;
        ++compared;
    }
    EXPECT_TRUE(ours.contains("logits") && (golden.contains("logits") || golden.contains("logits_tail")));
    EXPECT_TRUE(ours.contains("nll") && golden.contains("nll"));
    std::printf("  %d arrays compared\n", compared);

    if (const auto generated = golden.find("generated"); generated != golden.end()) {
        std::int64_t prompt = ids.shape[1];
        if (const auto settings = description.find("settings"); settings != description.end()) {
            prompt = settings->value("greedy_prompt_tokens", prompt);
        }
        GenerateOptions options;
        options.max_new_tokens = generated->second.shape[1];
        for (const bool use_cache : {true, false}) {
            options.use_cache = use_cache;
            std::vector<std::int64_t> flat;
            for (const auto& row : engine.generate(rows(ids, prompt), options)) {
                flat.insert(flat.end(), row.begin(), row.end());
            }
            EXPECT_EQ(flat, generated->second.integers)
                << name << (use_cache ? ", cached" : ", whole sequence each time");
        }
        std::printf("  %-32s %s\n", "generated", "compared, cached and not");
    }
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
