// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/backbone.h"
#include "core/ponder/method.h"

namespace ponderscope {

/// Steps over the core, the middle blocks of a stack (methods-released.md sections 3 to 5). Each step
/// combines the state with the prelude's output e and runs the core. x^k = core(inject(x^{k-1}, e)), where
/// x^{-1} is the start state. The head reads the coda of x^k.
class Recurrent : public Method {
public:
    Recurrent(const ModelConfig& config, const Parameters&, const Backbone& backbone)
        : Method(config), backbone_(backbone) {}

    [[nodiscard]] at::Tensor first_input(const at::Tensor& entering, const at::Tensor& start) const override {
        return backbone_.inject(start, entering);
    }
    /// Carries e of each token to the next step.
    [[nodiscard]] Decision decide(const Slots& slots) const override {
        Decision decision;
        decision.carry = slots.carry;
        return decision;
    }
    [[nodiscard]] at::Tensor next_input(const Slots& slots, const Decision& decision,
                                        const at::Tensor&) const override {
        return backbone_.inject(slots.hidden, decision.carry);
    }

private:
    const Backbone& backbone_;
};

} // namespace ponderscope
