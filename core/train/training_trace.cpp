// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/training_trace.h"

#include "core/base/error.h"
#include "core/trace/reader.h"

#include <algorithm>
#include <utility>

namespace ponderscope {

namespace {

/// Id of the newest training with this recipe in a trace; 0: none.
std::int64_t training_of(const std::filesystem::path& path, const std::string& recipe) {
    std::int64_t found = 0;
    for (const TrainingInfo& training : TraceReader::open(path).trainings()) {
        if (training.recipe == recipe) {
            found = training.id;
        }
    }
    return found;
}

} // namespace

TrainingTrace::TrainingTrace(const std::filesystem::path& path, TrainingInfo info,
                             std::vector<TrainingQuantity> quantities,
                             std::optional<std::int64_t> resume_after,
                             const std::function<void(const std::string&)>& notice) {
    std::error_code ignored;
    const bool exists = std::filesystem::exists(path, ignored);
    try {
        if (resume_after && exists) {
            training_ = training_of(path, info.recipe);
            if (training_ > 0) {
                TraceWriter::forget_after(path, training_, *resume_after);
            }
        }
        writer_.emplace(path);
    } catch (const InputError& error) {
        throw InputError(ErrorId::training_state,
                         std::string(error.what()) +
                             " The training log cannot continue in this file. Move the file away; the curves "
                             "then begin at the resumed step.");
    }
    if (training_ == 0) {
        if (resume_after && *resume_after > 0 && notice) {
            notice(path.string() + (exists ? " holds no training by this recipe" : " is missing") +
                   "; its curves begin at step " + std::to_string(*resume_after) + ".");
        }
        training_ = writer_->begin_training(std::move(info), std::move(quantities));
    }
}

void TrainingTrace::append(const TrainLogRow& row, const StepCensus* census) {
    namespace quantity = training_quantity;
    std::vector<TrainingValue> values{{quantity::loss, 0, row.loss},
                                      {quantity::learning_rate, 0, row.learning_rate},
                                      {quantity::gradient_norm, 0, row.gradient_norm}};
    for (const auto& [name, number] : {std::pair{quantity::penalty, row.penalty},
                                       {quantity::mean_steps, row.mean_steps},
                                       {quantity::held_out_nll, row.held_out_nll}}) {
        if (number) {
            values.push_back({name, 0, *number});
        }
    }
    if (census != nullptr) {
        const auto all = [&](const char* name, const std::vector<double>& numbers) {
            for (std::size_t k = 0; k < numbers.size(); ++k) {
                values.push_back({name, static_cast<std::int64_t>(k), numbers[k]});
            }
        };
        all(quantity::held_out_gate, census->gates());
        if (census->halts()) {
            all(quantity::held_out_steps_share, census->shares());
            values.push_back({quantity::held_out_mean_steps, 0, census->mean_steps()});
        }
    }
    writer_->put_points(training_, {row.step, row.tokens, row.seconds}, std::move(values));
}

void TrainingTrace::end(const std::string& fault) {
    writer_->end_training(training_, fault.empty(), fault);
    writer_->finish();
}

std::vector<TrainingQuantity> training_quantities(std::int64_t max_steps, bool halts, bool penalty,
                                                  bool held_out) {
    namespace quantity = training_quantity;
    std::vector<TrainingQuantity> all{
        {quantity::loss, "", "nats", "Loss",
         "Cross-entropy of the training tokens, averaged over the steps since the previous point."},
        {quantity::learning_rate, "", "", "Learning rate", "Learning rate of the step."},
        {quantity::gradient_norm, "", "", "Gradient norm",
         "Euclidean norm over all weights at the step, before clipping."}};
    if (penalty) {
        all.push_back({quantity::penalty, "", "", "Penalty",
                       "Penalty on steps before lambda, averaged over the steps since the previous point."});
    }
    if (max_steps > 0) {
        all.push_back({quantity::mean_steps, "", "steps", "Mean steps",
                       "Last step that ran, averaged over the training tokens since the previous point."});
    }
    if (held_out) {
        all.push_back({quantity::held_out_nll, "", "nats", "Held-out NLL",
                       "NLL of a part of the held-out text; at the end, of as much text as the recipe says "
                       "(default: all), with the stored weights."});
    }
    if (held_out && max_steps > 0) {
        all.push_back({quantity::held_out_gate, "step", "", "Gate",
                       "Gate or router value after step k, mean over the held-out tokens that ran it."});
    }
    if (held_out && halts) {
        all.push_back({quantity::held_out_mean_steps, "", "steps", "Held-out mean steps",
                       "Last step of a token by its gates, mean over the held-out tokens."});
        all.push_back({quantity::held_out_steps_share, "step", "", "Share of tokens",
                       "Share of held-out tokens whose last step by their gates is k."});
    }
    return all;
}

} // namespace ponderscope
