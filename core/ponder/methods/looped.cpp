// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/method.h"

namespace ponderscope {

namespace {

/// The stack applied K + 1 times to its own output (methods.md section 4): what goes on is the residual
/// stream, and the final norm comes once, before the head. Read-outs of earlier passes go through it too, so
/// that they are what the model would say had it stopped there.
///   x^0 = c·emb(x);   x^{k+1} = layers(x^k);   h^k = norm(layers(x^k))
/// Nanbeige applies the norm after every pass, and its output is what goes on: x^{k+1} = h^k.
class Looped final : public Method {
public:
    explicit Looped(const ModelConfig& config) : Method(config) {}

    [[nodiscard]] bool wants_stream() const override { return !config_.loop_final_norm_each_pass; }

    [[nodiscard]] at::Tensor next_input(const Slots& slots, const Decision&,
                                        const at::Tensor&) const override {
        return wants_stream() ? slots.stream : slots.hidden;
    }
};

} // namespace

MethodEntry looped_method() {
    return MethodEntry::of<Looped>(MethodKind::looped);
}

} // namespace ponderscope
