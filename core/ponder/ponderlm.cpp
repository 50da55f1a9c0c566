// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/ponderlm.h"

#include <ATen/ATen.h>

namespace ponderscope {

PonderLm::PonderLm(const ModelConfig& config) : Method(config) {}

at::Tensor PonderLm::first_input(const at::Tensor& embedded) const {
    // With K = 0 this zeroes the input, as the authors' code does.
    return config_.multiply_start ? embedded * static_cast<double>(max_steps()) : embedded;
}

std::optional<MixtureWish> PonderLm::mixture() const {
    return MixtureWish{config_.temperature, config_.top_k};
}

at::Tensor PonderLm::next_input(const Slots& slots, const Decision&, const at::Tensor& expected) const {
    return slots.input + expected;
}

std::int64_t PonderLm::input_flops() const {
    const std::int64_t mixed = config_.top_k > 0 ? std::min(config_.top_k, vocab_size_) : vocab_size_;
    return 2 * vocab_size_ * hidden_size_ + 2 * mixed * hidden_size_;
}

} // namespace ponderscope
