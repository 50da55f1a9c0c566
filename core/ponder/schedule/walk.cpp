// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/schedule/walk.h"

#include "core/model/device.h"
#include "core/ponder/schedule/visibility.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <utility>

namespace ponderscope {

at::Tensor RunListener::expected_embedding(const Slots& slots, const HeadWeights& head,
                                           const MixtureWish& wish) {
    if (at::GradMode::is_enabled() &&
        (slots.hidden.requires_grad() || head.head.requires_grad() || head.embedding.requires_grad())) {
        return ponderscope::expected_embedding(slots.hidden, head, wish.temperature, wish.top_k);
    }
    HeadRequest request;
    request.mixture = true;
    request.temperature = wish.temperature;
    request.top_k = wish.top_k;
    return read_out(slots.hidden, head, request).mixture;
}

at::Tensor Readout::if_stopped(const Slots& slots, const Decision& decision) const {
    if (!mixes_) {
        return slots.hidden;
    }
    at::Tensor now = slots.hidden.to(at::kFloat);
    if (decision.mass_stop.defined()) {
        now = now * decision.mass_stop.unsqueeze(1);
    }
    return sum_.defined() ? select_rows(sum_, slots.tokens) + now : now;
}

at::Tensor Readout::empty_like(const at::Tensor& rows) const {
    return at::zeros({tokens_, rows.size(1)}, rows.options().requires_grad(false));
}

void Readout::add(const Slots& slots, const Decision& decision, const at::Tensor& stopped,
                  const at::Tensor& running) {
    if (running.defined()) {
        output_ = at::where(running.unsqueeze(1), stopped, output_);
    } else if (!slots.tokens.defined()) {
        output_ = stopped;
    } else {
        // Tokens that stopped earlier keep their rows.
        output_ = at::index_copy(output_.defined() ? output_ : empty_like(stopped), 0, slots.tokens, stopped);
    }
    if (!mixes_ || slots.last) {
        return;
    }
    TORCH_CHECK(decision.mass_on.defined(),
                "a method that mixes states must say the mass of those that go on");
    const at::Tensor part = slots.hidden.to(at::kFloat) * decision.mass_on.unsqueeze(1);
    if (slots.tokens.defined()) {
        sum_ = at::index_add(sum_.defined() ? sum_ : empty_like(part), 0, slots.tokens, part);
    } else {
        sum_ = sum_.defined() ? sum_ + part : part;
    }
}

Slots Walk::numbered() const {
    Slots slots = slots_;
    if (parts_.numbers.defined()) {
        slots.tokens = select_rows(parts_.numbers, slots_.tokens);
    }
    return slots;
}

void Walk::begin(const at::Tensor& tokens, const at::Tensor& input, const at::Tensor& carry,
                 const at::Tensor& before) {
    slots_ = {};
    slots_.tokens = tokens;
    slots_.input = input;
    slots_.carry = carry;
    slots_.before = before;
    slots_.last = parts_.method.max_steps() == 0;
    if (parts_.listener != nullptr) {
        parts_.listener->step_begins(numbered());
    }
}

void Walk::ran(const at::Tensor& hidden, const at::Tensor& stream) {
    slots_.hidden = hidden;
    slots_.stream = stream;
    {
        const GpuProducts exact(Precision::float32); // rounding could flip a gate near its threshold
        decision_ = parts_.method.decide(slots_);
    }
    stopped_ = readout_.if_stopped(slots_, decision_);
    if (parts_.read) {
        stopped_ = parts_.read(stopped_, slots_);
    }
    if (parts_.listener != nullptr) {
        parts_.listener->step_ran(numbered(), decision_, stopped_);
    }
    readout_.add(slots_, decision_, stopped_, running_);
}

at::Tensor Walk::choose() {
    at::Tensor go_on = decision_.go_on;
    if (parts_.rule != nullptr) {
        HaltingAnswer answer =
            parts_.rule->answer({slots_, decision_, stopped_, previous_hidden_, previous_readout_,
                                 rule_carry_, *parts_.places, parts_.head});
        rule_carry_ = std::move(answer.carry);
        go_on = answer.go_on;
    }
    if (!parts_.selects) {
        return go_on;
    }
    if (go_on.defined()) {
        running_ = running_.defined() ? running_.logical_and(go_on) : go_on;
    }
    return {};
}

bool Walk::goes_on() {
    const at::Tensor go_on = choose();
    if (!go_on.defined()) {
        return true;
    }
    const at::Tensor going = at::nonzero(go_on).view(-1);
    if (going.size(0) > 0 && going.size(0) < go_on.size(0)) {
        keep(going);
    }
    return going.size(0) > 0;
}

void Walk::keep(const at::Tensor& rows) {
    slots_.tokens = slots_.tokens.defined() ? slots_.tokens.index_select(0, rows) : rows;
    for (at::Tensor* tensor :
         {&slots_.input, &slots_.hidden, &slots_.stream, &slots_.carry, &decision_.value, &decision_.go_on,
          &decision_.compared, &decision_.expected_mass, &decision_.mass_on, &decision_.mass_stop,
          &decision_.carry, &decision_.next_key_bias, &rule_carry_, &key_bias_, &previous_hidden_,
          &previous_readout_}) {
        *tensor = select_rows(*tensor, rows);
    }
    stopped_ =
        parts_.rule != nullptr && parts_.rule->looks_back() ? select_rows(stopped_, rows) : at::Tensor();
}

void Walk::make_inputs() {
    const double scale = parts_.method.embed_scale() * parts_.head.embedding_scale;
    at::Tensor expected;
    if (const std::optional<MixtureWish> wish = parts_.method.mixture()) {
        RunListener plain;
        RunListener& listener = parts_.listener != nullptr ? *parts_.listener : plain;
        Slots asked = numbered();
        asked.hidden = parts_.method.mixture_state(slots_, decision_);
        expected = listener.expected_embedding(asked, parts_.head, *wish);
        expected = (scale == 1.0 ? expected : expected * scale).to(slots_.input.scalar_type());
        Tap{parts_.listener, slots_.step}("expected_embedding", expected);
    }
    slots_.carry = decision_.carry;
    slots_.input = parts_.method.next_input(slots_, decision_, expected);
    step();
}

void Walk::take_inputs(const at::Tensor& input) {
    slots_.carry = decision_.carry;
    slots_.input = input;
    step();
}

void Walk::step() {
    if (parts_.rule != nullptr && parts_.rule->looks_back()) {
        previous_hidden_ = slots_.hidden;
        previous_readout_ = stopped_;
    }
    key_bias_ = decision_.next_key_bias;
    slots_.before = at::Tensor();
    ++slots_.step;
    slots_.last = slots_.step == parts_.method.max_steps();
    if (parts_.listener != nullptr) {
        parts_.listener->step_begins(numbered());
    }
}

} // namespace ponderscope
