// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/method.h"

namespace ponderscope {

namespace {

/// The stack, applied K + 1 times to its own output (methods.md section 4). The next pass gets the residual
/// stream without the final norm. Each read-out applies the final norm, as if the pass were the last.
///   x^0 = c·emb(x);   x^{k+1} = layers(x^k);   h^k = norm(layers(x^k))
/// Nanbeige gives the normed state to the next pass: x^{k+1} = h^k.
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
