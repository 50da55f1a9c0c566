// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/method.h"

namespace ponderscope {

namespace {

/// PonderLM in the PonderLM-2 code for GPT-NeoX (methods.md section 4). It adds the last state itself to the
/// input, without scale and without an expected embedding.
///   E^0 = emb(x);   E^{k+1} = E^k + h^k
class PonderLmHidden final : public Method {
public:
    explicit PonderLmHidden(const ModelConfig& config) : Method(config) {}

    [[nodiscard]] at::Tensor next_input(const Slots& slots, const Decision&,
                                        const at::Tensor&) const override {
        return slots.input + slots.hidden;
    }
};

} // namespace

MethodEntry ponderlm_hidden_method() {
    return MethodEntry::of<PonderLmHidden>(MethodKind::ponderlm_hidden);
}

} // namespace ponderscope
