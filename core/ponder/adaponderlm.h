// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/model/blocks.h"
#include "core/ponder/method.h"

#include <vector>

namespace ponderscope {

/// AdaPonderLM (arXiv 2603.01914, methods.md section 5): PonderLM's recurrence with a gate a step and a
/// token.
///   s^i = sigmoid(fc_out_i · gelu(fc_in_i · h^i));   slot (t, i+1) runs iff s^i >= tau;   E^{i+1} = E^i +
///   s^i · c·expected embedding
class AdaPonderLm final : public Method {
public:
    AdaPonderLm(const ModelConfig& config, const Parameters& parameters);
    static std::vector<TensorSpec> tensors(const ModelConfig& config);

    [[nodiscard]] at::Tensor first_input(const at::Tensor& embedded) const override;
    [[nodiscard]] std::optional<MixtureWish> mixture() const override;
    [[nodiscard]] at::Tensor next_input(const Slots& slots, const Decision& decision,
                                        const at::Tensor& expected) const override;
    [[nodiscard]] bool halts() const override;
    [[nodiscard]] Decision decide(const Slots& slots) const override;
    [[nodiscard]] std::vector<SignalInfo> signals() const override;
    [[nodiscard]] std::int64_t input_flops() const override;
    [[nodiscard]] std::int64_t decision_flops(std::int64_t step) const override;

private:
    struct Gate {
        blocks::Linear fc_in, fc_out;
    };
    std::vector<Gate> gates_;
};

} // namespace ponderscope
