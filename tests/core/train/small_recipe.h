// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/train/recipe.h"
#include "core/train/trainer.h"
#include "tests/support/test_data.h"

#include <nlohmann/json.hpp>

#include <fstream>
#include <string>

namespace ponderscope::testing {

/// A recipe that trains in a second or two: a GPT-NeoX of two layers on one repeated sentence, with the
/// samples' tokenizer.
inline nlohmann::json small_recipe() {
    return {{"name", "small"},
            {"model", nlohmann::json::parse(R"({"model_type": "gpt_neox", "hidden_size": 32,
                "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64,
                "rotary_pct": 0.5, "initializer_range": 0.1})")},
            {"tokenizer", (source_tree() / "sample_models" / "tokenizer" / "tokenizer.json").string()},
            {"texts", {{"train", {"a.txt", "b.txt"}}, {"document_end", "<|endoftext|>"}}},
            {"training", {{"steps", 12}, {"context", 16}, {"batch", 2}, {"seed", 7}}},
            {"optimizer", {{"learning_rate", 0.01}, {"warmup_steps", 2}}},
            {"log", {{"every", 3}}},
            {"output", {{"dtype", "float32"}}}};
}

/// The same with our own section for a method, and its penalty.
inline nlohmann::json recipe_of(const std::string& method) {
    nlohmann::json recipe = small_recipe();
    recipe["model"]["pondering"] = {{"method", method}, {"max_steps", 2}, {"embed_scale", "sqrt_d"}};
    if (method == "adaponderlm") {
        recipe["penalty"] = {{"lambda", 0.1}, {"k_max", 0.3}, {"ramp_start", 2}, {"ramp_end", 8}};
    } else if (method == "adaptive_latent_cot") {
        recipe["penalty"] = {{"lambda", 0.01}, {"beta", 0.5}};
    } else if (method == "ponderlm3") {
        recipe["penalty"] = {{"lambda", 0.01}};
    } else if (method == "pause") {
        recipe["model"]["pause_token_id"] = 0;
    }
    return recipe;
}

inline TrainOptions into(const std::filesystem::path& output,
                         ExistingOutput existing = ExistingOutput::refuse) {
    TrainOptions options;
    options.output = output;
    options.existing = existing;
    return options;
}

inline void write_text(const std::filesystem::path& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
}

inline std::string repeated(const std::string& text, int times) {
    std::string result;
    for (int i = 0; i < times; ++i) {
        result += text;
    }
    return result;
}

/// The recipe, written into \p folder with the texts of small_recipe() and read back.
inline Recipe written_recipe(const std::filesystem::path& folder,
                             const nlohmann::json& recipe = small_recipe()) {
    write_text(folder / "a.txt",
               repeated("Ring once, and she came for one; ring twice, and she came for two. ", 12));
    write_text(folder / "b.txt",
               repeated("The boat was called Patience; the dog was called Bartholomew. ", 8));
    write_text(folder / "recipe.json", recipe.dump(2));
    return read_recipe(folder / "recipe.json");
}

} // namespace ponderscope::testing
