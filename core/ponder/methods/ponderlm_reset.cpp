// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/method.h"

#include <ATen/ATen.h>

namespace ponderscope {

namespace {

/// PonderLM as the PonderLM-2 code base has it for Llama (methods.md section 4): every step starts again from
/// the embedding.
///   E^{k+1} = E^0 + c·Σ_v softmax(head(h^k))_v · W_emb[v]        E^k + ... with
///   `residual_interpolated_embeds`
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
