// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/dtype.h"
#include "core/model/precision.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ponderscope {

/// A training recipe as a user writes it: one JSON file (keys: resources/docs/training.md). Two trainings
/// with one recipe on one CPU give the same bytes.
struct Recipe {
    std::filesystem::path source; ///< the recipe's file; relative paths start at its folder
    std::string name;
    std::string description;

    /// The future config.json: Hugging Face's keys for the architecture, and the method's public keys or our
    /// "pondering" section.
    nlohmann::json model;
    double initial_deviation = 0.02; ///< standard deviation of normally distributed initial weights
    /// A checkpoint to start from. `model` is the checkpoint's config.json with the recipe's method keys.
    /// Empty: new weights.
    std::filesystem::path start;
    std::string start_digest; ///< checkpoint_digest() of `start`; train() sets it

    std::filesystem::path tokenizer;         ///< a tokenizer.json, or a folder with a tokenizer
    std::filesystem::path texts;             ///< folder in which the patterns below find files
    std::vector<std::string> train_texts;    ///< file names with * and ?
    std::vector<std::string> held_out_texts; ///< never trained on, even if train_texts name them
    double held_out_fraction = 0;            ///< this share of each training text, at its end, is held out
    std::string document_end;                ///< token that ends each text; empty: none

    std::int64_t steps = 0;   ///< optimiser steps
    std::int64_t context = 0; ///< tokens per sequence
    std::int64_t batch = 0;   ///< sequences per step
    bool shifted = true;      ///< ContextSampler: each epoch cuts the texts at other positions
    std::uint64_t seed = 0;   ///< seed of the weights and of the order of the texts
    /// Precision of matrix products, not float16; absent: fp32 on a CPU, bf16 on CUDA. Weights and the
    /// optimiser's moments are always fp32.
    std::optional<Precision> precision;
    double clip_norm = 1.0; ///< largest Euclidean norm of the gradient; 0: no clipping

    double learning_rate = 1e-3; ///< peak
    double beta1 = 0.9;
    double beta2 = 0.95;
    double weight_decay = 0.1;
    std::int64_t warmup_steps = 0;
    double final_fraction = 0.1;

    /// Number of Jacobi refreshes of the interleaved rule in training (PonderLM-2's schedule); absent: the
    /// config's number, else 3.
    std::optional<std::int64_t> jacobi_iterations;
    double penalty_weight = 0.1; ///< lambda, the weight of the method's penalty on steps
    double penalty_beta = 0;     ///< PenaltySettings::beta
    double gate_share = 0.1;     ///< k_max of AdaPonderLM, the final k_s
    std::int64_t ramp_start = 0; ///< S0 and S1: k_s rises from 0 to k_max between these steps
    std::int64_t ramp_end = 0;

    std::int64_t evaluate_every = 0;    ///< steps; 0: only at the end
    std::int64_t evaluate_windows = 64; ///< contexts of held-out text in each evaluation before the end
    std::int64_t final_windows = 0;     ///< contexts in the last evaluation; 0: all
    std::int64_t checkpoint_every = 0;  ///< steps; 0: only at the end
    std::int64_t log_every = 10;        ///< steps
    DType output_dtype = DType::bf16;   ///< dtype of model.safetensors: bf16 or f32

    [[nodiscard]] std::int64_t tokens_per_step() const { return context * batch; }
    /// k_s at a step: k_max clamp((step - S0) / (S1 - S0), 0, 1) (methods.md section 5).
    [[nodiscard]] double gate_share_at(std::int64_t step) const;
    /// Step i of the w warm-up steps, counted from 0, has the rate peak * (i + 1) / w. Then the rate falls
    /// along half a cosine (Loshchilov and Hutter 2017, without restarts), from the peak at the last warm-up
    /// step to peak * final_fraction at the last step of the training. Later steps keep this rate.
    [[nodiscard]] double learning_rate_at(std::int64_t step) const;
};

/// Reads and checks a recipe. InputError names the file, the key and the found value; for an unknown key also
/// the nearest known key. `"extends": "other.json"`: the file's keys change other.json, a recipe in the same
/// folder (RFC 7396: objects are merged, null removes). \p changes are applied last, each SECTION.KEY=VALUE:
/// "training.seed=2". A value that is not JSON is a string. InputError: a change without a known key.
Recipe read_recipe(const std::filesystem::path& path, const std::vector<std::string>& changes = {});

/// read_recipe() for JSON in memory. \p source: the name in messages. Relative paths start at its folder.
Recipe parse_recipe(std::string_view text, const std::filesystem::path& source);

/// All values that affect the result, as JSON with defaults and without paths. Recipes with equal JSON train
/// the same weights on the same texts. Checkpoints store this JSON, and a resumed training compares it.
nlohmann::json essence(const Recipe& recipe);

} // namespace ponderscope
