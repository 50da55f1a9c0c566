// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/device.h"
#include "core/ponder/engine/model.h"
#include "core/text/tokenizer.h"
#include "core/train/adamw.h"
#include "core/train/contexts.h"
#include "core/train/corpus.h"
#include "core/train/held_out.h"
#include "core/train/model_setup.h"
#include "core/train/output_folder.h"
#include "core/train/train_state.h"
#include "core/train/trainer.h"
#include "core/train/training_trace.h"

#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ponderscope {

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
        double penalty = 0; ///< before lambda
        double mean_steps = 0;
    };
    [[nodiscard]] StepNumbers forward_backward();
    /// The form of forward passes in training and in its evaluations.
    [[nodiscard]] ForwardForm training_form() const {
        ForwardForm form;
        form.training = true;
        form.refreshes = recipe_.jacobi_iterations.value_or(config_.ponder.jacobi_iterations.value_or(3));
        return form;
    }
    void step();
    [[nodiscard]] HeldOut measure(const ForwardForm& form, std::int64_t most_windows, bool half,
                                  const std::stop_token& stop) {
        return measure_held_out(
            *model_, corpus_.held_out,
            {form, recipe_.context, recipe_.batch, most_windows, half, config_.ponder.threshold}, device_,
            options_.progress, stop);
    }
    void open_trace(bool fresh);
    void end_trace(const std::string& fault) {
        if (trace_) {
            trace_->end(fault);
        }
    }
    void log(double rate);
    [[nodiscard]] TrainLogRow row_of_last_steps(double rate) const;
    void append(const TrainLogRow& row, const HeldOut* measured = nullptr);
    void save(bool complete);
    void save_model(bool complete);
    void require_finite_weights();
    void round_weights();
    [[noreturn]] void diverged(const std::string& what, double loss, double norm);
    [[noreturn]] void memory_is_full();
    void train_on();
    void finish();
    [[nodiscard]] at::Tensor rows(std::int64_t first, std::int64_t count);
    /// The last row of the log that a resumed training keeps; the row after all steps is written again.
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
