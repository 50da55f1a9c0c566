// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/corpus.h"

#include "core/base/sha256.h"
#include "tests/core/train/small_recipe.h"
#include "tests/support/errors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace ponderscope {
namespace {

Tokenizer sample_tokenizer() {
    return Tokenizer::load(testing::source_tree() / "sample_models" / "tokenizer" / "tokenizer.json");
}

Recipe recipe_over(const std::filesystem::path& folder, std::vector<std::string> train,
                   std::vector<std::string> held_out = {}) {
    Recipe recipe = parse_recipe(testing::small_recipe().dump(), folder / "recipe.json");
    recipe.train_texts = std::move(train);
    recipe.held_out_texts = std::move(held_out);
    return recipe;
}

std::string complaint(const Recipe& recipe) {
    return testing::error_of([&] { static_cast<void>(load_corpus(recipe, sample_tokenizer())); });
}

TEST(Corpus, JoinsTextsInTheOrderOfTheirNamesAndKeepsHeldOutApart) {
    const testing::TemporaryFolder folder;
    testing::write_text(folder / "b.txt", "The boat was called Patience.");
    testing::write_text(folder / "a.txt", "There was once a ferry.");
    testing::write_text(folder / "c.txt", "The dog said nothing.");
    const Tokenizer tokenizer = sample_tokenizer();
    const Corpus corpus = load_corpus(recipe_over(folder.path(), {"*.txt"}, {"c*"}), tokenizer);
    ASSERT_EQ(corpus.texts.size(), 3U);
    EXPECT_EQ(corpus.texts[0].name, "a.txt");
    EXPECT_EQ(corpus.texts[0].sha256, sha256_hex("There was once a ferry."));
    EXPECT_EQ(tokenizer.decode(corpus.train),
              "There was once a ferry.<|endoftext|>The boat was called Patience.<|endoftext|>");
    EXPECT_EQ(tokenizer.decode(corpus.held_out), "The dog said nothing.<|endoftext|>");
    EXPECT_EQ(corpus.texts[2].train_tokens, 0);
    EXPECT_EQ(corpus.texts[2].held_out_tokens + 1, static_cast<std::int64_t>(corpus.held_out.size()));
    EXPECT_NEAR(corpus.held_out_bytes_per_token, 21.0 / static_cast<double>(corpus.held_out.size()), 1e-12);
}

TEST(Corpus, HoldsOutTheEndOfEveryText) {
    const testing::TemporaryFolder folder;
    testing::write_text(folder / "a.txt", testing::repeated("one two ", 50));
    Recipe recipe = recipe_over(folder.path(), {"a.txt"});
    recipe.held_out_fraction = 0.25;
    recipe.document_end.clear();
    const Tokenizer tokenizer = sample_tokenizer();
    const Corpus corpus = load_corpus(recipe, tokenizer);
    const auto all = corpus.train.size() + corpus.held_out.size();
    EXPECT_EQ(corpus.held_out.size(), all / 4);
    EXPECT_EQ(tokenizer.decode(corpus.train) + tokenizer.decode(corpus.held_out),
              testing::repeated("one two ", 50));
}

TEST(Corpus, HasAnotherDigestWhenATextChanges) {
    const testing::TemporaryFolder folder;
    const Recipe recipe = recipe_over(folder.path(), {"a.txt"});
    testing::write_text(folder / "a.txt", "Only a heron stood beneath the willow.");
    const std::string digest = load_corpus(recipe, sample_tokenizer()).digest;
    testing::write_text(folder / "a.txt", "Only a heron stood beneath the willow!");
    EXPECT_NE(load_corpus(recipe, sample_tokenizer()).digest, digest);
}

TEST(Corpus, SaysWhichTextIsMissingOrWrong) {
    const testing::TemporaryFolder folder;
    testing::write_text(folder / "a.txt", "Ring once.");
    testing::write_text(folder / "empty.txt", "");
    testing::write_text(folder / "latin1.txt", "caf\xe9");
    testing::write_text(folder / "nul.txt", std::string("a\0b", 3));
    const auto holds = [](const std::string& said, const std::string& part) {
        return said.find(part) != std::string::npos;
    };
    EXPECT_TRUE(holds(complaint(recipe_over(folder.path(), {"novel*.txt"})), "\"novel*.txt\""));
    EXPECT_TRUE(holds(complaint(recipe_over(folder.path(), {"a.txt"}, {"b.txt"})), "texts.held_out"));
    EXPECT_TRUE(holds(complaint(recipe_over(folder.path(), {"a.txt"}, {"a*"})), "texts.held_out"));
    EXPECT_TRUE(holds(complaint(recipe_over(folder.path(), {"empty.txt"})), "empty.txt"));
    EXPECT_TRUE(holds(complaint(recipe_over(folder.path(), {"latin1.txt"})), "latin1.txt"));
    EXPECT_TRUE(holds(complaint(recipe_over(folder.path(), {"nul.txt"})), "nul.txt"));
    Recipe end = recipe_over(folder.path(), {"a.txt"});
    end.document_end = "<|stop|>";
    EXPECT_TRUE(holds(complaint(end), "\"<|stop|>\""));
    Recipe nowhere = recipe_over(folder.path(), {"a.txt"});
    nowhere.texts = folder / "nowhere";
    EXPECT_TRUE(holds(complaint(nowhere), "nowhere"));
}

std::vector<std::int32_t> counting(std::int32_t size) {
    std::vector<std::int32_t> stream(static_cast<std::size_t>(size));
    std::iota(stream.begin(), stream.end(), 0);
    return stream;
}

TEST(Contexts, VisitEveryWindowOnceAnEpochInAnotherOrderEachTime) {
    const auto stream = counting(103);
    ContextSampler sampler(stream, 10, 5);
    ASSERT_EQ(sampler.windows_an_epoch(), 9);
    std::vector<std::vector<std::int32_t>> orders;
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
        std::vector<std::int32_t> begins;
        for (std::uint64_t i = 0; i < 9; ++i) {
            const auto window = sampler.window(epoch * 9 + i);
            ASSERT_EQ(window.size(), 11U);
            EXPECT_EQ(window.back(), window.front() + 10) << "a window is consecutive";
            begins.push_back(window.front());
        }
        orders.push_back(begins);
        std::sort(begins.begin(), begins.end());
        for (std::size_t i = 1; i < begins.size(); ++i) {
            EXPECT_EQ(begins[i], begins[i - 1] + 10) << "windows neither overlap nor leave out";
        }
        EXPECT_LT(begins.back() + 10, 100) << "the last 103 mod 10 are of no window";
    }
    EXPECT_NE(orders[0], orders[1]);
    EXPECT_NE(orders[1], orders[2]);
}

TEST(Contexts, DependOnSeedAndCounterAlone) {
    const auto stream = counting(1000);
    ContextSampler forward(stream, 7, 11);
    std::vector<std::int32_t> begins;
    for (std::uint64_t n = 0; n < 400; ++n) {
        begins.push_back(forward.window(n).front());
    }
    ContextSampler jumping(stream, 7, 11);
    for (const std::uint64_t n : {399U, 3U, 250U, 141U, 142U, 0U}) {
        EXPECT_EQ(jumping.window(n).front(), begins[n]) << n;
    }
    ContextSampler other(stream, 7, 12);
    std::size_t equal = 0;
    for (std::uint64_t n = 0; n < 100; ++n) {
        equal += other.window(n).front() == begins[n] ? 1U : 0U;
    }
    EXPECT_LT(equal, 10U);
}

TEST(Contexts, UnshiftedBeginWherePiecesOfTheirLengthBegin) {
    const auto stream = counting(61);
    ContextSampler sampler(stream, 10, 5, false);
    ASSERT_EQ(sampler.windows_an_epoch(), 6) << "the last piece's last token has its target";
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
        std::set<std::int32_t> begins;
        for (std::uint64_t i = 0; i < 6; ++i) {
            begins.insert(sampler.window(epoch * 6 + i).front());
        }
        EXPECT_EQ(begins, (std::set<std::int32_t>{0, 10, 20, 30, 40, 50})) << epoch;
    }
}

TEST(Contexts, FitStreamsThatAreJustLongEnough) {
    const auto stream = counting(12);
    const std::span<const std::int32_t> all(stream);
    ContextSampler exact(all.first(11), 10, 1);
    EXPECT_EQ(exact.window(0).front(), 0);
    EXPECT_EQ(exact.window(5).size(), 11U);
    ContextSampler spare(stream, 10, 1);
    std::set<std::int32_t> begins;
    for (std::uint64_t n = 0; n < 40; ++n) {
        begins.insert(spare.window(n).front());
    }
    EXPECT_EQ(begins, (std::set<std::int32_t>{0, 1}));
    const std::string refusal =
        testing::error_of([&] { const ContextSampler sampler(all.first(10), 10, 1); });
    EXPECT_TRUE(refusal.ends_with("[training.recipe]")) << refusal;
}

TEST(Contexts, HeldOutWindowsAreSpreadEvenly) {
    EXPECT_EQ(held_out_windows(41, 10, 0), (std::vector<std::int64_t>{0, 10, 20, 30}));
    EXPECT_EQ(held_out_windows(40, 10, 0), (std::vector<std::int64_t>{0, 10, 20}));
    EXPECT_EQ(held_out_windows(41, 10, 2), (std::vector<std::int64_t>{0, 20}));
    EXPECT_EQ(held_out_windows(41, 10, 9), (std::vector<std::int64_t>{0, 10, 20, 30}));
    EXPECT_TRUE(held_out_windows(10, 10, 0).empty());
}

} // namespace
} // namespace ponderscope
