// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/progress.h"
#include "core/train/recipe.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace ponderscope {

/// What to do when the target folder is not empty.
enum class ExistingOutput : std::uint8_t {
    refuse, ///< InputError; nothing is touched
    resume, ///< continue from training_state.safetensors; a finished training does not change; an empty
            ///< folder is begun
    overwrite ///< start again; replaces only files that a training writes
};

/// A row of the log of a training.
struct TrainLogRow {
    std::int64_t step = 0;   ///< steps done
    std::int64_t tokens = 0; ///< trained on so far
    double loss = 0;         ///< nats a token, mean over the steps since the row before
    double learning_rate = 0;
    double gradient_norm = 0;           ///< of the last step, before clipping
    std::optional<double> held_out_nll; ///< nats a token
    double seconds = 0;                 ///< of training so far, interruptions not counted
    std::optional<double> penalty = {}; ///< on steps, before lambda; mean over the same steps as the loss
    std::optional<double> mean_steps =
        {}; ///< K_t over all tokens, likewise; absent: the model does not ponder
};

struct TrainOptions {
    std::filesystem::path output; ///< folder, made when missing
    ExistingOutput existing = ExistingOutput::refuse;
    std::filesystem::path texts; ///< replaces the recipe's texts.folder; empty: the recipe's
    std::string device = "cpu";  ///< "cpu", "cuda", "cuda:N"
    ProgressSink
        progress; ///< "reading texts" in bytes, "training" in tokens, "measuring held-out text" in tokens
    std::function<void(const TrainLogRow&)> logged; ///< every row of the log, as written
    std::function<void(const std::string&)> notice; ///< sentences for the user
    std::stop_token stop; ///< honoured between steps: the state is saved, then Cancelled is thrown
};

struct TrainResult {
    std::int64_t steps = 0;
    std::int64_t tokens = 0;     ///< trained on
    std::int64_t parameters = 0; ///< elements, a tied table once
    double loss = 0;             ///< nats a token, mean over the last lines' worth of steps
    double held_out_nll = 0;     ///< nats a token over all held-out text, of the weights as stored, in
                                 ///< fp32; NaN without text
    std::int64_t held_out_tokens = 0;
    double seconds = 0;            ///< of training, interruptions not counted
    double tokens_per_second = 0;  ///< of this call; 0 when nothing was left to do
    bool already_complete = false; ///< resumed a finished training: nothing was done
};

/// Trains a model by a recipe and writes a checkpoint folder in Hugging Face layout:
/// - config.json, model.safetensors and the files of the tokenizer;
/// - training.json, the origin of the weights: recipe, texts with digests, tokens, time, loss, held-out NLL;
/// - training.ponder: the log, TrainingTrace;
/// - training_state.safetensors, until the training is finished: weights, moments, position in the data.
///
/// The folder is updated every `checkpoint.every` steps and when the training is stopped. Each file is
/// written under a temporary name and renamed, so that an interruption leaves the last complete state. On a
/// CPU, with the same number of threads, a resumed training ends with the same bytes as an uninterrupted one.
///
/// The loss is the method's own: the cross-entropy of its output, plus its penalty if it has one.
///
/// InputError: recipe, texts, tokenizer or folder; everything is checked before the folder is touched.
/// EnvironmentError. Cancelled. CheckFailed: the loss or a gradient became infinite or NaN; the message names
/// step and tensor, and the last saved state stays.
TrainResult train(const Recipe& recipe, const TrainOptions& options);

} // namespace ponderscope
