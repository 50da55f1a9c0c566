// SPDX-License-Identifier: GPL-3.0-or-later
// What `--record steps` writes for every method and every depth mixing (methods.md section 10), as a table:
// nothing more, nothing less, each with numbers in it.
#include "core/ponder/engine/engine.h"
#include "core/trace/reader.h"
#include "tests/core/ponder/engine_subjects.h"
#include "tests/core/ponder/tiny_models.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <string>

namespace ponderscope {
namespace {

using namespace testing;

using Names = std::set<std::string>;

constexpr std::int64_t vocabulary = 61;
constexpr std::int64_t max_steps = 2;

const Names of_every_step{
    signal::nll,  signal::entropy, signal::max_probability, signal::margin,
    signal::rank, signal::argmax,  signal::candidate_ids,   signal::candidate_probabilities};
const Names between_steps{signal::kl_previous_current, signal::kl_current_previous, signal::cosine,
                          signal::latent_difference,   signal::acceleration,        signal::state_norm,
                          signal::update_cosine,       signal::prediction_depth,    signal::answer_flips};
const std::map<std::string, Names> of_method{
    {"vanilla", {}},
    {"looped", {}},
    {"pause", {}},
    {"ponderlm", {}},
    {"ponderlm_reset", {}},
    {"ponderlm_hidden", {}},
    {"ponderlm2", {signal::jacobi_difference}},
    {"adaponderlm", {signal::gate}},
    {"ponderlm3",
     {signal::gate, signal::halting_mass, signal::jacobi_difference, "router_probability",
      "router_log_tail_mass"}},
    {"adaptive_latent_cot", {signal::gate, signal::reach, signal::halting_mass}}};
const std::map<std::string, Names> of_mixing{{"none", {}},
                                             {"depth_attention", {signal::depth_weights}},
                                             {"mhc", {signal::mhc_read, signal::mhc_write}},
                                             {"attnres", {signal::attnres_weights}},
                                             {"denseformer", {}}}; // its weights are parameters

nlohmann::json model(const std::string& method, const std::string& mixing) {
    nlohmann::json config = tiny_llama();
    config["num_hidden_layers"] = 4;
    if (mixing == "depth_attention") {
        config = with_depth_attention(config, 2, 1);
    } else if (mixing != "none") {
        config.update({{"baseline_mode", mixing}, {"mhc_num_streams", 3}, {"attnres_block_size", 4}});
    }
    if (method != "vanilla") {
        config = own_section(config, {{"method", method}, {"max_steps", max_steps}});
        config["pause_token_id"] = 7;
    }
    return config;
}

class Signals : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(Signals, AreThoseOfTheTable) {
    const auto& [method, mixing] = GetParam();
    Names expected = of_every_step;
    expected.insert(of_method.at(method).begin(), of_method.at(method).end());
    expected.insert(of_mixing.at(mixing).begin(), of_mixing.at(mixing).end());
    if (method != "vanilla") {
        expected.insert(between_steps.begin(), between_steps.end());
    }
    const TemporaryFolder folder;
    Engine engine = load_engine(make_checkpoint(folder.path(), model(method, mixing)));
    if (expected.contains(signal::jacobi_difference)) {
        engine.choose(&RunPlan::refreshes, 4);
    }
    Names announced;
    for (const SignalInfo& info : engine.signals(RecordLevel::steps)) {
        announced.insert(info.name);
        EXPECT_FALSE(info.title.empty() || info.description.empty()) << info.name;
    }
    EXPECT_EQ(announced, expected);

    const auto ids = random_ids(24, vocabulary, 5);
    const WindowResult result = scored_alone(engine, {ids, 0, 24}, RecordLevel::steps);
    Names recorded;
    for (const auto& [name, chunk] : result.signals) {
        recorded.insert(name);
        EXPECT_EQ(chunk.shape.front(), 24) << name;
        if (chunk.shape.size() > 1 && name != signal::jacobi_difference) {
            const std::int64_t steps = method == "vanilla" ? 1 : max_steps + 1;
            EXPECT_EQ(chunk.shape[1], name == signal::gate ? steps - 1 : steps) << name;
        }
        float largest = 0;
        for (const float value : to_floats(chunk)) {
            largest = std::isnan(value) && name == signal::nll ? largest : std::max(largest, std::abs(value));
            ASSERT_TRUE(std::isfinite(value) || name == signal::nll) << name;
        }
        EXPECT_GT(largest, 0.0F) << name << " says nothing";
    }
    EXPECT_EQ(recorded, expected);
}

/// No gate is asked whether there is a second step: a trace has no place for a signal without values.
TEST(SignalsOfOneStep, HaveValues) {
    for (const auto& [method, signals] : of_method) {
        const TemporaryFolder folder;
        nlohmann::json config = own_section(model("vanilla", "none"), {{"method", method}, {"max_steps", 0}});
        config["pause_token_id"] = 3;
        const Engine engine = load_engine(make_checkpoint(folder.path(), config));
        const auto ids = random_ids(24, vocabulary, 5);
        const WindowResult result = scored_alone(engine, {ids, 0, 24}, RecordLevel::steps);
        EXPECT_EQ(result.signals.size(), engine.signals(RecordLevel::steps).size()) << method;
        for (const auto& [name, chunk] : result.signals) {
            EXPECT_FALSE(chunk.data.empty()) << method << ": " << name;
        }
    }
}

/// methods.md section 11, from the definition of the sources: 4·g·d_h·(sources + 1) a layer and slot.
TEST_P(Signals, DepthAttentionCostsWhatItsSourcesCost) {
    const auto& [method, mixing] = GetParam();
    if (mixing != "depth_attention") {
        GTEST_SKIP() << "section 11 counts this mixing alone";
    }
    const nlohmann::json with = model(method, mixing);
    nlohmann::json without = with;
    without["use_depth_attention"] = false;
    const auto ids = random_ids(24, vocabulary, 5);
    std::vector<TokenColumns> tokens;
    for (const nlohmann::json& config : {with, without}) {
        const TemporaryFolder folder;
        const Engine engine = load_engine(make_checkpoint(folder.path(), config));
        tokens.push_back(scored_alone(engine, {ids, 0, 24}, RecordLevel::nll).tokens);
        if (config == with) {
            ASSERT_EQ(engine.config().depth.kind, DepthMixing::depth_attention);
        } else {
            ASSERT_EQ(engine.config().depth.kind, DepthMixing::none);
        }
    }
    std::int64_t values = 0;
    for (std::int64_t l = 0; l < with.at("num_hidden_layers").get<std::int64_t>(); ++l) {
        values += l > 0 ? 1 : 0; // its own; a layer without sources mixes nothing
        for (std::int64_t j = 0; j < l; ++j) {
            values += j % 2 == 0 || j >= l - 1 ? 1 : 0;
        }
    }
    const std::int64_t heads = with.at("num_key_value_heads");
    const auto head_dim = with.contains("head_dim") ? with.at("head_dim").get<std::int64_t>()
                                                    : with.at("hidden_size").get<std::int64_t>() /
                                                          with.at("num_attention_heads").get<std::int64_t>();
    ASSERT_EQ(tokens[0].steps, tokens[1].steps) << "the thresholds of this model stop nobody";
    for (std::size_t t = 0; t < 24; ++t) {
        EXPECT_EQ(tokens[0].flops[t] - tokens[1].flops[t],
                  (tokens[0].steps[t] + 1) * 4 * heads * head_dim * values)
            << "token " << t;
    }
}

std::vector<std::string> keys(const std::map<std::string, Names>& table) {
    std::vector<std::string> names;
    for (const auto& [name, signals] : table) {
        names.push_back(name);
    }
    return names;
}

INSTANTIATE_TEST_SUITE_P(MethodsAndMixings, Signals,
                         ::testing::Combine(::testing::ValuesIn(keys(of_method)),
                                            ::testing::ValuesIn(keys(of_mixing))),
                         [](const auto& one) {
                             return std::get<0>(one.param) + "_" + std::get<1>(one.param);
                         });

} // namespace
} // namespace ponderscope
