// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/trainer.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/safetensors.h"
#include "core/model/device.h"
#include "core/ponder/engine/engine.h"
#include "core/text/tokenizer.h"
#include "core/trace/reader.h"
#include "tests/core/train/small_recipe.h"
#include "tests/support/errors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

namespace ponderscope {
namespace {

/// Asked before a gradient is: from then on LibTorch would not look for its CUDA half.
[[maybe_unused]] const bool gpu_is_there = device_for("auto", 0).is_cuda();

using nlohmann::json;
using namespace testing;

json ponderlm_recipe() {
    json recipe = small_recipe();
    recipe["model"]["ponderinglm"] = true;
    recipe["model"]["pondering_steps"] = 2;
    recipe["model"]["scale_embeds"] = true;
    return recipe;
}

json llama_recipe() {
    json recipe = small_recipe();
    recipe["model"] = {
        {"model_type", "llama"},    {"hidden_size", 32},           {"num_hidden_layers", 2},
        {"num_attention_heads", 4}, {"num_key_value_heads", 2},    {"intermediate_size", 48},
        {"initializer_range", 0.1}, {"tie_word_embeddings", true}, {"max_position_embeddings", 32}};
    return recipe;
}

json mixing_recipe(const json& keys) {
    json recipe = llama_recipe();
    recipe["model"].update(keys);
    return recipe;
}

const std::vector<std::string> finished_files{"config.json", "model.safetensors", "tokenizer.json",
                                              "training.json", "training.ponder"};

std::string complaint(const Recipe& recipe, const TrainOptions& options) {
    return error_of([&] { static_cast<void>(train(recipe, options)); });
}

/// NLL of every token of \p text but the first, in fp32, as the engine scores it.
std::vector<float> scored(const std::filesystem::path& checkpoint, const std::vector<std::int32_t>& ids) {
    const Engine engine = Engine::load(Checkpoint::open(checkpoint));
    const Window window{ids, 0, static_cast<std::int64_t>(ids.size())};
    return engine.score(std::span(&window, 1), RecordLevel::basic).front().tokens.nll;
}

class Train : public ::testing::Test {
protected:
    TemporaryFolder folder;
};

class EveryModel : public ::testing::TestWithParam<std::string> {
protected:
    TemporaryFolder folder;
    [[nodiscard]] json recipe() const {
        return GetParam() == "llama"      ? llama_recipe()
               : GetParam() == "ponderlm" ? ponderlm_recipe()
               : GetParam() == "vanilla"  ? small_recipe()
               : GetParam() == "mhc" ? mixing_recipe({{"baseline_mode", "mhc"}, {"mhc_sinkhorn_iters", 2}})
               : GetParam() == "depth_attention"
                   ? mixing_recipe({{"use_depth_attention", true}, {"use_qk_norm", true}})
                   : recipe_of(GetParam());
    }
};

TEST_P(EveryModel, LearnsASmallTextByHeart) {
    json document = recipe();
    document["training"] = {{"steps", 150}, {"context", 16}, {"batch", 4}, {"seed", 1}};
    document["optimizer"] = {{"learning_rate", 0.02}, {"warmup_steps", 5}, {"weight_decay", 0.0}};
    document["log"] = {{"every", 25}};
    const Recipe read = written_recipe(folder.path(), document);
    std::vector<double> losses;
    TrainOptions options = into(folder / "out");
    options.logged = [&](const TrainLogRow& row) { losses.push_back(row.loss); };
    const TrainResult result = train(read, options);

    ASSERT_EQ(losses.size(), 6U);
    EXPECT_LT(losses.back(), losses.front() / 10) << "the loss falls";
    EXPECT_LT(result.loss, 0.15) << "from " << std::log(2048.0) << " at the start";
    EXPECT_EQ(result.steps, 150);
    EXPECT_EQ(result.tokens, 150 * 4 * 16);
    EXPECT_EQ(names_in(folder / "out"), finished_files);

    // What was written is what the engine runs: the text is no surprise to it.
    const Tokenizer tokenizer = Tokenizer::load(folder / "out" / "tokenizer.json");
    auto ids = tokenizer.encode(read_file(folder / "a.txt"), false).ids;
    ids.resize(16);
    const auto nll = scored(folder / "out", ids);
    double sum = 0;
    for (std::size_t i = 8; i + 1 < nll.size(); ++i) {
        sum += nll[i];
    }
    EXPECT_LT(sum / 7, 1.0);
}

TEST_P(EveryModel, ResumesToTheSameBytes) {
    json document = recipe();
    document["training"]["steps"] = 11;
    document["texts"]["held_out_fraction"] = 0.2;
    document["evaluation"] = {{"every", 4}, {"windows", 2}, {"final_windows", 3}};
    document["checkpoint"] = {{"every", 5}};
    const Recipe read = written_recipe(folder.path(), document);
    const TrainResult whole = train(read, into(folder / "whole"));

    // Stopped twice: once between two lines of the log, once right after one.
    for (const std::int64_t until : {4, 9}) {
        std::stop_source source;
        TrainOptions options = into(folder / "pieces");
        options.existing = ExistingOutput::resume;
        options.stop = source.get_token();
        options.progress = [&](const Progress& progress) {
            if (progress.activity == "training" && progress.done >= until * 64) {
                source.request_stop();
            }
        };
        options.logged = [&](const TrainLogRow& row) {
            if (row.step >= until) {
                source.request_stop();
            }
        };
        EXPECT_THROW(train(read, options), Cancelled);
        EXPECT_TRUE(std::filesystem::exists(folder / "pieces" / "training_state.safetensors"));
        const json provenance = read_json_file(folder / "pieces" / "training.json");
        EXPECT_FALSE(provenance.at("complete").get<bool>());
        EXPECT_LT(provenance.at("steps").get<int>(), 11);
    }
    TrainOptions options = into(folder / "pieces", ExistingOutput::resume);
    const TrainResult pieces = train(read, options);

    EXPECT_EQ(read_file(folder / "pieces" / "model.safetensors"),
              read_file(folder / "whole" / "model.safetensors"));
    EXPECT_EQ(read_file(folder / "pieces" / "config.json"), read_file(folder / "whole" / "config.json"));
    EXPECT_EQ(pieces.held_out_nll, whole.held_out_nll);
    EXPECT_EQ(whole.held_out_tokens, 3 * 16) << "three windows of 16 tokens";
    EXPECT_EQ(pieces.loss, whole.loss);
    EXPECT_EQ(names_in(folder / "pieces"), finished_files);
    // Once more: nothing is left to do, and nothing is done.
    const auto before = std::filesystem::last_write_time(folder / "pieces" / "model.safetensors");
    const TrainResult again = train(read, options);
    EXPECT_TRUE(again.already_complete);
    EXPECT_EQ(again.held_out_nll, whole.held_out_nll);
    EXPECT_EQ(std::filesystem::last_write_time(folder / "pieces" / "model.safetensors"), before);
}

INSTANTIATE_TEST_SUITE_P(Train, EveryModel,
                         ::testing::Values("vanilla", "ponderlm", "llama", "looped", "pause", "ponderlm2",
                                           "adaponderlm", "ponderlm3", "adaptive_latent_cot",
                                           "depth_attention", "mhc"),
                         [](const auto& model) { return model.param; });

TEST_F(Train, LambdaPushesThePenaltyDown) {
    for (const std::string method : {"adaponderlm", "adaptive_latent_cot", "ponderlm3"}) {
        const auto penalty_with = [&](double lambda) {
            const TemporaryFolder own;
            json document = recipe_of(method);
            document["model"]["pondering"]["threshold"] = 0;
            document["penalty"] = {{"lambda", lambda}};
            if (method == "adaponderlm") {
                document["penalty"].update({{"k_max", 1.0}, {"ramp_start", 0}, {"ramp_end", 0}});
            }
            document["training"]["steps"] = 30;
            double last = 0;
            TrainOptions options = into(own / "out");
            options.logged = [&](const TrainLogRow& row) { last = row.penalty.value_or(-1); };
            static_cast<void>(train(written_recipe(own.path(), document), options));
            return last;
        };
        EXPECT_LT(penalty_with(10.0), 0.8 * penalty_with(0.0)) << method;
    }
}

TEST_F(Train, WritesAConfigThatSaysWhatTheModelIs) {
    json document = ponderlm_recipe();
    document["output"]["dtype"] = "bfloat16";
    document["training"]["steps"] = 1;
    document["optimizer"]["warmup_steps"] = 1;
    static_cast<void>(train(written_recipe(folder.path(), document), into(folder / "out")));
    const json config = read_json_file(folder / "out" / "config.json");
    EXPECT_EQ(config.at("model_type"), "gpt_neox");
    EXPECT_EQ(config.at("architectures"), json::array({"GPTNeoXForCausalLM"}));
    EXPECT_EQ(config.at("ponderinglm"), true);
    EXPECT_EQ(config.at("pondering_steps"), 2);
    EXPECT_EQ(config.at("scale_embeds"), true);
    EXPECT_EQ(config.at("vocab_size"), 2048);
    EXPECT_EQ(config.at("max_position_embeddings"), 16);
    EXPECT_EQ(config.at("torch_dtype"), "bfloat16");
    EXPECT_EQ(config.at("eos_token_id"), 0);
    const SafetensorsFile weights = SafetensorsFile::open(folder / "out" / "model.safetensors");
    for (const auto& tensor : weights.tensors()) {
        EXPECT_EQ(tensor.dtype, DType::bf16) << tensor.name;
    }
    const auto checkpoint = Checkpoint::open(folder / "out");
    EXPECT_EQ(checkpoint.config.ponder.method, MethodKind::ponderlm);
    EXPECT_EQ(checkpoint.config.ponder.max_steps, 2);
}

TEST_F(Train, SameSeedSameBytesOtherSeedOthers) {
    Recipe recipe = written_recipe(folder.path());
    static_cast<void>(train(recipe, into(folder / "one")));
    static_cast<void>(train(recipe, into(folder / "two")));
    recipe.seed = 8;
    static_cast<void>(train(recipe, into(folder / "three")));
    EXPECT_EQ(read_file(folder / "one" / "model.safetensors"),
              read_file(folder / "two" / "model.safetensors"));
    EXPECT_NE(read_file(folder / "one" / "model.safetensors"),
              read_file(folder / "three" / "model.safetensors"));
}

TEST_F(Train, Bfloat16ProductsTrainFp32Weights) {
    Recipe recipe = written_recipe(folder.path(), ponderlm_recipe());
    TrainOptions options = into(folder / "fp32");
    options.logged = [](const TrainLogRow& row) {
        EXPECT_FALSE(row.penalty.has_value());
        EXPECT_EQ(row.mean_steps, 2.0);
    };
    const TrainResult exact = train(recipe, options);
    recipe.precision = Precision::bfloat16;
    const TrainResult rounded = train(recipe, into(folder / "bf16"));
    EXPECT_NE(exact.loss, rounded.loss);
    EXPECT_NEAR(exact.loss, rounded.loss, 0.05);
    EXPECT_EQ(read_json_file(folder / "bf16" / "training.json").at("made_with").at("precision"), "bfloat16");
    recipe.precision = Precision::tf32; // rounds on a GPU alone
    EXPECT_EQ(train(recipe, into(folder / "tf32")).loss, exact.loss);
    EXPECT_EQ(read_json_file(folder / "tf32" / "training.json").at("made_with").at("precision"), "tf32");
}

TEST_F(Train, StopsWhenTheLossIsNotANumberAndKeepsTheLastGoodState) {
    json document = small_recipe();
    document["training"]["steps"] = 300;
    document["training"]["clip_norm"] = 0;
    document["optimizer"] = {{"learning_rate", 10},
                             {"warmup_steps", 0},
                             {"weight_decay", 10}}; // every step multiplies the weights by -99
    document["checkpoint"] = {{"every", 2}};
    const Recipe recipe = written_recipe(folder.path(), document);
    const std::string said =
        error_of<CheckFailed>([&] { static_cast<void>(train(recipe, into(folder / "out"))); });
    const TrainingInfo training = TraceReader::open(folder / "out" / "training.ponder").trainings().at(0);
    EXPECT_FALSE(training.complete);
    EXPECT_TRUE(said.ends_with(training.fault + " [check.failed]")) << training.fault;
    EXPECT_EQ(training.fault.find(folder.path().string()), std::string::npos);
    EXPECT_LT(training.step, 300);
    const SafetensorsFile state = SafetensorsFile::open(folder / "out" / "training_state.safetensors");
    const std::string last_good = json::parse(state.metadata().at("state")).at("step").dump();
    EXPECT_NE(said.find(" " + last_good), std::string::npos) << said;
    for (const auto& tensor : state.tensors()) {
        std::vector<float> values(tensor.bytes.size() / sizeof(float));
        std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
        if (tensor.name.starts_with("weights/")) {
            EXPECT_TRUE(std::all_of(values.begin(), values.end(), [](float value) {
                return std::isfinite(value);
            })) << tensor.name;
        }
    }
}

TEST_F(Train, TouchesNoFolderThatIsNotEmpty) {
    const Recipe recipe = written_recipe(folder.path());
    std::filesystem::create_directory(folder / "out");
    write_text(folder / "out" / "model.safetensors", "precious");
    write_text(folder / "out" / "notes.txt", "mine");
    const std::string refused = complaint(recipe, into(folder / "out"));
    EXPECT_NE(refused.find("--resume"), std::string::npos) << refused;
    EXPECT_NE(refused.find("--overwrite"), std::string::npos) << refused;
    EXPECT_EQ(read_file(folder / "out" / "model.safetensors"), "precious");

    TrainOptions options = into(folder / "out", ExistingOutput::resume);
    EXPECT_NE(complaint(recipe, options).find("training_state.safetensors"), std::string::npos);
    EXPECT_EQ(read_file(folder / "out" / "model.safetensors"), "precious");

    options.existing = ExistingOutput::overwrite;
    static_cast<void>(train(recipe, options));
    EXPECT_NE(read_file(folder / "out" / "model.safetensors"), "precious");
    EXPECT_EQ(read_file(folder / "out" / "notes.txt"), "mine") << "only what a training writes is replaced";

    write_text(folder / "file", "");
    EXPECT_TRUE(complaint(recipe, into(folder / "file")).ends_with("[file.kind]"));
}

/// Ended by a signal before it had a state: a loop that says --resume gets its training all the same.
TEST_F(Train, BeginsAgainWhereNothingWasSaved) {
    const Recipe recipe = written_recipe(folder.path());
    TrainOptions options = into(folder / "out", ExistingOutput::resume);
    std::filesystem::create_directory(folder / "out");
    write_text(folder / "out" / "config.json", "{}");
    EXPECT_NE(complaint(recipe, options).find("training_state.safetensors"), std::string::npos) << "whose?";
    write_text(folder / "out" / "training.ponder", "");
    EXPECT_EQ(complaint(recipe, options), "");
    EXPECT_EQ(names_in(folder / "out"), finished_files);
}

TEST_F(Train, DoesNotReplaceWhatItReads) {
    json document = small_recipe();
    static_cast<void>(train(written_recipe(folder.path(), document), into(folder / "out")));
    const std::string weights = read_file(folder / "out" / "model.safetensors");
    TrainOptions options = into(folder / "out", ExistingOutput::overwrite);
    document["tokenizer"] = "out/tokenizer.json";
    EXPECT_EQ(complaint(written_recipe(folder.path(), document), options), "");
    document.erase("model");
    document["initialization"] = {{"from", "out"}};
    const std::string said = complaint(written_recipe(folder.path(), document), options);
    EXPECT_TRUE(said.ends_with("[file.exists]")) << said;
    EXPECT_EQ(read_file(folder / "out" / "model.safetensors"), weights);
    EXPECT_EQ(names_in(folder / "out"), finished_files);

    document = small_recipe();
    document["tokenizer"] = "linked.json";
    std::filesystem::create_symlink(folder / "out" / "tokenizer.json", folder / "linked.json");
    EXPECT_EQ(complaint(written_recipe(folder.path(), document), options), "");
    EXPECT_EQ(read_file(folder / "out" / "model.safetensors"), weights);
}

TEST_F(Train, ResumesOnlyWhatWasBegunAlike) {
    Recipe recipe = written_recipe(folder.path());
    std::stop_source source;
    TrainOptions options = into(folder / "out", ExistingOutput::resume);
    options.stop = source.get_token();
    options.logged = [&](const TrainLogRow&) { source.request_stop(); };
    EXPECT_THROW(train(recipe, options), Cancelled);
    options.stop = {};

    recipe.learning_rate = 0.5;
    const std::string other_recipe = complaint(recipe, options);
    EXPECT_NE(other_recipe.find("optimizer.learning_rate"), std::string::npos) << other_recipe;
    recipe = read_recipe(folder / "recipe.json");
    write_text(folder / "a.txt", repeated("Two pence, she decided. ", 40));
    const std::string other_text = complaint(recipe, options);
    EXPECT_NE(other_text.find("texts"), std::string::npos) << other_text;

    const auto state = folder / "out" / "training_state.safetensors";
    std::filesystem::resize_file(state, std::filesystem::file_size(state) / 2);
    EXPECT_NE(complaint(recipe, options).find("training_state.safetensors"), std::string::npos);
}

TEST_F(Train, FindsWhatIsWrongBeforeItTouchesTheFolder) {
    const Recipe sound = written_recipe(folder.path());
    const auto refused = [&](const std::function<void(Recipe&)>& spoil, const std::string& part) {
        Recipe recipe = sound;
        spoil(recipe);
        const std::string said = complaint(recipe, into(folder / "out"));
        EXPECT_NE(said.find(part), std::string::npos) << said << " lacks " << part;
        EXPECT_FALSE(std::filesystem::exists(folder / "out")) << said;
    };
    refused([](Recipe& recipe) { recipe.model["vocab_size"] = 100; }, "2048");
    refused([](Recipe& recipe) { recipe.model["num_attention_heads"] = 5; }, "recipe.json (model)");
    refused([](Recipe& recipe) { recipe.model["max_position_embeddings"] = 8; }, "training.context");
    refused(
        [](Recipe& recipe) {
            recipe.context = 100'000;
            recipe.model["max_position_embeddings"] = 100'000;
        },
        " 100000 ");
    refused([](Recipe& recipe) { recipe.tokenizer = "no/tokenizer.json"; }, "no/tokenizer.json");
    refused([](Recipe& recipe) { recipe.train_texts = {"none.txt"}; }, "none.txt");
    refused([](Recipe& recipe) { recipe.held_out_fraction = 0.01; }, "[training.recipe]");
    TrainOptions options = into(folder / "out");
    options.device = "gpu";
    EXPECT_NE(complaint(sound, options).find("'gpu'"), std::string::npos);
    options.device = "cuda:99";
    EXPECT_NE(complaint(sound, options).find("cuda:99"), std::string::npos);
    EXPECT_FALSE(std::filesystem::exists(folder / "out"));
}

} // namespace
} // namespace ponderscope
