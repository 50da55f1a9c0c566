// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/trainer.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/model/autocast.h"
#include "core/model/device.h"
#include "core/ponder/engine/model.h"
#include "core/ponder/method.h"
#include "core/text/tokenizer.h"
#include "core/train/adamw.h"
#include "core/train/contexts.h"
#include "core/train/corpus.h"
#include "core/train/held_out.h"
#include "core/train/model_setup.h"
#include "core/train/output_folder.h"
#include "core/train/schedule.h"
#include "core/train/train_state.h"
#include "core/train/training_trace.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <torch/version.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

namespace ponderscope {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double not_measured = std::numeric_limits<double>::quiet_NaN();

double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

class Trainer {
public:
    Trainer(const Recipe& recipe, const TrainOptions& options)
        : recipe_(recipe),
          options_(options),
          folder_(options.output, options.existing),
          device_(device_from_string(options.device)),
          tokenizer_(Tokenizer::load(recipe.tokenizer)),
          config_json_(complete_config(recipe, tokenizer_)),
          config_(model_config_of(recipe, config_json_)),
          half_(recipe.precision == TrainPrecision::bfloat16 ||
                (recipe.precision == TrainPrecision::automatic && device_.is_cuda())) {}

    TrainResult run();

private:
    [[nodiscard]] bool finished_before(TrainResult& result) const;
    void begin();
    void resume();
    struct StepNumbers {
        double loss = 0;    ///< cross-entropy, nats a token
        double penalty = 0; ///< before lambda
        double mean_steps = 0;
    };
    [[nodiscard]] std::optional<GatePool> gate_pool(const std::vector<PackedBatch>& pieces, ForwardForm form);
    [[nodiscard]] StepNumbers forward_backward();
    /// How the model runs while it is trained, and when it is measured on the way.
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
    void snapshot();
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
    [[nodiscard]] at::Tensor rows(std::int64_t count);
    /// Rows of the logs that a resumed training keeps. The last one belongs to what is done after all steps.
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
    bool half_;

    Corpus corpus_;
    std::unique_ptr<ContextSampler> sampler_;
    std::unique_ptr<AdamW> optimizer_;
    std::unique_ptr<Model> model_;
    std::unique_ptr<TrainLog> log_;
    std::unique_ptr<TrainingTrace> trace_;
    SequenceInput passage_; ///< recorded into the trace on the way; without ids: nothing is
    TrainCounters counters_;
    TrainResult result_;
    std::int64_t saved_step_ = 0; ///< of the state on disk
    Clock::time_point began_;
    double seconds_before_ = 0; ///< of earlier calls
};

bool Trainer::finished_before(TrainResult& result) const {
    if (folder_.start() != OutputFolder::Start::complete) {
        return false;
    }
    result = read_provenance(folder_.provenance());
    result.already_complete = true;
    return true;
}

/// Everything that can be wrong with the input is found here, before the folder is touched.
void Trainer::begin() {
    CorpusOptions reading;
    reading.cache = options_.token_cache;
    reading.progress = options_.progress;
    reading.stop = options_.stop;
    reading.notice = options_.notice;
    corpus_ = load_corpus(recipe_, tokenizer_, reading);
    sampler_ =
        std::make_unique<ContextSampler>(corpus_.train, recipe_.context, recipe_.seed, recipe_.shifted);
    if (!corpus_.held_out.empty() && static_cast<std::int64_t>(corpus_.held_out.size()) <= recipe_.context) {
        throw InputError(recipe_.source,
                         "held-out text longer than a context of " + std::to_string(recipe_.context) +
                             " tokens",
                         std::to_string(corpus_.held_out.size()) + " tokens", "hold out more, or nothing");
    }
    for (const auto& sentence : config_.notices) {
        notice(sentence);
    }

    auto parameters = starting_parameters(
        recipe_, config_, device_, [this](const std::string& sentence) { notice(sentence); }, options_.stop);
    parameters.requires_grad(true);
    // Before the model looks at the tensors: the optimiser moves them into one buffer.
    optimizer_ = std::make_unique<AdamW>(
        parameters.items(), AdamWConfig{recipe_.beta1, recipe_.beta2, recipe_.eps, recipe_.weight_decay});
    for (const auto& [name, tensor] : parameters.items()) {
        result_.parameters += tensor.numel();
    }
    model_ = std::make_unique<Model>(config_, std::move(parameters));
    counters_.recipe = essence(recipe_);
    counters_.corpus_digest = corpus_.digest;
}

void Trainer::resume() {
    const TrainCounters stored = read_train_counters(folder_.state());
    const auto differences = nlohmann::json::diff(stored.recipe, counters_.recipe);
    if (!differences.empty()) {
        std::string key = differences.front().at("path").get<std::string>().substr(1);
        for (auto& letter : key) {
            letter = letter == '/' ? '.' : letter;
        }
        throw InputError(folder_.state(), "the recipe that this training began with",
                         "another value of \"" + key + "\" in " + recipe_.source.string(),
                         "resume with the old recipe, or train into another folder");
    }
    if (stored.corpus_digest != corpus_.digest) {
        throw InputError(folder_.state(), "the texts and the tokenizer that this training began with",
                         "others in " + recipe_.texts.string(),
                         "bring the old ones back, or train into another folder");
    }
    load_train_state(folder_.state(), model_->parameters().items(), *optimizer_);
    counters_ = stored;
    saved_step_ = stored.step;
    seconds_before_ = stored.seconds;
}

at::Tensor Trainer::rows(std::int64_t count) {
    at::Tensor ids = at::empty({count, recipe_.context + 1}, at::kLong);
    auto* out = ids.mutable_data_ptr<std::int64_t>();
    for (std::int64_t i = 0; i < count; ++i) {
        for (const auto id : sampler_->window(static_cast<std::uint64_t>(counters_.windows))) {
            *out++ = id;
        }
        ++counters_.windows;
    }
    return ids;
}

/// The gates of all pieces of a step together, where the penalty looks at them so: each piece runs once more
/// for that, before any of them has its gradient.
std::optional<GatePool> Trainer::gate_pool(const std::vector<PackedBatch>& pieces, ForwardForm form) {
    const double gate_share = form.penalty.gate_share;
    if (!model_->method().pools_gates() || pieces.size() == 1 || gate_share == 0) {
        return std::nullopt;
    }
    std::vector<at::Tensor> asked;
    std::int64_t pool = 0;
    form.penalty.pool.emplace(); // of this run nobody wants the penalty
    for (const PackedBatch& piece : pieces) {
        // With a graph, as when the gradient is taken: other kernels round otherwise.
        const ForwardResult result = model_->forward(piece, form);
        for (const StepStates& states : result.steps) {
            if (states.value.defined()) {
                asked.push_back(states.value.detach());
            }
        }
        pool += piece.ids.size(0) * model_->method().max_steps();
    }
    return GatePool::of(asked, pool, gate_share, static_cast<std::int64_t>(pieces.size()));
}

/// Gradients of one optimiser step; the means over its forwards.
Trainer::StepNumbers Trainer::forward_backward() {
    optimizer_->zero_gradients();
    at::Tensor total;
    const double share = 1.0 / static_cast<double>(recipe_.accumulation);
    std::vector<PackedBatch> pieces;
    for (std::int64_t i = 0; i < recipe_.accumulation; ++i) {
        pieces.push_back(PackedBatch::from_rows(rows(recipe_.batch), device_));
    }
    ForwardForm form = training_form();
    form.recompute = recipe_.recompute;
    form.penalty = {recipe_.gate_share_at(counters_.step), recipe_.penalty_beta};
    {
        const Autocast autocast(device_.type(), half_);
        form.penalty.pool = gate_pool(pieces, form);
    }
    for (const PackedBatch& batch : pieces) {
        at::Tensor loss;
        {
            const Autocast autocast(device_.type(), half_); // products in bf16; weights stay fp32
            const ForwardResult result = model_->forward(batch, form);
            loss = result.cross_entropy * share;
            at::Tensor numbers = at::stack({loss.detach().to(at::kFloat), at::zeros_like(loss).to(at::kFloat),
                                            result.mean_steps.to(loss.device()) * share});
            if (result.penalty.defined()) {
                numbers.select(0, 1).copy_(result.penalty.detach() * share);
                loss = loss + result.penalty * (recipe_.penalty_weight * share);
            }
            total = total.defined() ? total + numbers : numbers;
        }
        loss.backward();
    }
    const at::Tensor here = total.to(at::kCPU, at::kDouble);
    const auto* numbers = here.const_data_ptr<double>();
    return {numbers[0], numbers[1], numbers[2]};
}

void Trainer::step() {
    const double rate = learning_rate(recipe_.schedule(), counters_.step);
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

/// The line of the last step is left to run(): it carries the final measurement.
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
    // Short, and not to be cut off: the line would be missing after a resume.
    const HeldOut there = measure(training_form(), recipe_.evaluate_windows, half_, {});
    row.held_out_nll = there.nll;
    append(row, &there);
}

TrainLogRow Trainer::row_of_last_steps(double rate) const {
    TrainLogRow row{counters_.step,
                    tokens(),
                    counters_.last_loss,
                    rate,
                    counters_.last_norm,
                    std::nullopt,
                    counters_.seconds,
                    {},
                    {}};
    if (has_penalty(config_)) {
        row.penalty = counters_.last_penalty;
    }
    if (model_->method().max_steps() > 0) {
        row.mean_steps = counters_.last_mean_steps;
    }
    return row;
}

void Trainer::append(const TrainLogRow& row, const HeldOut* measured) {
    log_->append(row);
    trace_->append(row, measured != nullptr ? &measured->census : nullptr);
    if (options_.logged) {
        options_.logged(row);
    }
}

void Trainer::diverged(const std::string& what, double loss, double norm) {
    const std::string weights = optimizer_->first_bad_parameter();
    append({counters_.step + 1,
            tokens(),
            loss,
            learning_rate(recipe_.schedule(), counters_.step),
            norm,
            std::nullopt,
            seconds_before_ + seconds_since(began_),
            {},
            {}});
    const std::string fault =
        "training stopped at step " + std::to_string(counters_.step + 1) + " of " +
        std::to_string(recipe_.steps) + ": " + what +
        (weights.empty() ? "" : ", and the weights " + weights + " hold infinities or NaN") +
        "; the state of step " + std::to_string(saved_step_) +
        " is kept. Lower the learning rate, lengthen the warm-up or clip the gradient.";
    trace_->end(fault);
    throw CheckFailed(folder_.path().string() + ": " + fault);
}

/// Curves begin where log.csv begins. What is recorded on the way is the beginning of the held-out text.
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
    info.precision = half_ ? "bfloat16" : "float32";
    info.versions = nlohmann::json{{"ponderscope", PONDERSCOPE_VERSION}, {"torch", TORCH_VERSION}}.dump();
    info.parameters = result_.parameters;
    info.max_steps = model_->method().max_steps();
    info.planned_steps = recipe_.steps;
    info.planned_tokens = recipe_.steps * recipe_.tokens_per_step();
    trace_ = std::make_unique<TrainingTrace>(
        folder_.trace(), std::move(info),
        training_quantities(model_->method().max_steps(), model_->method().halts(), has_penalty(config_),
                            !corpus_.held_out.empty()),
        fresh ? std::nullopt : std::optional(last_logged()),
        [this](const std::string& sentence) { notice(sentence); });
    if (recipe_.snapshots > 0 && !corpus_.held_out.empty()) {
        const auto tokens =
            std::min(corpus_.held_out.size(), static_cast<std::size_t>(recipe_.snapshot_tokens));
        passage_.title = "held-out text";
        passage_.ids.assign(corpus_.held_out.begin(),
                            corpus_.held_out.begin() + static_cast<std::ptrdiff_t>(tokens));
        attach_decoded_text(passage_, tokenizer_);
    }
}

/// The trace records what anybody would record from the folder at this moment, so the weights go there first.
void Trainer::snapshot() {
    if (passage_.ids.empty()) {
        return;
    }
    require_finite_weights();
    save_model(false);
    trace_->record(folder_.path(), passage_, tokenizer_, recipe_.context, counters_.step, device_.str());
}

/// Brings the folder up to date. While the training is not finished, the model file comes before the state,
/// and the state is what a resumed training believes; at the end the state goes last.
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

/// Weights and training.json.
void Trainer::save_model(bool complete) {
    save_tensors(folder_.weights(), model_->parameters().items(), recipe_.output_dtype);
    result_.steps = counters_.step;
    result_.tokens = tokens();
    result_.loss = counters_.last_loss;
    result_.seconds = counters_.seconds;
    const Provenance about{device_.str(), half_ ? "bfloat16" : "float32", at::get_num_threads(),
                           TORCH_VERSION, complete};
    write_file_atomically(folder_.provenance(),
                          provenance_json(recipe_, corpus_, result_, about).dump(2) + "\n");
}

/// What is measured at the end is what a reader of the file will run.
void Trainer::round_weights() {
    const at::NoGradGuard no_grad;
    const auto type = scalar_type_of(recipe_.output_dtype);
    for (const auto& [name, tensor] : model_->parameters().items()) {
        at::Tensor home = tensor.detach();
        home.copy_(home.to(type));
    }
}

/// Step after step to the end of the recipe.
void Trainer::train_on() {
    ThrottledProgress report(options_.progress);
    const std::int64_t total = recipe_.steps * recipe_.tokens_per_step();
    while (counters_.step < recipe_.steps) {
        if (options_.stop.stop_requested()) {
            throw Cancelled();
        }
        step();
        report({"training", tokens(), total, "tokens"});
        if (counters_.step < recipe_.steps && is_snapshot(counters_.step, recipe_.steps, recipe_.snapshots)) {
            snapshot();
        }
        if (recipe_.checkpoint_every > 0 && counters_.step % recipe_.checkpoint_every == 0) {
            save(false);
        }
    }
}

void Trainer::memory_is_full() {
    const std::string fault = memory_exhausted(device_).what() +
                              (" A step of " + std::to_string(recipe_.batch) + " contexts of " +
                               std::to_string(recipe_.context) + " tokens does not fit beside the weights") +
                              "; the state of step " + std::to_string(saved_step_) +
                              " is kept. Halve train.batch and double train.accumulation, which trains the "
                              "same, or set train.activation_checkpointing.";
    trace_->end(fault);
    throw EnvironmentError(folder_.path().string() + ": " + fault);
}

TrainResult Trainer::run() {
    if (TrainResult before; finished_before(before)) {
        return before;
    }
    result_.held_out_nll = not_measured;
    begin();
    if (folder_.start() == OutputFolder::Start::resumed) {
        resume();
    }
    folder_.prepare();
    write_file_atomically(folder_.config(), config_json_.dump(2) + "\n");
    write_file_atomically(folder_.tokenizer(), read_file(recipe_.tokenizer));
    const bool fresh = folder_.start() == OutputFolder::Start::fresh;
    log_ = std::make_unique<TrainLog>(folder_.log(), fresh ? std::nullopt : std::optional(last_logged()));
    open_trace(fresh);
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
    round_weights();
    TrainLogRow row = row_of_last_steps(learning_rate(recipe_.schedule(), counters_.step - 1));
    if (corpus_.held_out.empty()) {
        append(row);
    } else {
        const HeldOut there =
            measure({usual_refreshes(config_), false, {}}, recipe_.final_windows, false, options_.stop);
        result_.held_out_nll = there.nll;
        result_.held_out_tokens = there.tokens;
        row.held_out_nll = there.nll;
        append(row, &there);
        snapshot();
    }
    trace_->end();
    save(true);
    result_.tokens_per_second =
        spent > 0 ? static_cast<double>((counters_.step - steps_before) * recipe_.tokens_per_step()) / spent
                  : 0;
    return result_;
}

} // namespace

TrainResult train(const Recipe& given, const TrainOptions& options) {
    Recipe recipe = given;
    if (!options.texts.empty()) {
        recipe.texts = options.texts;
    }
    if (!recipe.start.empty()) {
        const Checkpoint start = Checkpoint::open(recipe.start);
        require_trainable(start);
        recipe.start_digest = checkpoint_digest(start, options.progress, options.stop);
    }
    try {
        return Trainer(recipe, options).run();
    } catch (const c10::OutOfMemoryError&) {
        throw EnvironmentError(options.output.string() + ": " +
                               memory_exhausted(device_from_string(options.device)).what() +
                               " The weights and what the optimiser keeps of them do not fit; use a smaller "
                               "model or another device.");
    }
}

} // namespace ponderscope
