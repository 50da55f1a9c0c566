// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/dense_taps.h"

#include "core/ponder/walk.h"

#include <ATen/ATen.h>

#include <vector>

namespace ponderscope {

Tap DenseTaps::of_pass(const at::Tensor& tokens, const at::Tensor& steps, bool heard, bool last) {
    if (listener_ == nullptr || !heard) {
        return {};
    }
    index_ = tokens * slots_ + steps;
    last_ = last;
    return {this, 0};
}

bool DenseTaps::wants(std::string_view name) const {
    return listener_->wants(name);
}

void DenseTaps::heard(std::string_view name, std::int64_t, std::int64_t layer, const at::Tensor& tensor) {
    at::Tensor& dense = dense_[{std::string(name), layer}];
    if (!dense.defined()) {
        std::vector<std::int64_t> shape = tensor.sizes().vec();
        shape.front() = tokens_ * slots_;
        dense = at::zeros(shape, tensor.options());
    }
    dense.index_copy_(0, index_, tensor);
}

void DenseTaps::tell(std::int64_t step, const at::Tensor& tokens) const {
    for (const auto& [key, dense] : dense_) {
        const at::Tensor of_step = dense.unflatten(0, {tokens_, slots_}).select(1, step);
        listener_->heard(key.first, step, key.second, select_rows(of_step, tokens).contiguous());
    }
}

} // namespace ponderscope
