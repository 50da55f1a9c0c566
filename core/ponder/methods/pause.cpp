// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/method.h"

#include <ATen/ATen.h>

namespace ponderscope {

namespace {

/// Pause tokens (methods.md section 4): each token is followed by K pause tokens at the same position, and
/// the last of them gives the logits. All inputs are known in advance, so one pass computes everything
/// exactly.
class Pause final : public Method {
public:
    Pause(const ModelConfig& config, const Parameters&, const Backbone& backbone)
        : Method(config), backbone_(backbone) {}

    [[nodiscard]] VisibilityRule visibility() const override { return VisibilityRule::interleaved; }
    [[nodiscard]] bool knows_inputs() const override { return true; }

    [[nodiscard]] at::Tensor next_input(const Slots& slots, const Decision&,
                                        const at::Tensor&) const override {
        const at::Tensor id = at::full({1}, config_.pause_token_id,
                                       slots.input.options().dtype(at::kLong).requires_grad(false));
        return (backbone_.embed(id) * embed_scale()).expand_as(slots.input);
    }

private:
    const Backbone& backbone_;
};

} // namespace

MethodEntry pause_method() {
    return MethodEntry::of<Pause>(MethodKind::pause);
}

} // namespace ponderscope
