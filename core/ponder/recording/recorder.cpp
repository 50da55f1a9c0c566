// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/recording/recorder.h"

#include "core/ponder/halting/halting.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace ponderscope {

namespace {

/// Returns \p all, [M, d], with \p values in the rows \p place; undefined \p place: in all rows.
at::Tensor replaced(const at::Tensor& all, const at::Tensor& place, const at::Tensor& values) {
    return place.defined() ? all.index_copy(0, place, values) : values;
}

/// The values of a read-out, with the names of the per-step signals.
std::array<std::pair<const char*, at::Tensor>, 10> by_signal(const HeadResult& result) {
    return {{{signal::nll, result.nll},
             {signal::entropy, result.entropy},
             {signal::max_probability, result.max_probability},
             {signal::margin, result.margin},
             {signal::rank, result.rank},
             {signal::argmax, result.argmax},
             {signal::candidate_ids, result.candidate_ids},
             {signal::candidate_probabilities, result.candidate_probabilities},
             {signal::kl_previous_current, result.kl_previous_current},
             {signal::kl_current_previous, result.kl_current_previous}}};
}

} // namespace

Recorder::Recorder(const Backbone& backbone, const Method& method, const RunPlan& plan, RecordLevel level,
                   ReportedTokens reported)
    : backbone_(backbone),
      method_(method),
      level_(level),
      reported_(std::move(reported)),
      free_steps_(level != RecordLevel::nll && reads_steps_anyway(method, plan)),
      extra_steps_(level == RecordLevel::steps && !free_steps_ && method.max_steps() > 0) {
    for (RecordedSignal& declared : recorded_signals(backbone.config(), method, plan, level)) {
        std::vector<std::int64_t> shape = declared.shape;
        shape.insert(shape.begin(), reported_.count);
        if (declared.info.name == signal::attention) {
            shape.back() = reported_.longest;
        }
        const bool whole = !is_real(declared.info.dtype);
        const double nothing = whole ? did_not_run : std::numeric_limits<double>::quiet_NaN();
        const auto options = at::TensorOptions(whole           ? at::kLong
                                               : declared.half ? at::kHalf
                                                               : at::kFloat)
                                 .device(backbone.head().head.device());
        signals_.push_back({std::move(declared.info),
                            declared.sparse ? at::full(shape, nothing, options) : at::zeros(shape, options)});
    }
    if (level != RecordLevel::nll) {
        SignalTensors signals;
        for (const Signal& one : signals_) {
            signals[one.info.name] = one.values;
        }
        parts_ = part_recorders(backbone, method, plan, reported_, signals);
    }
}

bool Recorder::wants(std::string_view name) const {
    return std::any_of(parts_.begin(), parts_.end(), [&](const auto& part) { return part->wants(name); });
}

bool Recorder::wants_layer(std::string_view name, std::int64_t layer) const {
    return std::any_of(parts_.begin(), parts_.end(),
                       [&](const auto& part) { return part->wants_layer(name, layer); });
}

void Recorder::on_tensor(std::string_view name, std::int64_t step, std::int64_t layer,
                         const at::Tensor& tensor) {
    for (const auto& part : parts_) {
        if (part->wants(name)) {
            part->on_tensor(name, step, layer, tensor);
        }
    }
}

void Recorder::attends(const Attending& attending) {
    for (const auto& part : parts_) {
        part->attends(attending);
    }
}

at::Tensor* Recorder::find(const char* name) {
    for (Signal& entry : signals_) {
        if (entry.info.name == name) {
            return &entry.values;
        }
    }
    return nullptr;
}

void Recorder::put(const char* name, const at::Tensor& place, std::int64_t step, const at::Tensor& values) {
    at::Tensor* all = find(name);
    if (all == nullptr || !values.defined()) {
        return;
    }
    at::Tensor column = all->select(1, step);
    place.defined() ? column.index_copy_(0, place, values.to(column.scalar_type())) : column.copy_(values);
}

void Recorder::keep(const HeadResult& result, const at::Tensor& place, std::int64_t step) {
    for (const auto& [name, values] : by_signal(result)) {
        put(name, place, step, values);
    }
}

const RecordedRows& Recorder::rows_of(const at::Tensor& tokens) {
    if (rows_ && tokens.is_same(rows_of_)) {
        return *rows_; // computing the rows again may wait for the device
    }
    rows_of_ = tokens;
    if (reported_.count == 0) {
        rows_ = {{}, {}, true};
    } else if (!tokens.defined()) {
        rows_ = {reported_.tokens, {}, false};
    } else if (!reported_.tokens.defined()) {
        rows_ = {{}, tokens, false};
    } else {
        const at::Tensor place = reported_.place.index_select(0, tokens);
        const at::Tensor local = at::nonzero(place >= 0).view(-1);
        rows_ = {local, place.index_select(0, local), local.size(0) == 0};
    }
    return *rows_;
}

HeadRequest Recorder::request(const RecordedRows& rows, std::int64_t step) const {
    HeadRequest request;
    request.targets = select_rows(reported_.targets, rows.place);
    if (level_ == RecordLevel::nll) {
        return request;
    }
    request.distribution = true;
    request.candidates = std::min(recorded_candidates, backbone_.config().vocab_size);
    if (level_ == RecordLevel::steps && step > 0) {
        request.previous = select_rows(earlier_readout_, rows.place);
    }
    return request;
}

void Recorder::step_begins(const Slots& slots) {
    if (!parts_.empty()) {
        const RecordedRows rows = rows_of(slots.tokens);
        for (const auto& part : parts_) {
            part->begin(rows);
        }
    }
}

void Recorder::step_ran(const Slots& slots, const Decision& decision, const at::Tensor& readout) {
    if (level_ == RecordLevel::nll) {
        return;
    }
    for (const auto& part : parts_) {
        part->step_ran(slots);
    }
    const RecordedRows rows = rows_of(slots.tokens);
    if (rows.empty) {
        return;
    }
    if (decision.value.defined() && (!slots.last || method_.values_last_step())) {
        put(signal::gate, rows.place, slots.step, select_rows(decision.value, rows.local));
    }
    for (const auto& [name, values] : decision.notes) {
        if (values.dim() == 1) {
            put(name, rows.place, slots.step, select_rows(values, rows.local));
            continue;
        }
        // Values for all steps, even for steps that do not run (SignalInfo::every_step).
        for (Signal& entry : signals_) {
            if (entry.info.name == name) {
                entry.values = replaced(entry.values, rows.place, select_rows(values, rows.local));
            }
        }
    }
    if (method_.mixes_states()) {
        put_masses(rows, slots, decision);
    }
    if (level_ != RecordLevel::steps || method_.max_steps() == 0) {
        return;
    }
    const at::Tensor now = select_rows(slots.hidden, rows.local);
    const at::Tensor wide = now.to(at::kFloat);
    if (slots.step > 0 || slots.before.defined()) {
        const at::Tensor before =
            (slots.step > 0 ? select_rows(state_, rows.place) : select_rows(slots.before, rows.local))
                .to(at::kFloat);
        const at::Tensor norm = wide.norm(2, 1);
        // The cosine with a start state of zeros is NaN; store 0.
        put(signal::cosine, rows.place, slots.step,
            at::nan_to_num((wide * before).sum(1) / (norm * before.norm(2, 1))));
        put(signal::latent_difference, rows.place, slots.step, (wide - before).norm(2, 1) / norm);
        const at::Tensor update = wide - before;
        // With a state before step 0, step 0 makes the first update.
        if (slots.step > (backbone_.config().has_state_before() ? 0 : 1)) {
            const at::Tensor last = select_rows(update_, rows.place);
            put(signal::update_cosine, rows.place, slots.step,
                at::nan_to_num((update * last).sum(1) / (update.norm(2, 1) * last.norm(2, 1))));
            if (slots.step > 1) {
                put(signal::acceleration, rows.place, slots.step, acceleration(update, last));
            }
        }
        update_ = kept(update_, rows.place, update);
    }
    put(signal::state_norm, rows.place, slots.step, wide.norm(2, 1));
    if (decision.expected_mass.defined()) {
        const at::Tensor part = wide * select_rows(decision.expected_mass, rows.local).unsqueeze(1);
        expected_ = slots.step == 0
                        ? kept(expected_, rows.place, part)
                        : replaced(expected_, rows.place, select_rows(expected_, rows.place) + part);
    }
    if (slots.step == 0) {
        state_ = kept(state_, rows.place, now);
        readout_ = kept(readout_, rows.place, select_rows(readout, rows.local));
    } else {
        state_ = replaced(state_, rows.place, now);
        // Replace only the rows of running tokens: a token that halted earlier keeps its own last two steps.
        const at::Tensor earlier = select_rows(readout_, rows.place);
        earlier_readout_ = earlier_readout_.defined() ? replaced(earlier_readout_, rows.place, earlier)
                                                      : replaced(readout_, rows.place, earlier);
        readout_ = replaced(readout_, rows.place, select_rows(readout, rows.local));
    }
    if (extra_steps_) {
        keep(read_out(select_rows(readout, rows.local).to(backbone_.head().head.scalar_type()),
                      backbone_.head(), request(rows, slots.step)),
             rows.place, slots.step);
    }
}

/// Stores rows at a token's first step. Tokens come in one call or in several calls.
at::Tensor Recorder::kept(const at::Tensor& all, const at::Tensor& place, const at::Tensor& values) const {
    if (!place.defined()) {
        return values;
    }
    const at::Tensor whole =
        all.defined() ? all : at::zeros({reported_.count, values.size(1)}, values.options());
    return whole.index_copy(0, place, values);
}

/// Computes prediction_depth and answer_flips. \p last: int64 [M], K_t; undefined: K.
void Recorder::follow_answers(const at::Tensor& last) {
    const at::Tensor* answers = find(signal::argmax);
    at::Tensor* depth = find(signal::prediction_depth);
    at::Tensor* flips = find(signal::answer_flips);
    if (answers == nullptr || depth == nullptr || flips == nullptr || answers->size(1) < 2) {
        return;
    }
    const std::int64_t width = answers->size(1);
    const at::Tensor end =
        last.defined() && !all_ran ? last : at::full({answers->size(0)}, width - 1, answers->options());
    const at::Tensor ran = at::arange(width, end.options()).unsqueeze(0) <= end.unsqueeze(1);
    const at::Tensor same =
        answers->eq(answers->gather(1, end.unsqueeze(1))).logical_or(ran.logical_not()).to(at::kLong);
    const at::Tensor stays = at::cumprod(same.flip({1}), 1);
    depth->copy_(width - stays.sum(1));
    const at::Tensor changed = answers->narrow(1, 1, width - 1).ne(answers->narrow(1, 0, width - 1));
    flips->copy_(changed.logical_and(ran.narrow(1, 1, width - 1)).sum(1));
}

/// Stores each token's mass as if the token stopped here. If it continues, the next call replaces this mass.
void Recorder::put_masses(const RecordedRows& rows, const Slots& slots, const Decision& decision) {
    if (slots.step > 0) {
        put(signal::halting_mass, rows.place, slots.step - 1, select_rows(mass_on_, rows.place));
    }
    const at::Tensor stopped = decision.mass_stop.defined()
                                   ? select_rows(decision.mass_stop, rows.local)
                                   : at::ones({rows.place.defined() ? rows.place.size(0) : reported_.count},
                                              at::TensorOptions(at::kFloat).device(slots.hidden.device()));
    put(signal::halting_mass, rows.place, slots.step, stopped);
    if (!slots.last) {
        const at::Tensor on = select_rows(decision.mass_on, rows.local);
        mass_on_ = mass_on_.defined() ? replaced(mass_on_, rows.place, on) : on;
    }
}

at::Tensor Recorder::expected_embedding(const Slots& slots, const HeadWeights& head,
                                        const MixtureWish& wish) {
    if (!free_steps_) {
        return RunListener::expected_embedding(slots, head, wish);
    }
    const RecordedRows rows = rows_of(slots.tokens);
    if (rows.empty) {
        return RunListener::expected_embedding(slots, head, wish);
    }
    HeadRequest wanted = request(rows, slots.step);
    wanted.mixture = true;
    wanted.temperature = wish.temperature;
    wanted.top_k = wish.top_k;
    if (!rows.local.defined()) {
        const HeadResult result = read_out(slots.hidden, head, wanted);
        keep(result, rows.place, slots.step);
        return result.mixture;
    }
    // Tokens that are only context need the mixture, but no read-out.
    const HeadResult result = read_out(slots.hidden.index_select(0, rows.local), head, wanted);
    keep(result, rows.place, slots.step);
    at::Tensor others = reported_.others;
    if (slots.tokens.defined()) {
        others = at::nonzero(reported_.place.index_select(0, slots.tokens) < 0).view(-1);
    }
    if (others.size(0) == 0) {
        return result.mixture;
    }
    HeadRequest plain;
    plain.mixture = true;
    plain.temperature = wish.temperature;
    plain.top_k = wish.top_k;
    const HeadResult rest = read_out(slots.hidden.index_select(0, others), head, plain);
    at::Tensor mixture = at::empty({slots.hidden.size(0), result.mixture.size(1)}, result.mixture.options());
    mixture.index_copy_(0, rows.local, result.mixture);
    mixture.index_copy_(0, others, rest.mixture);
    return mixture;
}

void Recorder::finish(const StepsResult& result) {
    steps = result.steps;
    all_ran = result.all_ran;
    if (at::Tensor* all = find(signal::jacobi_difference); all != nullptr && result.differences.defined()) {
        const std::int64_t ran = std::min(all->size(1), result.differences.size(1));
        all->narrow(1, 0, ran).copy_(select_rows(result.differences.narrow(1, 0, ran), reported_.tokens));
    }
    if (reported_.count == 0) {
        output.nll = at::empty({0}, at::TensorOptions(at::kFloat).device(result.readout.device()));
        output.rank = at::empty({0}, output.nll.options().dtype(at::kLong));
        return;
    }
    read_output(result);
    follow_answers(steps.defined() ? select_rows(steps, reported_.tokens) : at::Tensor());
    if (steps.defined() && !all_ran) {
        set_unrun_steps_to_nan();
    }
}

void Recorder::read_output(const StepsResult& result) {
    const at::Tensor last =
        steps.defined() ? select_rows(steps, reported_.tokens) : at::Tensor(); // K_t of the M tokens
    if (at::Tensor* all = find(signal::expected_nll); all != nullptr && expected_.defined()) {
        if (!steps.defined() || all_ran) {
            HeadRequest of_mean;
            of_mean.targets = reported_.targets;
            all->copy_(
                read_out(expected_.to(backbone_.head().head.scalar_type()), backbone_.head(), of_mean).nll);
        } else {
            all->fill_(std::numeric_limits<double>::quiet_NaN());
        }
    }
    if (extra_steps_) {
        // Every step was read out already; the output is the read-out of step K_t.
        const auto of_last = [&](const char* name) {
            const at::Tensor& all = *find(name);
            return last.defined() ? all.gather(1, last.unsqueeze(1)).select(1, 0)
                                  : all.select(1, method_.max_steps());
        };
        output.nll = of_last(signal::nll);
        output.entropy = of_last(signal::entropy);
        output.max_probability = of_last(signal::max_probability);
        output.rank = of_last(signal::rank);
        output.argmax = of_last(signal::argmax);
        return;
    }
    HeadRequest wanted = request({}, method_.max_steps());
    if (wanted.previous.defined() && last.defined()) {
        wanted.previous_rows = last > 0;
    }
    output = read_out(select_rows(result.readout, reported_.tokens), backbone_.head(), wanted);
    if (!last.defined()) {
        keep(output, {}, method_.max_steps());
    } else if (free_steps_) {
        put_last(output, last);
    }
}

/// Writes the output's read-out of each token to its step K_t. \p last: int64 [M].
void Recorder::put_last(const HeadResult& result, const at::Tensor& last) {
    const auto put_one = [&](const char* name, const at::Tensor& values) {
        at::Tensor* all = find(name);
        if (all == nullptr || !values.defined()) {
            return;
        }
        at::Tensor index = last.unsqueeze(1);
        if (all->dim() == 3) {
            index = index.unsqueeze(2).expand({-1, 1, all->size(2)});
        }
        all->scatter_(1, index, values.unsqueeze(1).to(all->scalar_type()));
    };
    for (const auto& [name, values] : by_signal(result)) {
        const bool divergence = name == signal::kl_previous_current || name == signal::kl_current_previous;
        // A token with K_t = 0 has no previous step; store 0.
        put_one(name, divergence && values.defined() ? at::where(last > 0, values, at::zeros_like(values))
                                                     : values);
    }
}

/// Sets entries after each token's last step to NaN or did_not_run.
void Recorder::set_unrun_steps_to_nan() {
    const at::Tensor last = select_rows(steps, reported_.tokens).unsqueeze(1);
    for (Signal& entry : signals_) {
        const SignalInfo& info = entry.info;
        if (info.axes.size() < 2 || info.axes[1] != "step" || info.every_step) {
            continue;
        }
        at::Tensor behind = at::arange(entry.values.size(1), last.options()).unsqueeze(0) > last;
        at::Tensor values = entry.values;
        if (info.storage == SignalStorage::trimmed) {
            values = values.select(-1, 0); // mark only `back` 0, because trimming removes zeros
        }
        while (behind.dim() < values.dim()) {
            behind = behind.unsqueeze(-1);
        }
        if (values.scalar_type() == at::kLong) {
            values.masked_fill_(behind, did_not_run);
        } else {
            values.masked_fill_(behind, std::numeric_limits<double>::quiet_NaN());
        }
    }
}

} // namespace ponderscope
