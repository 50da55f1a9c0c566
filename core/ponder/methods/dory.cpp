// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ponder/methods/recurrent.h"

namespace ponderscope {

namespace {

/// Dory's loops: x^k = core(u(x^{k-1}) + e), where e is the output of the input layers and x^{-1} = e.
class DoryLoops final : public Recurrent {
public:
    using Recurrent::Recurrent;

    [[nodiscard]] at::Tensor first_input(const at::Tensor& entering, const at::Tensor&) const override {
        return Recurrent::first_input(entering, entering);
    }
    [[nodiscard]] at::Tensor state_before(const at::Tensor& entering, const at::Tensor&) const override {
        return entering;
    }
};

} // namespace

MethodEntry dory_method() {
    return MethodEntry::of<DoryLoops>(MethodKind::dory);
}

} // namespace ponderscope
