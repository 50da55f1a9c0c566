// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/engine/engine.h"

#include "core/base/error.h"
#include "core/base/scoped_stop.h"
#include "core/model/device.h"
#include "core/ponder/engine/engine_impl.h"
#include "core/ponder/halting/policy_halting.h"
#include "core/ponder/method.h"
#include "core/ponder/recording/recorded_signals.h"
#include "core/ponder/schedule/layer_steps.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace ponderscope {

namespace {

Parameters load_parameters(const ParameterLayout& layout, const Checkpoint& checkpoint, at::Device device,
                           const LoadOptions& options) {
    try {
        return Parameters::load(layout, checkpoint, device, scalar_type_of(options.precision),
                                options.progress, options.stop);
    } catch (const c10::OutOfMemoryError&) {
        throw EnvironmentError(ErrorId::environment_memory,
                               checkpoint.folder.string() + ": the weights do not fit into the memory of " +
                                   describe_device(device) + "; use --dtype bfloat16 or another --device.");
    }
}

/// A gate or router with NaN weights would stop or keep every token without an error.
void require_finite(const Parameters& parameters, const Checkpoint& checkpoint) {
    for (const TensorSpec& spec : method_tensors(checkpoint.config)) {
        if (!at::isfinite(parameters.at(spec.name)).all().item<bool>()) {
            throw InputError(ErrorId::checkpoint_numbers, checkpoint.folder, "finite numbers in " + spec.name,
                             "NaN or infinity",
                             "the training diverged or the file is damaged: use another checkpoint");
        }
    }
}

} // namespace

void EngineParts::place(TokenBatch& batch, std::span<const Window> windows) const {
    const bool starts = backbone().config().has_start_state();
    if (plan.prefix.value_or(0) > 0 && batch.prefix.empty()) {
        for (const Window& window : windows) {
            batch.prefix.push_back(std::clamp<std::int64_t>(*plan.prefix - window.first, 0,
                                                            static_cast<std::int64_t>(window.ids.size())));
        }
    }
    if (plan.rule || starts) {
        batch.places = token_places(windows, device);
    }
    if (starts) {
        batch.start = start.states(windows, backbone().config())
                          .to(at::TensorOptions(backbone().head().embedding.scalar_type()).device(device));
    }
}

StepsOptions EngineParts::steps_options() const {
    StepsOptions options;
    options.plan = plan;
    options.stop = &ScopedStop::current(); // this thread runs the steps
    return options;
}

StepsOptions EngineParts::generation_options(bool cached) const {
    StepsOptions options = steps_options();
    if (cached && model.config().released.last_loop_kv && !plan.kv && !halts()) {
        options.plan.kv = KvPolicy::shared;
        options.chunks = true; // a prompt is one chunk
    }
    return options;
}

std::int64_t EngineParts::prefix_of_prompt(std::int64_t tokens) const {
    const bool whole = model.config().released.prefix_lm && !plan.kv && !plan.rule;
    return std::min(plan.prefix.value_or(whole ? tokens : 0), tokens);
}

void EngineParts::refuse_attention_by_token(RecordLevel level) const {
    StepsOptions options = steps_options();
    options.read_out_every_step = level == RecordLevel::steps;
    if (!plan.attention.none() && schedule_of(backbone(), method(), options) == Schedule::token_by_token) {
        throw InputError(ErrorId::usage_unsuited,
                         "Sequence attention cannot be recorded if tokens are computed one after the "
                         "other; record attention in a separate run, with --kv full.");
    }
}

void EngineParts::check_ids(std::span<const std::int32_t> ids) const {
    if (ids.empty()) {
        throw InputError(ErrorId::text_empty, "A sequence has no tokens; leave it out.");
    }
    if (static_cast<std::int64_t>(ids.size()) > backbone().longest_sequence()) {
        throw InputError(ErrorId::text_long, "This model has positions for " +
                                                 std::to_string(backbone().longest_sequence()) +
                                                 " tokens, and a sequence has " + std::to_string(ids.size()) +
                                                 "; use a shorter text or a smaller --context.");
    }
    const std::int64_t vocabulary = model.config().vocab_size;
    for (const std::int32_t id : ids) {
        if (id < 0 || id >= vocabulary) {
            throw InputError(ErrorId::text_ids, "Token id " + std::to_string(id) +
                                                    " is outside of the model's vocabulary of " +
                                                    std::to_string(vocabulary) +
                                                    " tokens; use the tokenizer of the checkpoint.");
        }
    }
}

Engine Engine::load(const Checkpoint& checkpoint, const LoadOptions& options) {
    const ParameterLayout layout = parameter_layout(checkpoint.config);
    const at::Device device = device_for(options.device, layout.bytes(scalar_type_of(options.precision)));
    const c10::InferenceMode no_gradients;
    Parameters parameters = load_parameters(layout, checkpoint, device, options);
    require_finite(parameters, checkpoint);
    Notices notices = checkpoint.config.notices;
    notices.insert(notices.end(), parameters.notices().begin(), parameters.notices().end());
    if (options.device == "auto") {
        notices.push_back({NoticeId::device_chosen, "Computed on " + describe_device(device) + "."});
    }
    if (const RopeConfig& rope = checkpoint.config.rope; rope.depends_on_length()) {
        notices.push_back(
            {NoticeId::config_length,
             "The rotation angles of this model depend on the length of the whole sequence: beyond " +
                 std::to_string(rope.longest_shared(checkpoint.config.max_positions)) +
                 " tokens a continuation is computed anew for each token, without a cache."});
    }
    if (const std::string hint = device_hint(device, options.precision); !hint.empty()) {
        notices.push_back({NoticeId::device_precision, hint});
    }
    return Engine(std::make_unique<Impl>(Impl{{Model(checkpoint.config, std::move(parameters)),
                                               device,
                                               options.precision,
                                               std::move(notices),
                                               {nullptr, checkpoint.config.ponder.jacobi_iterations, {}},
                                               0,
                                               nullptr,
                                               {},
                                               checkpoint.folder}}));
}

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;
Engine::~Engine() = default;

const ModelConfig& Engine::config() const {
    return impl_->model.config();
}

std::string Engine::device_name() const {
    return describe_device(impl_->device);
}

std::string Engine::dtype() const {
    return to_string(impl_->precision);
}

const RunPlan& Engine::plan() const {
    return impl_->plan;
}

namespace {

/// InputError: a choice that the model or another choice excludes. \p method: the method with this plan.
/// \p before: the old plan.
void check_plan(const RunPlan& plan, const ModelConfig& config, const Method& method, const RunPlan& before) {
    const auto refuse = [](bool wrong, const std::string& sentence, ErrorId id) {
        if (wrong) {
            throw InputError(id, sentence);
        }
    };
    const std::string name = to_string(config.ponder.method);
    const bool steps = method.max_steps() > 0 && !plan.layers_are_steps;
    if (plan.rule) {
        refuse(config.ponder.method == MethodKind::vanilla && !plan.layers_are_steps,
               "A vanilla model has no ponder steps that the policy " + plan.rule->name() +
                   " could decide on; record it with --record layers, or leave --policy out.",
               ErrorId::policy_unsuited);
    }
    refuse(plan.kv && (!steps || method.visibility() != VisibilityRule::per_step),
           "--kv: expected a method with the per-step rule, found " + name +
               (steps ? ", which has its own rule; leave --kv out."
                      : ", which has no ponder steps; leave --kv out."),
           ErrorId::usage_unsuited);
    const std::int64_t prefix = plan.prefix.value_or(0);
    refuse(prefix > 0 && !config.released.prefix_lm,
           "--prefix: the model reads every token causally; only HRM-Text with prefix_lm sees its prompt in "
           "both directions. Leave --prefix out.",
           ErrorId::usage_unsuited);
    refuse(prefix < 0,
           "--prefix: expected a number of tokens, 0 or more, found " + std::to_string(prefix) + ".",
           ErrorId::usage_value);
    refuse(prefix > 0 && plan.kv && *plan.kv != KvPolicy::full && *plan.kv != KvPolicy::per_step,
           "--prefix needs --kv full or per_step: the tokens of a prefix see each other at every step.",
           ErrorId::usage_conflict);
    refuse(prefix > 0 && !plan.attention.none(),
           "--prefix: sequence attention can be recorded in causal runs only; leave --attention out.",
           ErrorId::usage_conflict);
    refuse(!plan.start_state.empty() && !config.has_start_state(),
           "--initial-state: the method " + name +
               " starts from the embedding; only huginn and parcae have a start state. Leave --initial-state "
               "out.",
           ErrorId::usage_unsuited);
    const bool one_step = method.visibility() == VisibilityRule::interleaved && !method.knows_inputs();
    refuse(plan.refreshes && plan.refreshes != before.refreshes && !plan.counts_refreshes(method),
           "A model of the method " + name +
               (one_step ? " that runs one step a token has nothing to refresh; leave --jacobi out."
                         : " is computed exactly in one pass; leave --jacobi out, which is for ponderlm2 and "
                           "ponderlm3."),
           ErrorId::usage_unsuited);
    const std::int64_t refreshes = plan.refreshes.value_or(0);
    refuse(refreshes < 0,
           "The number of Jacobi refreshes must be 0 or more, not " + std::to_string(refreshes) + ".",
           ErrorId::usage_value);
    if (plan.lens) {
        require_single_stream(config, "--record steps,layers");
    }
    refuse(plan.experts != RecordedExperts::none && config.experts.layers.empty(),
           "--record experts needs a model with a mixture of experts, and " + to_string(config.architecture) +
               " has no experts. Leave experts out of --record.",
           ErrorId::usage_unsuited);
    // With layers as steps, a step records one state and one read-out: those of its layer.
    const bool layers = plan.layers_are_steps;
    refuse(layers && !plan.attention.none(),
           "Sequence attention cannot be recorded if the layers of a vanilla model are its steps; record the "
           "exits and the attention in two runs.",
           ErrorId::usage_unsuited);
    refuse(layers && plan.states && !plan.states->layers.empty(),
           "--record states:LAYERS: where the layers of a vanilla model are its steps, every step has the "
           "state of one layer; write --record layers,states.",
           ErrorId::usage_conflict);
    refuse(layers && plan.lens,
           "The layers of a vanilla model are read out as its steps already; leave layers out of --record.",
           ErrorId::usage_conflict);
}

} // namespace

void Engine::use(RunPlan plan) {
    std::unique_ptr<const Method> layers =
        plan.layers_are_steps ? std::make_unique<LayerSteps>(config()) : nullptr;
    const Method& method = layers ? *layers : impl_->model.method();
    check_plan(plan, config(), method, impl_->plan);
    if (!impl_->patches.empty()) {
        refuse_patches_of_passes(plan, method);
    }
    if (plan.start_state != impl_->plan.start_state) {
        impl_->start = StartState::parse(plan.start_state, impl_->folder, config());
    }
    if (plan.layers_are_steps && !impl_->plan.layers_are_steps &&
        config().depth.kind == DepthMixing::depth_attention) {
        impl_->notices.push_back(
            {NoticeId::run_layers_as_steps,
             "The layers of this vanilla model are the steps of the run, so the run has no depth weights. To "
             "record them, leave out --policy and --record layers."});
    }
    impl_->layer_steps = std::move(layers);
    impl_->plan = std::move(plan);
}

std::string Engine::kv() const {
    const Method& method = impl_->method();
    return method.visibility() == VisibilityRule::per_step && method.max_steps() > 0 &&
                   !method.layers_are_steps()
               ? to_string(impl_->plan.kv_policy(method))
               : "";
}

std::string Engine::start_state() const {
    return config().has_start_state() ? impl_->start.text(config()) : "";
}

std::string Engine::start_state_digest() const {
    return impl_->start.digest();
}

std::string Engine::policy() const {
    return impl_->plan.rule ? impl_->plan.rule->name() : plan().layers_are_steps ? "full" : "learned";
}

std::string Engine::scoring() const {
    return impl_->plan.refreshes && impl_->plan.counts_refreshes(impl_->method())
               ? "jacobi:" + std::to_string(*impl_->plan.refreshes)
               : "exact";
}

void Engine::check_attention(RecordLevel level) const {
    impl_->refuse_attention_by_token(level);
}

namespace {

/// Bytes of the signals that are recorded on request: only sequence attention, or all others.
std::int64_t requested_bytes(const EngineParts& parts, bool attention) {
    std::int64_t bytes = 0;
    for (const RecordedSignal& one :
         recorded_signals(parts.backbone().config(), parts.method(), parts.plan, RecordLevel::basic)) {
        bytes += one.on_request && (one.info.name == signal::attention) == attention ? one.token_bytes() : 0;
    }
    return bytes;
}

} // namespace

std::int64_t Engine::attention_pair_bytes() const {
    return requested_bytes(*impl_, true);
}

std::int64_t Engine::token_bytes() const {
    return requested_bytes(*impl_, false);
}

Notices Engine::notices() const {
    return impl_->notices;
}

std::int64_t Engine::max_steps() const {
    return impl_->method().max_steps();
}

std::string Engine::flops_model() const {
    return impl_->cost().to_json();
}

std::vector<SignalInfo> Engine::signals(RecordLevel level) const {
    std::vector<SignalInfo> infos;
    for (auto& [info, bytes] : signal_bytes(level)) {
        infos.push_back(std::move(info));
    }
    return infos;
}

std::vector<std::pair<SignalInfo, std::int64_t>> Engine::signal_bytes(RecordLevel level) const {
    std::vector<std::pair<SignalInfo, std::int64_t>> signals;
    for (RecordedSignal& one : recorded_signals(config(), impl_->method(), impl_->plan, level)) {
        signals.emplace_back(std::move(one.info), one.token_bytes());
    }
    return signals;
}

std::vector<WindowResult> Engine::score(std::span<const Window> windows, RecordLevel level) const {
    return collect(submit(windows, level));
}

Engine::PendingPtr Engine::submit(std::span<const Window> windows, RecordLevel level) const try {
    return impl_->submit(windows, level);
} catch (const c10::OutOfMemoryError&) {
    throw memory_exhausted(impl_->device);
}

Engine::PendingPtr EngineParts::submit(std::span<const Window> windows, RecordLevel level,
                                       const std::function<void(StepsOptions&)>& listen, StepsResult* result,
                                       const EarlierTokens& earlier) const {
    if (batches_under_way >= 2) {
        throw std::logic_error("Engine::submit: two batches are under way; collect one first");
    }
    refuse_attention_by_token(level);
    std::vector<std::span<const std::int32_t>> sequences;
    std::vector<ReportedWindow> reported;
    for (const Window& window : windows) {
        check_ids(window.ids);
        if (window.report_begin < 0 || window.report_begin > window.report_end ||
            window.report_end > static_cast<std::int64_t>(window.ids.size())) {
            throw std::logic_error("Engine::submit: reported tokens outside of their window");
        }
        const std::size_t i = sequences.size();
        sequences.push_back(window.ids);
        reported.push_back(
            {static_cast<std::int64_t>(window.ids.size()),
             earlier.past.empty() ? 0 : earlier.past[i],
             earlier.steps.empty() ? std::vector<std::int32_t>() : earlier.steps[i],
             window.report_begin,
             window.report_end,
             {window.ids.begin() + window.report_begin, window.ids.begin() + window.report_end}});
    }
    const c10::InferenceMode no_gradients;
    const GpuProducts products(precision);
    StepCache* const cache = earlier.cache;
    TokenBatch batch =
        TokenBatch::make(backbone(), sequences, device, cache != nullptr || plans_rows(), earlier.past,
                         earlier.rows, cache != nullptr ? cache->segment_rows : 0);
    StepsOptions options = steps_options();
    options.read_out_every_step = level == RecordLevel::steps;
    options.cache = cache;
    place(batch, windows);
    const RunPatches put_in = patches_of(windows);
    options.patches = put_in.empty() ? nullptr : &put_in;
    Recorder recorder(backbone(), method(), plan, level,
                      reported_tokens(windows, device, plan.prefix.value_or(0)));
    options.listener = &recorder;
    if (listen) {
        listen(options);
    }
    const StepsResult run = run_steps(backbone(), method(), batch, options);
    recorder.finish(run);
    if (result != nullptr) {
        *result = run;
    }
    return std::make_shared<Engine::Pending>(ScoreTransfer(recorder, std::move(reported)), *this);
}

std::vector<WindowResult> Engine::collect(PendingPtr pending) const try {
    return pending->collect();
} catch (const c10::OutOfMemoryError&) {
    throw memory_exhausted(impl_->device);
}

std::shared_ptr<const HaltingRule> rule_of(const PolicySpec& spec, Engine& engine) {
    const std::string text = spec.text();
    if (text == "learned") {
        return nullptr; // the method's own rule
    }
    if (engine.config().ponder.method == MethodKind::vanilla) {
        engine.choose(&RunPlan::layers_are_steps, true);
    }
    return text == "full" ? full_halting() : policy_halting(spec, engine.config());
}

} // namespace ponderscope
