// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/method.h"

#include <ATen/ATen.h>

namespace ponderscope {

namespace {

/// HRM-Text: a step is a cycle of passes through the low stack and one pass through the high stack. The
/// backbone runs the cycle on both states side by side, [n, 2d]. h^k is the high state; the next cycle also
/// gets the low state.
class HrmText final : public Method {
public:
    HrmText(const ModelConfig& config, const Parameters& parameters)
        : Method(config), start_(parameters.at("model.z_L_init")) {}

    [[nodiscard]] bool wants_stream() const override { return true; }
    [[nodiscard]] at::Tensor first_input(const at::Tensor& embedded, const at::Tensor&) const override {
        return at::cat({embedded, start_.expand_as(embedded)}, 1);
    }
    [[nodiscard]] at::Tensor state_before(const at::Tensor& embedded, const at::Tensor&) const override {
        return embedded;
    }
    [[nodiscard]] at::Tensor next_input(const Slots& slots, const Decision&,
                                        const at::Tensor&) const override {
        const std::int64_t d = slots.hidden.size(1);
        return at::cat({slots.hidden, slots.stream.narrow(1, d, d)}, 1);
    }

private:
    at::Tensor start_; ///< [d]
};

} // namespace

MethodEntry hrm_text_method() {
    return MethodEntry::of<HrmText>(MethodKind::hrm_text);
}

} // namespace ponderscope
