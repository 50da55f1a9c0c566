// SPDX-License-Identifier: GPL-3.0-or-later
// The models that are shipped: they load, and they give every token of the sample text the NLL that an
// implementation which is not ours gave it (sample_models/make_reference.py).
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/checkpoint/checkpoint.h"
#include "core/ponder/engine/engine.h"
#include "core/text/tokenizer.h"
#include "tests/support/test_data.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

namespace ponderscope {
namespace {

class SampleModel : public ::testing::TestWithParam<std::string> {
protected:
    [[nodiscard]] std::filesystem::path folder() const {
        return testing::source_tree() / "sample_models" / GetParam();
    }
};

TEST_P(SampleModel, GivesTheStoredNllOnItsText) {
    const auto reference = read_json_file(folder() / "reference.json");
    const auto checkpoint = Checkpoint::open(folder());
    ASSERT_TRUE(checkpoint.vocabulary.has_value());
    const auto tokenizer = Tokenizer::load_folder(checkpoint.folder);
    const auto text = reference.at("text").get<std::string>();
    const auto encoding =
        tokenizer.encode(read_text_file(testing::source_tree() / "sample_models" / "texts" / text));
    const auto ids = reference.at("ids").get<std::vector<std::int32_t>>();
    ASSERT_EQ(encoding.ids, ids);

    const auto context = reference.at("context").get<std::size_t>();
    std::vector<Window> windows;
    for (std::size_t begin = 0; begin < ids.size(); begin += context) {
        const auto part = std::span(ids).subspan(begin, std::min(context, ids.size() - begin));
        windows.push_back({part, 0, static_cast<std::int64_t>(part.size())});
    }
    const Engine engine = Engine::load(checkpoint);
    const auto results = engine.score(windows, RecordLevel::basic);
    const auto expected = reference.at("nll").get<std::vector<std::vector<double>>>();
    ASSERT_EQ(results.size(), expected.size());
    double largest = 0;
    double sum = 0;
    std::size_t scored = 0;
    for (std::size_t w = 0; w < results.size(); ++w) {
        const auto& nll = results[w].tokens.nll;
        ASSERT_EQ(nll.size(), expected[w].size() + 1);
        EXPECT_TRUE(std::isnan(nll.back())) << "the last token of a window predicts nothing";
        for (std::size_t i = 0; i < expected[w].size(); ++i) {
            largest = std::max(largest, std::abs(static_cast<double>(nll[i]) - expected[w][i]));
            sum += nll[i];
            ++scored;
        }
        const auto steps = reference.at("steps").at(w).get<std::vector<std::int64_t>>();
        for (std::size_t i = 0; i < steps.size(); ++i) {
            EXPECT_EQ(results[w].tokens.steps[i], steps[i]) << "token " << i << " of window " << w;
        }
    }
    RecordProperty("largest_difference", std::to_string(largest));
    EXPECT_LT(largest, 1e-4);
    EXPECT_NEAR(sum / static_cast<double>(scored), reference.at("mean_nll").get<double>(), 1e-5);
}

TEST_P(SampleModel, TellsWhereItComesFrom) {
    const auto provenance = read_json_file(folder() / "training.json");
    EXPECT_TRUE(provenance.at("complete").get<bool>());
    EXPECT_GT(provenance.at("held_out_tokens").get<std::int64_t>(), 0);
    // A model that learned nothing gives every token of a vocabulary of 2048 the same chance.
    EXPECT_LT(provenance.at("held_out_nll").get<double>(), 0.75 * std::log(2048.0));
}

std::vector<std::string> shipped() {
    std::vector<std::string> names;
    for (const std::string group : {".", "cabinet", "chains"}) {
        for (const auto& entry :
             std::filesystem::directory_iterator(testing::source_tree() / "sample_models" / group)) {
            if (std::filesystem::exists(entry.path() / "config.json")) {
                names.push_back(
                    (std::filesystem::path(group) / entry.path().filename()).lexically_normal().string());
            }
        }
    }
    std::sort(names.begin(), names.end());
    return names;
}

INSTANTIATE_TEST_SUITE_P(Shipped, SampleModel, ::testing::ValuesIn(shipped()), [](const auto& model) {
    std::string name = model.param;
    std::replace_if(
        name.begin(), name.end(), [](char letter) { return letter == '-' || letter == '/'; }, '_');
    return name;
});

/// A recipe without what makes the model another one.
nlohmann::json without_model(const nlohmann::json& provenance) {
    nlohmann::json recipe = provenance.at("recipe");
    for (const char* key : {"model", "name", "description", "penalty"}) {
        recipe.erase(key);
    }
    return recipe;
}

TEST(SampleModels, OfTheCabinetSawTheSameTokens) {
    const auto root = testing::source_tree() / "sample_models" / "cabinet";
    const auto first = read_json_file(root / "depth_attention-llama" / "training.json");
    for (const auto& entry : std::filesystem::directory_iterator(root)) {
        const auto other = read_json_file(entry.path() / "training.json");
        EXPECT_EQ(other.at("tokens"), first.at("tokens")) << entry.path();
        EXPECT_EQ(other.at("corpus"), first.at("corpus")) << entry.path();
        EXPECT_EQ(without_model(other), without_model(first)) << entry.path();
        // What was trained is what the recipe of that name says.
        EXPECT_TRUE(std::filesystem::exists(testing::source_tree() / "sample_models" / "recipes" / "cabinet" /
                                            (entry.path().filename().string() + ".json")));
    }
}

TEST(SampleModels, SawTheSameTokens) {
    const auto root = testing::source_tree() / "sample_models";
    const auto vanilla = read_json_file(root / "vanilla-neox-1m" / "training.json");
    const auto ponderlm = read_json_file(root / "ponderlm-neox-1m" / "training.json");
    EXPECT_EQ(vanilla.at("tokens"), ponderlm.at("tokens"));
    EXPECT_EQ(vanilla.at("corpus"), ponderlm.at("corpus"));
    EXPECT_EQ(vanilla.at("parameters"), ponderlm.at("parameters"));
    auto one = vanilla.at("recipe");
    auto other = ponderlm.at("recipe");
    one.erase("model");
    other.erase("model");
    EXPECT_EQ(one, other) << "the two recipes differ in the method alone";
}

} // namespace
} // namespace ponderscope
