// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/method_info.h"
#include "core/model/device.h"
#include "core/model/parameters.h"
#include "core/ponder/engine/model.h"
#include "core/text/tokenizer.h"
#include "core/train/adamw.h"
#include "core/train/corpus.h"
#include "core/train/held_out.h"
#include "core/train/train_state.h"
#include "core/train/trainer.h"
#include "core/train/training_trace.h"

#include <nlohmann/json.hpp>

#include <chrono>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace ponderscope {

/// The config.json that a training writes: the recipe's model, start and end tokens, and torch_dtype; for a
/// new model also vocab_size, max_position_embeddings and architectures. If the start checkpoint ties its
/// tables in the config but not in the files, the new config does not tie them.
nlohmann::json complete_config(const Recipe& recipe, const Tokenizer& tokenizer);

/// InputError: this program does not train the checkpoint's method.
void require_trainable(const Checkpoint& start);

/// Reads \p config, the result of complete_config(). InputError, which names the recipe: an invalid config, a
/// tokenizer with more tokens than the model, or a context beyond the model's positions. The result includes
/// the notices of the config's reader.
ModelConfig model_config_of(const Recipe& recipe, const nlohmann::json& config, const Tokenizer& tokenizer);

/// The model's tensors, initialised by a normal distribution with the recipe's standard deviation. Matrices
/// that add to the residual stream are divided by sqrt(2 L), so that the stream's variance does not grow with
/// depth (Radford et al. 2019).
ParameterLayout starting_layout(const Recipe& recipe, const ModelConfig& config);

/// The weights before the first step, on \p device in fp32. New weights, or the weights of the recipe's start
/// checkpoint. Parts that the start checkpoint lacks get new tensors: gates, routers, depth mixing. Gates and
/// routers of another method are not reused. \p notice reports the new tensors. InputError: a tensor that is
/// absent, of another shape or not finite. Cancelled.
Parameters starting_parameters(const Recipe& recipe, const ModelConfig& config, at::Device device,
                               const std::function<void(const std::string&)>& notice,
                               const std::stop_token& stop = {});

/// The output folder of a training, and the rules for its earlier content. One training for each folder.
class OutputFolder {
public:
    enum class Start : std::uint8_t { fresh, resumed, complete };

    /// Checks the folder without changing it. InputError: the path is not a folder; the folder is not empty
    /// and \p existing is refuse; or it has no training to resume.
    OutputFolder(std::filesystem::path path, ExistingOutput existing);

    [[nodiscard]] Start start() const { return start_; }
    /// Creates the folder; for a new start, removes the files of an earlier training. EnvironmentError.
    void prepare() const;

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    [[nodiscard]] std::filesystem::path config() const { return path_ / "config.json"; }
    [[nodiscard]] std::filesystem::path weights() const { return path_ / "model.safetensors"; }
    [[nodiscard]] std::filesystem::path provenance() const { return path_ / "training.json"; }
    [[nodiscard]] std::filesystem::path trace() const { return path_ / "training.ponder"; }
    [[nodiscard]] std::filesystem::path state() const { return path_ / "training_state.safetensors"; }

private:
    [[nodiscard]] bool has_begun() const;

    std::filesystem::path path_;
    Start start_ = Start::fresh;
};

/// The results in the training.json of a finished training. InputError: they are missing.
TrainResult read_provenance(const std::filesystem::path& path);

/// One call of train(): trainer.cpp computes, trainer_output.cpp writes.
class Trainer {
public:
    Trainer(const Recipe& recipe, const TrainOptions& options)
        : recipe_(recipe),
          options_(options),
          folder_(options.output, options.existing),
          device_(device_from_string(options.device)),
          tokenizer_(Tokenizer::load_folder(recipe.tokenizer)),
          config_json_(complete_config(recipe, tokenizer_)),
          config_(model_config_of(recipe, config_json_, tokenizer_)),
          precision_(recipe.precision.value_or(device_.is_cuda() ? Precision::bfloat16 : Precision::float32)),
          half_(precision_ == Precision::bfloat16) {}

    /// Checks all input before it changes the folder.
    TrainResult run();

private:
    using Clock = std::chrono::steady_clock;
    static constexpr double not_measured = std::numeric_limits<double>::quiet_NaN();
    static double seconds_since(Clock::time_point begin) {
        return std::chrono::duration<double>(Clock::now() - begin).count();
    }
    void require_inputs_elsewhere() const;
    void begin();
    void open_folder(bool fresh);
    void resume();
    struct StepNumbers {
        double loss = 0;    ///< cross-entropy, nats per token
        double penalty = 0; ///< without the factor lambda
        double mean_steps = 0;
    };
    [[nodiscard]] StepNumbers forward_backward();
    /// Options of the forward passes in training and in its evaluations.
    [[nodiscard]] ForwardForm training_form() const {
        ForwardForm form;
        form.training = true;
        form.refreshes = recipe_.jacobi_iterations.value_or(config_.ponder.jacobi_iterations.value_or(3));
        return form;
    }
    void step();
    /// Measures windows that are evenly spread over the held-out text; at most \p most_windows, 0: all.
    /// \p half: products in bf16. A stop request throws Cancelled.
    [[nodiscard]] HeldOut measure(const ForwardForm& form, std::int64_t most_windows, bool half,
                                  const std::stop_token& stop) const;
    void open_trace(bool fresh);
    void log(double rate);
    /// Whether the method's loss has a penalty on steps.
    [[nodiscard]] bool has_penalty() const { return !method_info(config_.ponder.method).penalty.empty(); }
    [[nodiscard]] TrainLogRow row_of_last_steps(double rate) const;
    void append(const TrainLogRow& row, const HeldOut* measured = nullptr);
    void save(bool complete);
    void save_model(bool complete);
    /// training.json: the recipe with all defaults, the texts with their digests, and the results so far.
    [[nodiscard]] nlohmann::json provenance(bool complete) const;
    void require_finite_weights();
    void round_weights();
    [[noreturn]] void diverged(const std::string& what, double loss, double norm);
    [[noreturn]] void memory_is_full();
    void train_on();
    void finish();
    /// Step of the last log row that a resumed training keeps. The training's last row is written again.
    [[nodiscard]] std::int64_t last_logged() const { return std::min(counters_.step, recipe_.steps - 1); }
    [[nodiscard]] std::int64_t tokens() const { return counters_.windows * recipe_.context; }
    void notice(const std::string& sentence) const {
        if (options_.notice) {
            options_.notice(sentence);
        }
    }

    const Recipe& recipe_;
    const TrainOptions& options_;
    OutputFolder folder_;
    at::Device device_;
    Tokenizer tokenizer_;
    nlohmann::json config_json_;
    ModelConfig config_;
    Precision precision_;
    bool half_; ///< products in bf16

    Corpus corpus_;
    std::unique_ptr<ContextSampler> sampler_;
    std::unique_ptr<AdamW> optimizer_;
    std::unique_ptr<Model> model_;
    std::unique_ptr<TrainingTrace> trace_;
    TrainCounters counters_;
    TrainResult result_;
    std::int64_t saved_step_ = 0; ///< step of the state on disk
    Clock::time_point began_;
    double seconds_before_ = 0; ///< seconds of earlier calls
};

} // namespace ponderscope
