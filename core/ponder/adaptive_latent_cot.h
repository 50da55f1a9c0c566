// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/ponder/method.h"

namespace ponderscope {

/// Adaptive latent chain of thought (arXiv 2602.08220, methods.md section 7): two-dimensional visibility, a
/// slot reads the state of the one before it, and a router decides after each.
///   g_k = sigmoid(w·h^k + b);   r_0 = 1, r_{k+1} = r_k g_k;   slot (t, k+1) runs iff r_{k+1} >= tau
///   masses: r_k (1 - g_k) for k < K_t, and r_{K_t} at K_t (`remainder` "drop": r (1 - g) there too when K_t
///   < K)
class AdaptiveLatentCot final : public Method {
public:
    AdaptiveLatentCot(const ModelConfig& config, const Parameters& parameters);
    static std::vector<TensorSpec> tensors(const ModelConfig& config);

    [[nodiscard]] VisibilityRule visibility() const override { return VisibilityRule::two_dimensional; }
    [[nodiscard]] bool halts() const override;
    [[nodiscard]] bool mixes_states() const override { return max_steps() > 0; }
    [[nodiscard]] Decision decide(const Slots& slots) const override;
    [[nodiscard]] std::vector<SignalInfo> signals() const override;
    [[nodiscard]] std::int64_t decision_flops(std::int64_t step) const override;

private:
    at::Tensor weight_; ///< [1, d]: one router for all steps; [K, d]: row k decides after step k
    at::Tensor bias_;   ///< [1] or [K]
};

} // namespace ponderscope
