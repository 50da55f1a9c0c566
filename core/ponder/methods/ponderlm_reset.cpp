// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/method.h"

#include <ATen/ATen.h>

namespace ponderscope {

namespace {

/// PonderLM in the PonderLM-2 code for Llama (methods.md section 4). Every step restarts from the embedding.
///   E^{k+1} = E^0 + c·Σ_v softmax(head(h^k))_v · W_emb[v]
///   with `residual_interpolated_embeds`: E^k instead of E^0
class PonderLmReset final : public Method {
public:
    explicit PonderLmReset(const ModelConfig& config) : Method(config) {}

    [[nodiscard]] std::optional<MixtureWish> mixture() const override { return MixtureWish{}; }

    [[nodiscard]] Decision decide(const Slots& slots) const override {
        Decision decision;
        decision.carry = slots.step == 0 ? slots.input : slots.carry; // E^0
        return decision;
    }

    [[nodiscard]] at::Tensor next_input(const Slots& slots, const Decision& decision,
                                        const at::Tensor& expected) const override {
        return (config_.residual_interpolated_embeds ? slots.input : decision.carry) + expected;
    }

    [[nodiscard]] std::int64_t input_flops() const override { return mixture_flops(0); }
};

} // namespace

MethodEntry ponderlm_reset_method() {
    return MethodEntry::of<PonderLmReset>(MethodKind::ponderlm_reset);
}

} // namespace ponderscope
