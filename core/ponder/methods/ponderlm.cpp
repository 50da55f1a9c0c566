// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/method.h"

#include <ATen/ATen.h>

namespace ponderscope {

namespace {

/// PonderLM (arXiv 2505.20674). K times it adds the expected embedding of the next token to the input and
/// runs the stack again.
///   E^0 = c·emb(x), times K with `multiply_start`;   E^{k+1} = E^k + c·Σ_v softmax(head(h^k) /
///   temperature)_v · W_emb[v]
class PonderLm final : public Method {
public:
    explicit PonderLm(const ModelConfig& config) : Method(config) {}

    [[nodiscard]] at::Tensor first_input(const at::Tensor& embedded, const at::Tensor&) const override {
        // With K = 0 this zeroes the input, as the authors' code does.
        return config_.multiply_start ? embedded * static_cast<double>(max_steps()) : embedded;
    }

    [[nodiscard]] std::optional<MixtureWish> mixture() const override {
        return MixtureWish{config_.temperature, config_.top_k};
    }

    [[nodiscard]] at::Tensor next_input(const Slots& slots, const Decision&,
                                        const at::Tensor& expected) const override {
        return slots.input + expected;
    }

    [[nodiscard]] std::int64_t input_flops() const override { return mixture_flops(config_.top_k); }
};

} // namespace

MethodEntry ponderlm_method() {
    return MethodEntry::of<PonderLm>(MethodKind::ponderlm);
}

} // namespace ponderscope
