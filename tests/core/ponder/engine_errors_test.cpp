// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/scoped_stop.h"
#include "core/checkpoint/safetensors.h"
#include "core/ponder/engine/engine.h"
#include "core/ponder/halting/halting_rules.h"
#include "tests/core/ponder/engine_subjects.h"
#include "tests/core/ponder/tiny_models.h"
#include "tests/support/errors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ponderscope {
namespace {

using namespace testing;

void rewrite_config(const std::filesystem::path& folder, const nlohmann::json& config) {
    std::ofstream(folder / "config.json") << config.dump(1);
}

/// Every choice that a model rules out and every two choices that exclude each other. The plan before stays.
TEST(EngineErrors, EveryChoiceThatAPlanRefuses) {
    const TemporaryFolder folder;
    std::map<std::string, Engine> engines;
    const auto load = [&](const std::string& name, const nlohmann::json& config) {
        const Checkpoint checkpoint = make_checkpoint(folder / name, config);
        engines.emplace(name, Engine::load(checkpoint));
    };
    nlohmann::json streams = tiny_llama();
    streams.update({{"baseline_mode", "mhc"}, {"use_qk_norm", true}, {"mhc_num_streams", 2}});
    load("llama", tiny_llama());
    load("mhc", streams);
    load("ponderlm", with_ponderlm(tiny_gpt_neox(), 3));
    load("ponderlm2", own_section(tiny_llama(), {{"method", "ponderlm2"}, {"max_steps", 2}}));
    nlohmann::json cycles = nlohmann::json::parse(
        read_file(source_tree() / "tests/golden/next_hrm_text_1x2_tied_start_state/config.json"));
    cycles.update({{"H_cycles", 2}, {"num_hidden_layers", 18}});
    load("hrm", cycles);
    const AttentionChoice attention{{0}, {0}};
    struct Case {
        const char* model;
        std::function<void(RunPlan&)> choose;
        const char* part;
        const char* id;
    };
    const std::vector<Case> cases{
        {"llama", [](RunPlan& plan) { plan.rule = full_halting(); }, "--policy", "policy.unsuited"},
        {"llama", [](RunPlan& plan) { plan.kv = KvPolicy::full; }, "--kv", "usage.unsuited"},
        {"llama", [](RunPlan& plan) { plan.prefix = 3; }, "--prefix", "usage.unsuited"},
        {"llama", [](RunPlan& plan) { plan.start_state = "zero"; }, "--initial-state", "usage.unsuited"},
        {"llama", [](RunPlan& plan) { plan.refreshes = 2; }, "vanilla", "usage.unsuited"},
        {"llama", [](RunPlan& plan) { plan.experts = RecordedExperts::chosen; }, "--record experts",
         "usage.unsuited"},
        {"llama", [&](RunPlan& plan) { plan.layers_are_steps = true, plan.attention = attention; }, "",
         "usage.unsuited"},
        {"llama", [](RunPlan& plan) { plan.layers_are_steps = true, plan.states = StateChoice{{0}}; },
         "layers,states", "usage.conflict"},
        {"llama", [](RunPlan& plan) { plan.layers_are_steps = plan.lens = true; }, "--record",
         "usage.conflict"},
        {"llama", [](RunPlan& plan) { plan.layers_are_steps = true, plan.kv = KvPolicy::skip; }, "--kv",
         "usage.unsuited"},
        {"mhc", [](RunPlan& plan) { plan.lens = true; }, "--record steps,layers", "usage.unsuited"},
        {"mhc", [](RunPlan& plan) { plan.layers_are_steps = true; }, "", ""},
        {"ponderlm", [](RunPlan& plan) { plan.layers_are_steps = true; }, "", ""},
        {"ponderlm", [](RunPlan& plan) { plan.refreshes = 2; }, "ponderlm ", "usage.unsuited"},
        {"ponderlm2", [](RunPlan& plan) { plan.refreshes = -1; }, " -1", "usage.value"},
        {"ponderlm2", [](RunPlan& plan) { plan.kv = KvPolicy::full; }, "--kv", "usage.unsuited"},
        {"hrm", [](RunPlan& plan) { plan.prefix = -1; }, "--prefix", "usage.value"},
        {"hrm", [](RunPlan& plan) { plan.prefix = 3, plan.kv = KvPolicy::shared; }, "--prefix",
         "usage.conflict"},
        {"hrm", [](RunPlan& plan) { plan.prefix = 3, plan.kv = KvPolicy::skip; }, "--prefix",
         "usage.conflict"},
        {"hrm", [&](RunPlan& plan) { plan.prefix = 3, plan.attention = attention; }, "--prefix",
         "usage.conflict"}};
    for (const Case& one : cases) {
        Engine& engine = engines.at(one.model);
        RunPlan plan = engine.plan();
        one.choose(plan);
        const std::string said = error_of([&] { engine.use(plan); });
        EXPECT_NE(said.find(one.part), std::string::npos) << one.model << ": " << said;
        EXPECT_NE(said.find('[' + std::string(one.id)), std::string::npos) << one.model << ": " << said;
        EXPECT_EQ(engine.policy(), "learned") << said;
        EXPECT_EQ(engine.scoring(), "exact") << said;
        EXPECT_EQ(engine.attention_pair_bytes() + engine.token_bytes(), 0) << said;
        EXPECT_FALSE(engine.plan().layers_are_steps || engine.plan().prefix) << said;
    }
    Engine& patched = engines.at("ponderlm2");
    patched.use_patches(
        {{{0, 1, 0, 0}, std::vector<float>(static_cast<std::size_t>(patched.state_width(0)))}});
    EXPECT_NE(error_of([&] { patched.choose(&RunPlan::refreshes, 1); }).find("--patch"), std::string::npos);
}

TEST(EngineErrors, AStopIsHeardBetweenTwoBlocks) {
    const TemporaryFolder folder;
    (void)make_checkpoint(folder.path(), tiny_llama());
    const Engine engine = Engine::load(Checkpoint::open(folder.path()));
    const std::vector<std::int32_t> ids{1, 2, 3, 4};
    const Window window{ids, 0, 4};
    std::stop_source stop;
    const ScopedStop scope(stop.get_token());
    EXPECT_EQ(engine.score({&window, 1}, RecordLevel::basic).size(), 1U);
    std::size_t heard = 0;
    GenerateOptions options{.max_new_tokens = 20, .stop = stop.get_token()};
    const auto said = engine.generate({ids}, options, RecordLevel::basic,
                                      [&](std::int64_t, std::int32_t, const WindowResult&) {
                                          if (++heard == 3) {
                                              stop.request_stop();
                                          }
                                          return true;
                                      });
    EXPECT_EQ(said.front().size(), 3U) << "what was generated stays";
    EXPECT_THROW((void)engine.score({&window, 1}, RecordLevel::basic), Cancelled);
    EXPECT_THROW((void)engine.inspect_batch({ids}), Cancelled);
    options.stop = {};
    EXPECT_THROW((void)engine.generate({ids}, options), Cancelled);
}

TEST(EngineFiles, OfTheStackAloneLeaveTheFirstWordOut) {
    for (nlohmann::json config :
         {tiny_llama(), tiny_gpt_neox(), tiny_gpt2(), tiny_phi(), tiny_opt(), tiny_qwen3()}) {
        SCOPED_TRACE(config["model_type"].dump());
        const TemporaryFolder whole, stack;
        (void)make_checkpoint(whole.path(), config);
        std::filesystem::copy(whole / "config.json", stack / "config.json");
        const SafetensorsFile file = SafetensorsFile::open(whole / "model.safetensors");
        std::vector<TensorView> tensors(file.tensors().begin(), file.tensors().end());
        for (TensorView& tensor : tensors) {
            for (const std::string word : {"model.", "gpt_neox.", "transformer."}) {
                tensor.name = tensor.name.substr(tensor.name.starts_with(word) ? word.size() : 0);
            }
        }
        write_safetensors(stack / "model.safetensors", tensors, {});
        const auto ids = random_ids(9, 61, 3);
        const Window window{ids, 0, 9};
        const auto nll = [&](const TemporaryFolder& folder) {
            return Engine::load(Checkpoint::open(folder.path()))
                .score(std::span(&window, 1), RecordLevel::nll)
                .front()
                .tokens.nll;
        };
        const std::vector<float> expected = nll(whole);
        const std::vector<float> found = nll(stack);
        EXPECT_EQ(std::vector<float>(found.begin(), found.end() - 1),
                  std::vector<float>(expected.begin(), expected.end() - 1));
    }
}

TEST(EngineErrors, TensorsThatNobodyAskedFor) {
    const TemporaryFolder folder;
    nlohmann::json config = tiny_llama();
    config["pondering"] = {{"method", "adaponderlm"}, {"max_steps", 3}};
    (void)make_checkpoint(folder.path(), config);
    config.erase("pondering");
    rewrite_config(folder.path(), config);
    bool named = false;
    for (const Notice& notice : Engine::load(Checkpoint::open(folder.path())).notices()) {
        named = named || notice.text.find("pondering.gates.0.") != std::string::npos;
    }
    EXPECT_TRUE(named) << "tensors that nobody asked for must be named";
}

TEST(EngineErrors, DevicesAndIds) {
    const TemporaryFolder folder;
    const Checkpoint checkpoint = make_checkpoint(folder.path(), tiny_gpt_neox());
    LoadOptions options;
    for (const char* const device : {"gpu", "cuda:x", "cuda:", "cuda:-1", "cuda:0,cuda:1", ""}) {
        options.device = device;
        EXPECT_NE(error_of([&] { (void)Engine::load(checkpoint, options); }).find("device"),
                  std::string::npos)
            << device;
    }
    options.device = "cuda:99";
    EXPECT_NE(error_of([&] { (void)Engine::load(checkpoint, options); }).find("cuda:99"), std::string::npos);
    const Engine engine = Engine::load(checkpoint);
    const std::vector<std::int32_t> outside{1, 2, 61};
    const Window window{outside, 0, 3};
    EXPECT_NE(error_of([&] { (void)engine.score(std::span(&window, 1), RecordLevel::basic); }).find("61"),
              std::string::npos);
    const Window empty;
    EXPECT_THROW((void)engine.score(std::span(&empty, 1), RecordLevel::basic), InputError);
    EXPECT_THROW((void)engine.generate({{}}, {}), InputError);
    EXPECT_THROW((void)engine.inspect_batch({{1, 2}, {1, 2, 3}}), InputError);
    EXPECT_EQ(engine.scoring(), "exact");
    EXPECT_EQ(engine.device_name(), "cpu");
}

TEST(EngineErrors, GatesAndRoutersThatAreNoNumbers) {
    for (const char* const method : {"adaponderlm", "ponderlm3", "adaptive_latent_cot"}) {
        const TemporaryFolder folder;
        nlohmann::json config = own_section(tiny_llama(), {{"method", method}, {"max_steps", 1}});
        (void)make_checkpoint(folder.path(), config);
        // The first tensor of the method lies somewhere in the file: overwrite one of its numbers.
        std::string bytes = read_file(folder.path() / "model.safetensors");
        const SafetensorsFile file = SafetensorsFile::open(folder.path() / "model.safetensors");
        for (const TensorView& view : file.tensors()) {
            if (view.name.starts_with("pondering.") && view.name.ends_with("weight")) {
                const std::string_view whole(bytes);
                const std::string_view part(reinterpret_cast<const char*>(view.bytes.data()),
                                            view.bytes.size());
                const std::size_t at = whole.find(part);
                ASSERT_NE(at, std::string_view::npos);
                const float nan = std::numeric_limits<float>::quiet_NaN();
                std::memcpy(bytes.data() + at + 4, &nan, sizeof nan);
                break;
            }
        }
        write_file_atomically(folder.path() / "model.safetensors", bytes);
        const std::string message = error_of([&] { (void)Engine::load(Checkpoint::open(folder.path())); });
        EXPECT_NE(message.find("pondering."), std::string::npos) << message;
        EXPECT_NE(message.find("NaN"), std::string::npos) << message;
    }
}

TEST(EngineErrors, WeightsThatDoNotFitTheConfig) {
    struct Case {
        nlohmann::json made;   ///< of the config when the weights were made
        nlohmann::json wanted; ///< of the config that is loaded
        std::vector<std::string> words;
    };
    const auto section = [](const char* method, std::int64_t steps) -> nlohmann::json {
        return {{"pondering", {{"method", method}, {"max_steps", steps}}}};
    };
    const nlohmann::json plain = nlohmann::json::object();
    const Case cases[] = {
        {plain, {{"num_hidden_layers", 4}}, {"model.layers.3.input_layernorm.weight"}},
        {plain, {{"num_hidden_layers", 2}}, {"model.layers.2."}},
        {plain, {{"intermediate_size", 44}}, {"[44, 24]", "[40, 24]", "model.safetensors"}},
        {section("adaponderlm", 3), section("adaponderlm", 2), {"pondering.gates.2."}},
        {section("ponderlm", 2), section("ponderlm3", 2), {"pondering.router.weight"}},
        {section("ponderlm", 2), section("adaptive_latent_cot", 2), {"pondering.router.weight"}},
        {section("ponderlm", 2), section("adaponderlm", 2), {"pondering.gates.0.fc_in.weight"}},
        {section("adaponderlm", 2), section("adaponderlm", 3), {"pondering.gates.2.fc_in.weight"}},
        {section("ponderlm3", 2), section("ponderlm3", 3), {"pondering.router.weight", "[4, 24]", "[3, 24]"}},
        {section("ponderlm3", 2), section("adaptive_latent_cot", 2), {"pondering.router.weight", "3"}}};
    for (const Case& one : cases) {
        const TemporaryFolder folder;
        nlohmann::json config = tiny_llama();
        config.update(one.made);
        (void)make_checkpoint(folder.path(), config);
        config.update(one.wanted);
        rewrite_config(folder.path(), config);
        const std::string message = error_of([&] { (void)Engine::load(Checkpoint::open(folder.path())); });
        for (const std::string& word : one.words) {
            EXPECT_NE(message.find(word), std::string::npos) << message;
        }
    }
}

} // namespace
} // namespace ponderscope
