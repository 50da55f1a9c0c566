// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/recipe.h"

#include "core/base/words.h"
#include "tests/core/train/small_recipe.h"
#include "tests/support/errors.h"

#include <gtest/gtest.h>

namespace ponderscope {
namespace {

using nlohmann::json;

/// What a recipe is refused with; empty when it is not.
std::string complaint(const json& recipe) {
    return testing::error_of([&] { static_cast<void>(parse_recipe(recipe.dump(), "some/recipe.json")); });
}

json changed(const std::string& pointer, const json& value) {
    json recipe = testing::small_recipe();
    recipe[json::json_pointer(pointer)] = value;
    return recipe;
}

json without(const std::string& section, const std::string& key) {
    json recipe = testing::small_recipe();
    recipe.at(section).erase(key);
    return recipe;
}

TEST(Recipe, ReadsEveryKey) {
    json document = testing::small_recipe();
    document["description"] = "said";
    document["tokenizer"] = "../tok.json";
    document.update(json::parse(R"({
        "texts": {"folder": "novels", "train": ["*.txt"], "held_out": ["x.txt"], "held_out_fraction": 0.125,
                  "document_end": ""},
        "training": {"tokens": 1000, "context": 16, "batch": 8, "seed": 3, "precision": "bfloat16",
                     "clip_norm": 0.5, "shifted": false},
        "optimizer": {"learning_rate": 0.25, "betas": [0.8, 0.99], "weight_decay": 0.05, "warmup_steps": 1,
                      "final_fraction": 0.5},
        "evaluation": {"every": 5, "windows": 9, "final_windows": 3},
        "checkpoint": {"every": 6},
        "log": {"every": 4}})"));
    const Recipe recipe = parse_recipe(document.dump(), "/a/b/recipe.json");
    EXPECT_EQ(recipe.name, "small");
    EXPECT_EQ(recipe.description, "said");
    EXPECT_EQ(recipe.model.at("hidden_size"), 32);
    EXPECT_DOUBLE_EQ(recipe.initial_deviation, 0.1);
    EXPECT_EQ(recipe.tokenizer, "/a/tok.json");
    EXPECT_EQ(recipe.texts, "/a/b/novels");
    EXPECT_EQ(recipe.train_texts, std::vector<std::string>{"*.txt"});
    EXPECT_EQ(recipe.held_out_texts, std::vector<std::string>{"x.txt"});
    EXPECT_DOUBLE_EQ(recipe.held_out_fraction, 0.125);
    EXPECT_EQ(recipe.document_end, "");
    EXPECT_EQ(recipe.steps, 8) << "1000 tokens at 128 a step, rounded up";
    EXPECT_EQ(recipe.context, 16);
    EXPECT_EQ(recipe.batch, 8);
    EXPECT_EQ(recipe.seed, 3U);
    EXPECT_EQ(recipe.precision, Precision::bfloat16);
    EXPECT_DOUBLE_EQ(recipe.clip_norm, 0.5);
    EXPECT_FALSE(recipe.shifted);
    EXPECT_DOUBLE_EQ(recipe.learning_rate, 0.25);
    EXPECT_DOUBLE_EQ(recipe.beta1, 0.8);
    EXPECT_DOUBLE_EQ(recipe.beta2, 0.99);
    EXPECT_DOUBLE_EQ(recipe.weight_decay, 0.05);
    EXPECT_EQ(recipe.warmup_steps, 1);
    EXPECT_DOUBLE_EQ(recipe.final_fraction, 0.5);
    EXPECT_EQ(recipe.evaluate_every, 5);
    EXPECT_EQ(recipe.evaluate_windows, 9);
    EXPECT_EQ(recipe.final_windows, 3);
    EXPECT_EQ(recipe.checkpoint_every, 6);
    EXPECT_EQ(recipe.log_every, 4);
    EXPECT_EQ(recipe.output_dtype, DType::f32);
}

TEST(Recipe, NamesTheNearestKnownKey) {
    const std::vector<std::pair<std::string, std::string>> slips{
        {"/model/hiden_size", "hidden_size"},
        {"/model/num_attention_head", "num_attention_heads"},
        {"/model/ponderng_steps", "pondering_steps"},
        {"/training/contxet", "context"},
        {"/optimizer/learnig_rate", "learning_rate"},
        {"/optimizer/weigth_decay", "weight_decay"},
        {"/texts/held-out", "held_out"},
        {"/optimiser", "optimizer"},
        {"/checkpoint", ""},
    };
    for (const auto& [pointer, meant] : slips) {
        const std::string said = complaint(changed(pointer, meant.empty() ? json{{"evry", 3}} : json(1)));
        const std::string expected = meant.empty() ? "every" : meant;
        EXPECT_NE(said.find("some/recipe.json"), std::string::npos) << said;
        EXPECT_NE(said.find(" " + expected), std::string::npos) << pointer << ": " << said;
        EXPECT_TRUE(said.ends_with("[json.key]")) << said;
    }
    const std::string far = complaint(changed("/training/zzzzzzzz", 1));
    EXPECT_NE(far.find("\"training.zzzzzzzz\""), std::string::npos) << far;
    EXPECT_NE(far.find(" steps"), std::string::npos) << far;
}

TEST(Recipe, RefusesWhatCannotBeMeant) {
    struct Case {
        json recipe;
        std::string part; ///< of the sentence
    };
    json both = testing::small_recipe();
    both["training"]["tokens"] = 100;
    const std::vector<Case> cases{
        {changed("/model/model_type", "bert"), "\"bert\""},
        {without("model", "model_type"), "model.model_type"},
        {without("model", "hidden_size"), "model.hidden_size"},
        {without("model", "num_hidden_layers"), "model.num_hidden_layers"},
        {without("model", "intermediate_size"), "model.intermediate_size"},
        {changed("/model/hidden_size", -4), "model.hidden_size"},
        {changed("/model/hidden_size", "wide"), "\"wide\""},
        {changed("/model/initializer_range", 0), "model.initializer_range"},
        {without("training", "steps"), "[training.recipe]"},
        {both, "[training.recipe]"},
        {without("training", "context"), "training.context"},
        {without("training", "batch"), "training.batch"},
        {changed("/training/steps", 0), "training.steps"},
        {changed("/training/batch", 0), "training.batch"},
        {changed("/training/context", 0), "training.context"},
        {changed("/training/seed", -1), "training.seed"},
        {changed("/training/precision", "int8"), "\"int8\""},
        {changed("/training/precision", "float16"), "\"float16\""},
        {changed("/training/clip_norm", -1), "training.clip_norm"},
        {changed("/optimizer/learning_rate", 0), "optimizer.learning_rate"},
        {changed("/optimizer/betas", json::array({0.9})), "optimizer.betas"},
        {changed("/optimizer/betas", json::array({0.9, 1.0})), "optimizer.betas"},
        {changed("/optimizer/warmup_steps", 13), "--set optimizer.warmup_steps=N"},
        {changed("/optimizer/final_fraction", 1.5), "optimizer.final_fraction"},
        {changed("/texts/train", json::array()), "texts.train"},
        {changed("/texts/train", "a.txt"), "texts.train"},
        {changed("/texts/train", json::array({3})), "texts.train"},
        {changed("/texts/held_out_fraction", 1), "texts.held_out_fraction"},
        {changed("/output/dtype", "float64"), "\"float64\""},
        {changed("/log/every", 0), "log.every"},
    };
    for (const auto& [recipe, part] : cases) {
        const std::string said = complaint(recipe);
        EXPECT_EQ(said.rfind("some/recipe.json", 0), 0U)
            << "does not name the file: " << said << recipe.dump();
        EXPECT_NE(said.find(part), std::string::npos) << said << " lacks " << part;
    }
    EXPECT_EQ(complaint(testing::small_recipe()), "");
}

TEST(Recipe, ExtendsAnotherOne) {
    const testing::TemporaryFolder folder;
    json base = testing::small_recipe();
    base["description"] = "of the base";
    testing::write_text(folder / "base.json", base.dump());
    testing::write_text(folder / "middle.json",
                        json{{"extends", "base.json"}, {"training", {{"steps", 77}}}}.dump());
    testing::write_text(folder / "top.json", json{{"extends", "middle.json"},
                                                  {"name", "top"},
                                                  {"model", {{"rotary_pct", nullptr}, {"hidden_size", 48}}}}
                                                 .dump());
    const Recipe recipe = read_recipe(folder / "top.json");
    EXPECT_EQ(recipe.name, "top");
    EXPECT_EQ(recipe.description, "") << "a description is of one recipe";
    EXPECT_EQ(recipe.steps, 77);
    EXPECT_EQ(recipe.context, 16);
    EXPECT_EQ(recipe.model.at("hidden_size"), 48);
    EXPECT_FALSE(recipe.model.contains("rotary_pct")) << "null takes a key away";
    EXPECT_EQ(read_recipe(folder / "middle.json").name, "middle");

    const auto refused = [&](const json& document) {
        testing::write_text(folder / "bad.json", document.dump());
        return testing::error_of([&] { static_cast<void>(read_recipe(folder / "bad.json")); });
    };
    EXPECT_NE(refused({{"extends", "bad.json"}}).find("\"extends\""), std::string::npos);
    EXPECT_NE(refused({{"extends", "../base.json"}}).find("\"../base.json\""), std::string::npos);
    EXPECT_NE(refused({{"extends", 3}}).find("extends"), std::string::npos);
    EXPECT_NE(refused({{"extends", "none.json"}}).find("none.json"), std::string::npos);
    EXPECT_NE(refused({{"extends", "base.json"}, {"trainig", 3}}).find(" training"), std::string::npos);
    testing::write_text(folder / "list.json", "[1]");
    EXPECT_NE(refused({{"extends", "list.json"}}).find("list.json: "), std::string::npos);
}

TEST(Recipe, ChangesAreLaidOverIt) {
    const testing::TemporaryFolder folder;
    testing::write_text(folder / "a.json", testing::small_recipe().dump());
    const Recipe recipe =
        read_recipe(folder / "a.json", {"training.seed=77", "name=other", "optimizer.betas=[0.8, 0.9]",
                                        "model.rotary_pct=null"});
    EXPECT_EQ(recipe.seed, 77U);
    EXPECT_EQ(recipe.name, "other");
    EXPECT_EQ(recipe.beta1, 0.8);
    EXPECT_FALSE(recipe.model.contains("rotary_pct"));
    EXPECT_NE(essence(recipe), essence(read_recipe(folder / "a.json")));
    const auto refused = [&](const std::string& change) {
        return testing::error_of([&] { static_cast<void>(read_recipe(folder / "a.json", {change})); });
    };
    for (const char* change : {"training.seed", "=3", "training..seed=1", ".seed=1", ""}) {
        EXPECT_NE(refused(change).find('"' + std::string(change) + '"'), std::string::npos) << change;
    }
    EXPECT_NE(refused("training.sed=2").find(" seed"), std::string::npos);
    EXPECT_NE(refused("training.seed=two").find("seed"), std::string::npos);
    EXPECT_NE(refused("extends=a.json").find("\"extends\""), std::string::npos);
}

TEST(Recipe, EssenceHoldsWhatDecidesTheResult) {
    const json before = essence(parse_recipe(testing::small_recipe().dump(), "a.json"));
    for (const auto* pointer : {"/training/seed", "/training/batch", "/training/context",
                                "/model/hidden_size", "/training/steps"}) {
        json other = testing::small_recipe();
        auto& value = other[json::json_pointer(pointer)];
        value = value.get<int>() + 2;
        EXPECT_NE(essence(parse_recipe(other.dump(), "a.json")), before) << pointer;
    }
    json same = testing::small_recipe();
    same["name"] = "other";
    same["log"]["every"] = 1;
    same["checkpoint"] = {{"every", 2}};
    same["optimizer"]["weight_decay"] = 0.1;
    EXPECT_EQ(essence(parse_recipe(same.dump(), "elsewhere/b.json")), before);
    EXPECT_EQ(json::parse(before.dump()), before) << "comparable after it was stored";
}

TEST(Recipe, NearestCountsSwapsAsOne) {
    EXPECT_EQ(nearest("abdc", {"abcd", "abxx"}), "abcd");
    EXPECT_EQ(nearest("bathc", {"batch", "bathed"}), "batch");
    EXPECT_EQ(nearest("quite-other", {"batch", "seed"}), std::nullopt);
}

Recipe scheduled(double peak, std::int64_t warmup_steps, std::int64_t steps, double final_fraction) {
    Recipe recipe;
    recipe.learning_rate = peak;
    recipe.warmup_steps = warmup_steps;
    recipe.steps = steps;
    recipe.final_fraction = final_fraction;
    return recipe;
}

TEST(Schedule, WarmsUpInEqualSteps) {
    const Recipe recipe = scheduled(0.8, 4, 13, 0.25);
    EXPECT_DOUBLE_EQ(recipe.learning_rate_at(0), 0.2);
    EXPECT_DOUBLE_EQ(recipe.learning_rate_at(1), 0.4);
    EXPECT_DOUBLE_EQ(recipe.learning_rate_at(2), 0.6000000000000001);
    EXPECT_DOUBLE_EQ(recipe.learning_rate_at(3), 0.8);
}

TEST(Schedule, GoesDownHalfACosineToItsLastStep) {
    const Recipe recipe = scheduled(0.8, 4, 13, 0.25);
    // From step 3 to step 12: a third of the way is cos(60°) = 1/2, so 0.2 + 0.6 * 0.75; half way 0.2 + 0.6 *
    // 0.5 lies between steps.
    EXPECT_NEAR(recipe.learning_rate_at(6), 0.65, 1e-15);
    EXPECT_NEAR(recipe.learning_rate_at(9), 0.35, 1e-15);
    EXPECT_NEAR(recipe.learning_rate_at(12), 0.2, 1e-15);
    EXPECT_NEAR(recipe.learning_rate_at(40), 0.2, 1e-15);
    for (std::int64_t step = 4; step < 13; ++step) {
        EXPECT_LT(recipe.learning_rate_at(step), recipe.learning_rate_at(step - 1));
    }
}

TEST(Schedule, HasNoWarmUpWhenNoneIsAsked) {
    const Recipe recipe = scheduled(0.1, 0, 3, 0.0);
    EXPECT_DOUBLE_EQ(recipe.learning_rate_at(0), 0.1);
    EXPECT_NEAR(recipe.learning_rate_at(1), 0.05, 1e-16);
    EXPECT_NEAR(recipe.learning_rate_at(2), 0.0, 1e-16);
    EXPECT_DOUBLE_EQ(scheduled(0.1, 0, 1, 0.0).learning_rate_at(0), 0.1);
    EXPECT_DOUBLE_EQ(scheduled(0.1, 1, 1, 0.0).learning_rate_at(0), 0.1);
}

} // namespace
} // namespace ponderscope
