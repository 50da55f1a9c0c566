// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/trainer_impl.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/ponder/method.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <torch/version.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace ponderscope {

/// Adds a row to the log if it is due. finish() adds the row of the last step, with the final measurement.
void Trainer::log(double rate) {
    const bool last = counters_.step == recipe_.steps;
    const bool measured = !last && !corpus_.held_out.empty() && recipe_.evaluate_every > 0 &&
                          counters_.step % recipe_.evaluate_every == 0;
    if (!last && !measured && counters_.step % recipe_.log_every != 0) {
        return;
    }
    const auto count = static_cast<double>(counters_.loss_count);
    counters_.last_loss = counters_.loss_sum / count;
    counters_.last_penalty = counters_.penalty_sum / count;
    counters_.last_mean_steps = counters_.steps_sum / count;
    counters_.loss_sum = 0;
    counters_.penalty_sum = 0;
    counters_.steps_sum = 0;
    counters_.loss_count = 0;
    if (last) {
        return;
    }
    TrainLogRow row = row_of_last_steps(rate);
    if (!measured) {
        append(row);
        return;
    }
    // Without a stop token: a stop here would lose the row. The measurement is short.
    const HeldOut there = measure(training_form(), recipe_.evaluate_windows, half_, {});
    row.held_out_nll = there.nll;
    append(row, &there);
}

TrainLogRow Trainer::row_of_last_steps(double rate) const {
    TrainLogRow row{counters_.step,      tokens(),         counters_.last_loss, rate,
                    counters_.last_norm, counters_.seconds};
    if (has_penalty()) {
        row.penalty = counters_.last_penalty;
    }
    if (model_->method().max_steps() > 0) {
        row.mean_steps = counters_.last_mean_steps;
    }
    return row;
}

void Trainer::append(const TrainLogRow& row, const HeldOut* measured) {
    trace_->append(row, measured != nullptr ? &measured->census : nullptr);
    if (options_.logged) {
        options_.logged(row);
    }
}

void Trainer::diverged(const std::string& what, double loss, double norm) {
    const std::string weights = optimizer_->first_bad_parameter();
    append({counters_.step + 1, tokens(), loss, recipe_.learning_rate_at(counters_.step), norm,
            seconds_before_ + seconds_since(began_)});
    const std::string fault =
        "training stopped at step " + std::to_string(counters_.step + 1) + " of " +
        std::to_string(recipe_.steps) + ": " + what +
        (weights.empty() ? "" : ", and the weights " + weights + " hold infinities or NaN") +
        "; the state of step " + std::to_string(saved_step_) +
        " is kept. Lower the learning rate, lengthen the warm-up or clip the gradient.";
    trace_->end(fault);
    throw CheckFailed(folder_.path().string() + ": " + fault);
}

void Trainer::open_trace(bool fresh) {
    TrainingInfo info;
    info.name = recipe_.name;
    info.description = recipe_.description;
    info.architecture = to_string(config_.architecture);
    info.method = to_string(config_.ponder.method);
    info.depth_mixing = to_string(config_.depth.kind);
    info.recipe = essence(recipe_).dump();
    info.config = config_json_.dump();
    info.device = device_.str();
    info.precision = to_string(precision_);
    info.versions = nlohmann::json{{"ponderscope", PONDERSCOPE_VERSION}, {"torch", TORCH_VERSION}}.dump();
    info.parameters = result_.parameters;
    info.max_steps = model_->method().max_steps();
    info.planned_steps = recipe_.steps;
    info.planned_tokens = recipe_.steps * recipe_.tokens_per_step();
    trace_ = std::make_unique<TrainingTrace>(folder_.trace(), std::move(info),
                                             training_quantities(model_->method().max_steps(),
                                                                 model_->method().halts(), has_penalty(),
                                                                 !corpus_.held_out.empty()),
                                             fresh ? std::nullopt : std::optional(last_logged()),
                                             [this](const std::string& sentence) { notice(sentence); });
}

/// Updates the folder. During the training it writes the state before the model; a resume reads only the
/// state. At the end it removes the state after it has written the model.
void Trainer::save(bool complete) {
    require_finite_weights();
    if (!complete) {
        save_train_state(folder_.state(), model_->parameters().items(), *optimizer_, counters_);
        saved_step_ = counters_.step;
    }
    save_model(complete);
    if (complete) {
        std::error_code error;
        std::filesystem::remove(folder_.state(), error);
        if (error) {
            throw_file_error(folder_.state(), error.value(), "written");
        }
    }
}

void Trainer::require_finite_weights() {
    if (!optimizer_->first_bad_parameter().empty()) {
        diverged("the update of step " + std::to_string(counters_.step) + " went to infinity", not_measured,
                 counters_.last_norm);
    }
}

nlohmann::json Trainer::provenance(bool complete) const {
    nlohmann::json texts = nlohmann::json::array();
    for (const auto& text : corpus_.texts) {
        texts.push_back({{"name", text.name},
                         {"sha256", text.sha256},
                         {"bytes", text.bytes},
                         {"train_tokens", text.train_tokens},
                         {"held_out_tokens", text.held_out_tokens}});
    }
    const double bits = corpus_.held_out_bytes_per_token > 0
                            ? result_.held_out_nll / std::numbers::ln2 / corpus_.held_out_bytes_per_token
                            : std::numeric_limits<double>::quiet_NaN();
    return {{"name", recipe_.name},
            {"description", recipe_.description},
            {"complete", complete},
            {"parameters", result_.parameters},
            {"steps", result_.steps},
            {"tokens", result_.tokens},
            {"seconds", result_.seconds},
            {"loss", number_or_null(result_.loss)},
            {"held_out_nll", number_or_null(result_.held_out_nll)},
            {"held_out_tokens", result_.held_out_tokens},
            {"held_out_perplexity", number_or_null(std::exp(result_.held_out_nll))},
            {"held_out_bits_per_byte", number_or_null(bits)},
            {"recipe", essence(recipe_)},
            {"corpus",
             {{"sha256", corpus_.digest}, {"tokens", corpus_.train.size()}, {"texts", std::move(texts)}}},
            {"made_with",
             {{"device", device_.str()},
              {"precision", to_string(precision_)},
              {"threads", at::get_num_threads()},
              {"torch", TORCH_VERSION}}}};
}

/// Writes the weights and training.json.
void Trainer::save_model(bool complete) {
    save_tensors(folder_.weights(), model_->parameters().items(), recipe_.output_dtype);
    result_.steps = counters_.step;
    result_.tokens = tokens();
    result_.loss = counters_.last_loss;
    result_.seconds = counters_.seconds;
    write_file_atomically(folder_.provenance(), provenance(complete).dump(2) + "\n");
}

/// Rounds the weights to the output dtype, so that the final measurement uses the stored weights.
void Trainer::round_weights() {
    const at::NoGradGuard no_grad;
    const auto type = scalar_type_of(recipe_.output_dtype);
    for (const auto& [name, tensor] : model_->parameters().items()) {
        at::Tensor home = tensor.detach();
        home.copy_(home.to(type));
    }
}

/// Measures the held-out text with the stored weights, adds the last row of the log and saves.
void Trainer::finish() {
    round_weights();
    TrainLogRow row = row_of_last_steps(recipe_.learning_rate_at(counters_.step - 1));
    if (corpus_.held_out.empty()) {
        append(row);
    } else {
        const HeldOut there = measure({config_.ponder.jacobi_iterations, false, {}}, recipe_.final_windows,
                                      false, options_.stop);
        result_.held_out_nll = there.nll;
        result_.held_out_tokens = there.tokens;
        row.held_out_nll = there.nll;
        append(row, &there);
    }
    require_finite_weights();
    trace_->end();
    save(true);
}

} // namespace ponderscope
