// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/method.h"

namespace ponderscope {

namespace {

/// PonderLM as the PonderLM-2 code base has it for GPT-NeoX (methods.md section 4): what is added to the
/// input is the last state itself, neither scaled nor mixed with the vocabulary.
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
