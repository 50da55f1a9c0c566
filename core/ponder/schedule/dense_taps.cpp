// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/schedule/dense_taps.h"

#include "core/ponder/schedule/visibility.h"

#include <ATen/ATen.h>

#include <vector>

namespace ponderscope {

Tap DenseTaps::of_pass(const at::Tensor& tokens, const at::Tensor& steps, Hear hear) {
    if (listener_ == nullptr || hear == Hear::nothing) {
        return {};
    }
    pass_tokens_ = tokens;
    pass_steps_ = steps;
    hear_ = hear;
    attention_heard_ = attention_heard_ || hear == Hear::all || hear == Hear::attention;
    return {this, 0};
}

bool DenseTaps::lacks_attention() const {
    return listener_ != nullptr && !attention_heard_ && listener_->wants("attention");
}

bool DenseTaps::wants(std::string_view name) const {
    const Hear without = name == "attention" ? Hear::all_but_attention : Hear::attention;
    return hear_ != without && listener_->wants(name);
}

void DenseTaps::attends(const Attending& attending) {
    Attending of_slots = attending;
    of_slots.tokens = pass_tokens_;
    of_slots.steps = pass_steps_;
    listener_->attends(of_slots);
}

void DenseTaps::on_tensor(std::string_view name, std::int64_t, std::int64_t layer, const at::Tensor& tensor) {
    if (!listener_->wants_layer(name, layer)) {
        return;
    }
    at::Tensor& dense = dense_[{std::string(name), layer}];
    if (!dense.defined()) {
        std::vector<std::int64_t> shape = tensor.sizes().vec();
        shape.front() = tokens_ * slots_;
        dense = at::zeros(shape, tensor.options());
    }
    dense.index_copy_(0, pass_tokens_ * slots_ + pass_steps_, tensor);
}

void DenseTaps::report(std::int64_t step, const at::Tensor& tokens) const {
    for (const auto& [key, dense] : dense_) {
        const at::Tensor of_step = dense.unflatten(0, {tokens_, slots_}).select(1, step);
        listener_->on_tensor(key.first, step, key.second, select_rows(of_step, tokens).contiguous());
    }
}

} // namespace ponderscope
