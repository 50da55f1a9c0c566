// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/ponder/method.h"

namespace ponderscope {

/// PonderLM (arXiv 2505.20674): K times, the expected embedding of the next token is added to the input and
/// the stack runs again.
///   E^0 = c·emb(x), times K with `multiply_start`;   E^{k+1} = E^k + c·Σ_v softmax(head(h^k) /
///   temperature)_v · W_emb[v]
class PonderLm final : public Method {
public:
    explicit PonderLm(const ModelConfig& config);
    [[nodiscard]] at::Tensor first_input(const at::Tensor& embedded) const override;
    [[nodiscard]] std::optional<MixtureWish> mixture() const override;
    [[nodiscard]] at::Tensor next_input(const Slots& slots, const Decision& decision,
                                        const at::Tensor& expected) const override;
    [[nodiscard]] std::int64_t input_flops() const override;
};

} // namespace ponderscope
