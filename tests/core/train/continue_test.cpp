// SPDX-License-Identifier: GPL-3.0-or-later
// Training that goes on from a checkpoint.
#include "core/base/json.h"
#include "core/checkpoint/method_info.h"
#include "core/model/parameters.h"
#include "core/ponder/engine/model.h"
#include "core/text/tokenizer.h"
#include "core/train/train_state.h"
#include "core/train/trainer.h"
#include "tests/core/ponder/engine_subjects.h"
#include "tests/core/ponder/tiny_models.h"
#include "tests/core/train/small_recipe.h"
#include "tests/support/errors.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace ponderscope {
namespace {

using nlohmann::json;
using testing::TemporaryFolder;

/// A checkpoint with random weights and the samples' tokenizer in \p folder / "start". \p rows: of what
/// begins with a free size.
void write_checkpoint(const TemporaryFolder& folder, json config, double spoilt = 0, std::int64_t rows = 0) {
    config["vocab_size"] = 2048;
    const auto start = folder / "start";
    std::filesystem::create_directories(start);
    testing::write_text(start / "config.json", config.dump(2));
    std::filesystem::copy_file(testing::source_tree() / "sample_models" / "tokenizer" / "tokenizer.json",
                               start / "tokenizer.json", std::filesystem::copy_options::overwrite_existing);
    ParameterLayout layout = parameter_layout(read_model_config(start / "config.json"));
    for (TensorSpec& tensor : layout.tensors) {
        if (rows > 0 && tensor.flexible_axis >= 0) {
            tensor.shape[static_cast<std::size_t>(tensor.flexible_axis)] = rows;
        }
    }
    const auto parameters = Parameters::initialise(layout, 3, at::kCPU);
    if (spoilt != 0) {
        parameters.items().front().second.view({-1})[3] = spoilt;
    }
    save_tensors(start / "model.safetensors", parameters.items(), DType::f32);
}

json continued(const json& model = nullptr) {
    json recipe = testing::small_recipe();
    recipe.erase("model");
    recipe.erase("tokenizer");
    recipe["initialization"] = {{"from", "start"}};
    if (!model.is_null()) {
        recipe["model"] = model;
    }
    return recipe;
}

/// One step that leaves the weights where they are.
json hardly_continued(const json& model = nullptr) {
    json recipe = continued(model);
    recipe["training"]["steps"] = 1;
    recipe["optimizer"] = {{"learning_rate", 1e-12}, {"weight_decay", 0}, {"warmup_steps", 0}};
    return recipe;
}

json method(const std::string& name, int steps) {
    return {{"pondering", {{"method", name}, {"max_steps", steps}}}};
}

struct Outcome {
    std::string complaint;
    std::vector<std::string> notices;
    std::vector<double> losses;
    [[nodiscard]] bool said(const std::string& part) const {
        return std::any_of(notices.begin(), notices.end(), [&](const std::string& sentence) {
            return sentence.find(part) != std::string::npos;
        });
    }
};

Outcome outcome_of(const TemporaryFolder& folder, const json& recipe) {
    Outcome outcome;
    TrainOptions options = testing::into(folder / "out", ExistingOutput::overwrite);
    options.notice = [&](const std::string& sentence) { outcome.notices.push_back(sentence); };
    options.logged = [&](const TrainLogRow& row) { outcome.losses.push_back(row.loss); };
    outcome.complaint = testing::error_of(
        [&] { static_cast<void>(train(testing::written_recipe(folder.path(), recipe), options)); });
    return outcome;
}

Parameters parameters_in(const std::filesystem::path& folder) {
    const Checkpoint checkpoint = Checkpoint::open(folder);
    return Parameters::load(parameter_layout(checkpoint.config), checkpoint, {at::kCPU}, at::kFloat);
}

/// Every parameter of "start" is as good as the same in "out".
void expect_kept(const TemporaryFolder& folder) {
    const Parameters before = parameters_in(folder / "start"), after = parameters_in(folder / "out");
    for (const auto& [name, tensor] : before.items()) {
        EXPECT_LE((after.at(name) - tensor).abs().max().item<float>(), 1e-10F) << name;
    }
}

class EveryBackbone : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryBackbone, GoesOnLearning) {
    const TemporaryFolder folder;
    write_checkpoint(folder, testing::subject_named(GetParam()).config);
    json recipe = continued();
    recipe["training"] = {{"steps", 40}, {"context", 16}, {"batch", 4}, {"seed", 1}};
    recipe["log"] = {{"every", 10}};
    const Outcome outcome = outcome_of(folder, recipe);
    ASSERT_EQ(outcome.complaint, "");
    ASSERT_EQ(outcome.losses.size(), 4U);
    EXPECT_LT(outcome.losses.back(), outcome.losses.front() * 0.7);
    // The folder is a checkpoint again, of the same architecture.
    const auto before = read_model_config(folder / "start" / "config.json");
    const auto after = read_model_config(folder / "out" / "config.json");
    EXPECT_EQ(after.architecture, before.architecture);
    EXPECT_EQ(after.query_heads, before.query_heads);
    EXPECT_EQ(after.rope.theta, before.rope.theta);
    EXPECT_EQ(after.max_positions, before.max_positions) << "not the context";
}

INSTANTIATE_TEST_SUITE_P(Continue, EveryBackbone,
                         ::testing::Values("gpt_neox", "llama", "gpt2", "mistral", "qwen2", "qwen3", "phi",
                                           "opt", "nanbeige"),
                         [](const auto& one) { return one.param; });

/// With a learning rate of next to nothing, what is saved is what was there.
TEST(Continue, TakesWhatThereIsAndBeginsTheRest) {
    const TemporaryFolder folder;
    write_checkpoint(folder, testing::tiny_llama());
    json gated = method("adaponderlm", 2);
    gated["pondering"].update({{"threshold", 0.0001}, {"embed_scale", "sqrt_d"}});
    const Outcome outcome = outcome_of(folder, hardly_continued(gated));
    ASSERT_EQ(outcome.complaint, "");
    const auto said = std::find_if(outcome.notices.begin(), outcome.notices.end(), [](const auto& sentence) {
        return sentence.find("pondering.gates.0.fc_in.weight") != std::string::npos;
    });
    ASSERT_NE(said, outcome.notices.end());
    EXPECT_EQ(said->find("model.layers"), std::string::npos) << *said;

    EXPECT_EQ(Checkpoint::open(folder / "out").config.ponder.method, MethodKind::adaponderlm);
    expect_kept(folder);
    EXPECT_GT(parameters_in(folder / "out").items().size(), parameters_in(folder / "start").items().size());

    const json provenance = read_json_file(folder / "out" / "training.json");
    EXPECT_EQ(provenance.at("recipe").at("initialization").at("from"),
              checkpoint_digest(Checkpoint::open(folder / "start")));
}

/// The tokenizer of older checkpoints: two files, and what stands beside them. All of it is in the folder
/// that training leaves, and reads texts there as it did before.
TEST(Continue, FromVocabularyAndMerges) {
    const TemporaryFolder folder;
    write_checkpoint(folder, testing::small_recipe().at("model"));
    const json whole = read_json_file(folder / "start" / "tokenizer.json");
    std::string merges = "#version: 0.2\n";
    for (const json& merge : whole.at("model").at("merges")) {
        merges += (merge.is_string() ? merge.get<std::string>()
                                     : merge[0].get<std::string>() + " " + merge[1].get<std::string>()) +
                  "\n";
    }
    testing::write_text(folder / "start" / "vocab.json", whole.at("model").at("vocab").dump());
    testing::write_text(folder / "start" / "merges.txt", merges);
    testing::write_text(folder / "start" / "tokenizer_config.json",
                        R"({"tokenizer_class": "GPT2Tokenizer"})");
    std::filesystem::remove(folder / "start" / "tokenizer.json");
    const Tokenizer before = Tokenizer::load_folder(folder / "start");

    ASSERT_EQ(outcome_of(folder, hardly_continued()).complaint, "");
    const Checkpoint end = Checkpoint::open(folder / "out");
    EXPECT_EQ(end.vocabulary, folder / "out" / "vocab.json");
    const Tokenizer after = Tokenizer::load_folder(end.folder);
    EXPECT_EQ(after.content_digest(), before.content_digest());
    EXPECT_EQ(after.files().size(), 3U);
}

/// Gates that a checkpoint has are taken too, in the sizes that its files give them.
TEST(Continue, KeepsTheGatesOfTheSameMethod) {
    struct Gates {
        const char* method;
        std::int64_t rows; ///< 0: as training begins them
        const char* tensor;
        std::int64_t expected;
    };
    for (const Gates& gates : {Gates{"ponderlm3", 0, "pondering.router.weight", 3},
                               Gates{"adaptive_latent_cot", 2, "pondering.router.weight", 2},
                               Gates{"adaponderlm", 7, "pondering.gates.1.fc_in.weight", 7}}) {
        SCOPED_TRACE(gates.method);
        const TemporaryFolder folder;
        json config = testing::tiny_llama();
        config.update(method(gates.method, 2));
        write_checkpoint(folder, config, 0, gates.rows);
        const Outcome outcome = outcome_of(folder, hardly_continued());
        ASSERT_EQ(outcome.complaint, "");
        EXPECT_FALSE(outcome.said(gates.tensor)) << "begun anew";
        const Checkpoint end = Checkpoint::open(folder / "out");
        ASSERT_EQ(end.weights.find(gates.tensor)->shape.front(), gates.expected);
        expect_kept(folder);
    }
}

/// Two methods call different things a router; a number of steps may be part of its shape.
TEST(Continue, BeginsTheGatesOfAnotherMethodAnew) {
    const TemporaryFolder folder;
    json config = testing::tiny_llama();
    config.update(method("adaptive_latent_cot", 2));
    write_checkpoint(folder, config, 0, 2);
    const Outcome outcome = outcome_of(folder, hardly_continued(method("ponderlm3", 1)));
    ASSERT_EQ(outcome.complaint, "");
    EXPECT_TRUE(outcome.said("pondering.router.weight, pondering.router.bias"));

    config.update(method("ponderlm3", 2));
    write_checkpoint(folder, config);
    const std::string said = outcome_of(folder, hardly_continued(method("ponderlm3", 3))).complaint;
    EXPECT_NE(said.find("max_steps"), std::string::npos) << said;
    EXPECT_TRUE(said.ends_with("[json.value]")) << said;
}

/// The files decide how many tables there are, and config.json then says so.
TEST(Continue, KeepsTwoTablesThatTheConfigTies) {
    const TemporaryFolder folder;
    json config = testing::tiny_llama();
    config["tie_word_embeddings"] = false;
    write_checkpoint(folder, config);
    json tied = read_json_file(folder / "start" / "config.json");
    tied["tie_word_embeddings"] = true;
    testing::write_text(folder / "start" / "config.json", tied.dump());
    ASSERT_EQ(outcome_of(folder, hardly_continued()).complaint, "");
    EXPECT_FALSE(Checkpoint::open(folder / "out").config.tied_embeddings);
    EXPECT_EQ(parameters_in(folder / "out").items().size(), parameters_in(folder / "start").items().size());
    expect_kept(folder);
}

/// Where the stack ends with a projection, its states are in bf16 before the head.
TEST(Continue, Bfloat16TrainsNarrowEmbeddings) {
    const TemporaryFolder folder;
    write_checkpoint(folder, testing::tiny_opt());
    int differ = 0;
    for (const char* name : {"vanilla", "ponderlm", "ponderlm_reset", "ponderlm_hidden", "ponderlm2",
                             "adaponderlm", "ponderlm3", "adaptive_latent_cot"}) {
        SCOPED_TRACE(name);
        json recipe = hardly_continued(method(name, 2));
        recipe["log"] = {{"every", 1}};
        double losses[2] = {};
        for (const bool half : {false, true}) {
            recipe["training"]["precision"] = half ? "bfloat16" : "float32";
            const Outcome outcome = outcome_of(folder, recipe);
            ASSERT_EQ(outcome.complaint, "");
            losses[half ? 1 : 0] = outcome.losses.back();
        }
        differ += losses[0] != losses[1] ? 1 : 0;
        EXPECT_NEAR(losses[0], losses[1], 0.02);
    }
    EXPECT_GE(differ, 4); // of eight: six digits are logged, and one may round to the same
}

TEST(Continue, SaysWhatDoesNotFit) {
    const TemporaryFolder folder;
    write_checkpoint(folder, testing::tiny_llama());
    const auto refused = [&](const json& recipe, const std::string& part) {
        const std::string said = outcome_of(folder, recipe).complaint;
        EXPECT_NE(said.find(part), std::string::npos) << "\"" << said << "\" lacks \"" << part << '"';
    };
    refused(continued({{"hidden_size", 64}}), "\"model.hidden_size\"");
    json nowhere = continued();
    nowhere["initialization"]["from"] = "elsewhere";
    refused(nowhere, "elsewhere");
    nowhere["initialization"]["from"] = "start/elsewhere";
    refused(nowhere, "start/elsewhere");
    json misspelt = continued();
    misspelt["initialization"] = {{"form", "start"}};
    refused(misspelt, "\"initialization.form\"");
    json long_context = continued();
    long_context["training"]["context"] = 1000;
    refused(long_context, "training.context");
    // A part of the plain model that is missing is an error, not a fresh start.
    json other = read_json_file(folder / "start" / "config.json");
    other["num_hidden_layers"] = other["num_hidden_layers"].get<int>() + 1;
    testing::write_text(folder / "start" / "config.json", other.dump());
    refused(continued(), "model.layers.");

    const TemporaryFolder spoilt;
    write_checkpoint(spoilt, testing::tiny_llama(), std::nan(""));
    EXPECT_TRUE(outcome_of(spoilt, continued()).complaint.ends_with("[checkpoint.damaged]"));
}

/// Methods whose training needs more than is computed here are refused before their weights are read.
TEST(Continue, RefusesMethodsThatAreNotTrainedBeforeAnythingIsComputed) {
    std::vector<std::string> refused;
    for (const auto& entry :
         std::filesystem::directory_iterator(testing::source_tree() / "tests" / "golden")) {
        if (!entry.is_directory()) {
            continue;
        }
        const std::string name = entry.path().filename().string();
        const std::string kind = name.starts_with("next_") ? name.substr(5) : name;
        const std::string method = kind.starts_with("retrofit_")   ? "huginn"
                                   : kind.starts_with("hrm_text_") ? "hrm_text"
                                                                   : kind.substr(0, kind.find('_'));
        const MethodInfo* info = method_info(method);
        if (info == nullptr || info->untrained == nullptr) {
            continue;
        }
        const TemporaryFolder folder;
        json recipe = testing::small_recipe();
        recipe.erase("model");
        recipe["initialization"] = {{"from", entry.path().string()}};
        TrainOptions options = testing::into(folder / "out");
        int computed = 0;
        options.progress = [&](const Progress&) { ++computed; };
        const std::string said =
            testing::error_of([&] { (void)train(testing::written_recipe(folder.path(), recipe), options); });
        EXPECT_TRUE(said.starts_with((entry.path() / "config.json").string() + ": ")) << said;
        EXPECT_NE(said.find(" " + method + ", "), std::string::npos) << said;
        EXPECT_TRUE(said.ends_with("[usage.unsuited]")) << said;
        EXPECT_EQ(said.find('\n'), std::string::npos);
        EXPECT_EQ(computed, 0) << name;
        EXPECT_FALSE(std::filesystem::exists(folder / "out")) << name;
        refused.push_back(method);
    }
    for (const MethodInfo& info : method_infos()) {
        EXPECT_EQ(info.untrained == nullptr,
                  std::find(refused.begin(), refused.end(), to_string(info.kind)) == refused.end())
            << to_string(info.kind);
    }
}

} // namespace
} // namespace ponderscope
