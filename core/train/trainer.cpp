// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/trainer_impl.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/words.h"
#include "core/kernels/autocast.h"
#include "core/ponder/method.h"

#include <ATen/ATen.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace ponderscope {

namespace {

/// "/training/seed" -> "training.seed"
std::string dotted(std::string path) {
    std::replace(path.begin(), path.end(), '/', '.');
    return path.substr(1);
}

} // namespace

/// InputError: a new training would replace the checkpoint that it starts from.
void Trainer::require_inputs_elsewhere() const {
    std::error_code not_there;
    if (std::filesystem::equivalent(recipe_.start, folder_.path(), not_there)) {
        throw InputError(ErrorId::file_exists, folder_.path(), "a folder for the trained model alone",
                         "the folder of the checkpoint to start from", "choose another folder to write to");
    }
}

void Trainer::begin() {
    corpus_ = load_corpus(recipe_, tokenizer_, options_.progress, options_.stop);
    sampler_ =
        std::make_unique<ContextSampler>(corpus_.train, recipe_.context, recipe_.seed, recipe_.shifted);
    if (!corpus_.held_out.empty() && static_cast<std::int64_t>(corpus_.held_out.size()) <= recipe_.context) {
        throw InputError(ErrorId::training_recipe, recipe_.source,
                         "held-out text longer than a context of " + std::to_string(recipe_.context) +
                             " tokens",
                         std::to_string(corpus_.held_out.size()) + " tokens", "hold out more text, or none");
    }
    for (const Notice& one : config_.notices) {
        notice(one.text);
    }

    auto parameters = starting_parameters(
        recipe_, config_, device_, [this](const std::string& sentence) { notice(sentence); }, options_.stop);
    parameters.requires_grad(true);
    optimizer_ = std::make_unique<AdamW>(parameters.items(),
                                         AdamWConfig{recipe_.beta1, recipe_.beta2, recipe_.weight_decay});
    for (const auto& [name, tensor] : parameters.items()) {
        result_.parameters += tensor.numel();
    }
    model_ = std::make_unique<Model>(config_, std::move(parameters));
    counters_.recipe = essence(recipe_);
    counters_.corpus = corpus_.digest;
}

void Trainer::resume() {
    const TrainCounters stored = read_train_counters(folder_.state());
    const auto differences = nlohmann::json::diff(stored.recipe, counters_.recipe);
    if (!differences.empty()) {
        throw InputError(ErrorId::training_state, folder_.state(), "the recipe that this training began with",
                         "another value of \"" + dotted(differences.front().at("path")) + "\" in " +
                             recipe_.source.string(),
                         "resume with the old recipe, or train into another folder");
    }
    if (stored.corpus != corpus_.digest) {
        throw InputError(ErrorId::training_state, folder_.state(),
                         "the texts and the tokenizer that this training began with",
                         "different texts or another tokenizer in " + recipe_.texts.string(),
                         "restore the old files, or train into another folder");
    }
    load_train_state(folder_.state(), model_->parameters().items(), *optimizer_);
    counters_ = stored;
    saved_step_ = stored.step;
    seconds_before_ = stored.seconds;
}

/// Computes the gradients of one optimiser step. Returns its numbers for the log.
Trainer::StepNumbers Trainer::forward_backward() {
    optimizer_->zero_gradients();
    std::vector<std::span<const std::int32_t>> windows;
    for (std::int64_t i = 0; i < recipe_.batch; ++i) {
        windows.push_back(sampler_->window(static_cast<std::uint64_t>(counters_.windows++)));
    }
    const PackedBatch batch = PackedBatch::from_windows(windows, device_);
    ForwardForm form = training_form();
    form.penalty = {recipe_.gate_share_at(counters_.step), recipe_.penalty_beta};
    at::Tensor loss;
    at::Tensor numbers;
    {
        const Autocast autocast(device_.type(), half_); // products in bf16; weights stay fp32
        const ForwardResult result = model_->forward(batch, form);
        loss = result.cross_entropy;
        numbers = at::stack({loss.detach().to(at::kFloat), at::zeros_like(loss).to(at::kFloat),
                             result.mean_steps.to(loss.device())});
        if (result.penalty.defined()) {
            numbers.select(0, 1).copy_(result.penalty.detach());
            loss = loss + result.penalty * recipe_.penalty_weight;
        }
    }
    loss.backward();
    const at::Tensor here = numbers.to(at::kCPU, at::kDouble);
    const auto* values = here.const_data_ptr<double>();
    return {values[0], values[1], values[2]};
}

void Trainer::step() {
    const double rate = recipe_.learning_rate_at(counters_.step);
    const StepNumbers numbers = forward_backward();
    const double loss = numbers.loss;
    const double norm = optimizer_->gradient_norm();
    if (!std::isfinite(loss)) {
        diverged("the loss is " + shortest(loss), loss, norm);
    }
    if (!std::isfinite(norm)) {
        diverged("the gradient of " + optimizer_->first_bad_gradient() + " is not finite", loss, norm);
    }
    if (recipe_.clip_norm > 0 && norm > recipe_.clip_norm) {
        optimizer_->scale_gradients(recipe_.clip_norm / norm);
    }
    optimizer_->step(rate);
    ++counters_.step;
    counters_.loss_sum += loss;
    counters_.penalty_sum += numbers.penalty;
    counters_.steps_sum += numbers.mean_steps;
    ++counters_.loss_count;
    counters_.last_norm = norm;
    counters_.seconds = seconds_before_ + seconds_since(began_);
    log(rate);
}

/// Runs the remaining steps of the recipe.
void Trainer::train_on() {
    const std::int64_t total = recipe_.steps * recipe_.tokens_per_step();
    while (counters_.step < recipe_.steps) {
        throw_if_stopped(options_.stop);
        step();
        report_progress(options_.progress, {"training", tokens(), total, "tokens"});
        if (recipe_.checkpoint_every > 0 && counters_.step % recipe_.checkpoint_every == 0) {
            save(false);
        }
    }
}

void Trainer::memory_is_full() {
    const std::string fault =
        std::string(memory_exhausted(device_).what()) + " A step of " + std::to_string(recipe_.batch) +
        " contexts of " + std::to_string(recipe_.context) +
        " tokens does not fit beside the weights; the state of step " + std::to_string(saved_step_) +
        " is kept. " + (recipe_.batch > 1 ? "Halve training.batch." : "Shorten training.context.");
    trace_->end(fault);
    throw EnvironmentError(ErrorId::environment_memory, folder_.path().string() + ": " + fault);
}

void Trainer::open_folder(bool fresh) {
    std::vector<std::pair<std::filesystem::path, std::string>> copies; // read before prepare() removes them
    const bool from_folder = std::filesystem::is_directory(recipe_.tokenizer);
    for (const std::filesystem::path& file : tokenizer_.files()) {
        copies.emplace_back(folder_.path() / (from_folder ? file.filename() : "tokenizer.json"),
                            read_file(file));
    }
    folder_.prepare();
    open_trace(fresh); // the first file; see OutputFolder::has_begun()
    write_file_atomically(folder_.config(), config_json_.dump(2) + "\n");
    for (const auto& [file, bytes] : copies) {
        write_file_atomically(file, bytes);
    }
}

TrainResult Trainer::run() {
    if (folder_.start() == OutputFolder::Start::complete) {
        TrainResult before = read_provenance(folder_.provenance());
        before.already_complete = true;
        return before;
    }
    const bool fresh = folder_.start() == OutputFolder::Start::fresh;
    if (fresh) {
        require_inputs_elsewhere();
    }
    begin();
    if (!fresh) {
        resume();
    }
    const GpuProducts products(precision_); // also for the threads of the backward pass
    result_.held_out_nll = not_measured;
    open_folder(fresh);
    began_ = Clock::now();
    if (fresh) {
        save(false);
    }

    const std::int64_t steps_before = counters_.step;
    try {
        train_on();
    } catch (const Cancelled&) {
        save(false);
        throw;
    } catch (const c10::OutOfMemoryError&) {
        memory_is_full();
    }
    const double spent = seconds_since(began_);
    if (saved_step_ != counters_.step) {
        save(false);
    }
    finish();
    result_.tokens_per_second =
        spent > 0 ? static_cast<double>((counters_.step - steps_before) * recipe_.tokens_per_step()) / spent
                  : 0;
    return result_;
}

TrainResult train(const Recipe& given, const TrainOptions& options) {
    Recipe recipe = given;
    if (!options.texts.empty()) {
        recipe.texts = options.texts;
    }
    try {
        if (!recipe.start.empty()) {
            const Checkpoint start = Checkpoint::open(recipe.start);
            require_trainable(start);
            recipe.start_digest = checkpoint_digest(start, options.progress, options.stop);
        }
        return Trainer(recipe, options).run();
    } catch (const c10::OutOfMemoryError&) {
        throw EnvironmentError(ErrorId::environment_memory,
                               options.output.string() + ": " +
                                   memory_exhausted(device_from_string(options.device)).what() +
                                   " The weights and the state of the optimiser do not fit; use a smaller "
                                   "model or another device.");
    }
}

} // namespace ponderscope
