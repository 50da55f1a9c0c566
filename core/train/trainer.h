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

/// What train() does with an output folder that is not empty.
enum class ExistingOutput : std::uint8_t {
    refuse,   ///< InputError; no file changes
    resume,   ///< continue; a finished training stays unchanged; in an empty folder, start a training
    overwrite ///< start again; replaces only files that a training writes
};

/// A row of the training log.
struct TrainLogRow {
    std::int64_t step = 0;   ///< steps done
    std::int64_t tokens = 0; ///< trained tokens so far
    double loss = 0;         ///< nats per token, mean over the steps since the previous row
    double learning_rate = 0;
    double gradient_norm = 0;                ///< norm of the last step's gradient, before clipping
    double seconds = 0;                      ///< training time so far, without interruptions
    std::optional<double> held_out_nll = {}; ///< nats per token
    /// The penalty on steps, without the factor lambda, and the mean of K_t over all tokens. Both are means
    /// over the same steps as the loss. Absent: the method has no penalty, or no pondering steps.
    std::optional<double> penalty = {}, mean_steps = {};
};

struct TrainOptions {
    std::filesystem::path output; ///< folder, created if missing
    ExistingOutput existing = ExistingOutput::refuse;
    std::filesystem::path texts; ///< replaces the recipe's texts.folder; empty: no replacement
    std::string device = "cpu";  ///< "cpu", "cuda", "cuda:N"
    ProgressSink progress;       ///< "reading texts" (bytes), "training", "measuring held-out text" (tokens)
    std::function<void(const TrainLogRow&)> logged; ///< receives every row of the log
    std::function<void(const std::string&)> notice; ///< receives notices for the user
    std::stop_token stop; ///< checked between steps: the state is saved, then Cancelled is thrown
};

struct TrainResult {
    std::int64_t steps = 0;
    std::int64_t tokens = 0;     ///< trained tokens
    std::int64_t parameters = 0; ///< elements; a tied table counts once
    double loss = 0;             ///< nats per token, mean over the steps of the log's last row
    double held_out_nll = 0;     ///< nats per token, in fp32 with the stored weights; NaN: no held-out text
    std::int64_t held_out_tokens = 0;
    double seconds = 0;            ///< training time, without interruptions
    double tokens_per_second = 0;  ///< speed of this call; 0: no step remained
    bool already_complete = false; ///< resumed a finished training; no step ran
};

/// Trains a model by a recipe and writes a checkpoint folder in Hugging Face layout:
///   config.json, model.safetensors and the files of the tokenizer
///   training.json: recipe, texts with digests, tokens, time, loss, held-out NLL
///   training.ponder: the log (TrainingTrace)
///   training_state.safetensors, until the training is finished: weights, moments, position in the data
///
/// Updates the folder every `checkpoint.every` steps and when the training stops. Writes each file under a
/// temporary name and renames it, so an interruption leaves the last complete state. On a CPU with the same
/// number of threads, a resumed training ends with the same bytes as an uninterrupted one.
///
/// The loss is the cross-entropy of the output, plus the method's penalty, if any.
///
/// InputError: an invalid recipe, text, tokenizer or folder. All checks precede changes to the folder.
/// EnvironmentError: the folder cannot be written. Cancelled: a stop request. CheckFailed: the loss or a
/// gradient became infinite or NaN. The message names step and tensor, and the last saved state stays.
TrainResult train(const Recipe& recipe, const TrainOptions& options);

} // namespace ponderscope
