// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ponderscope {

/// Measures how much weights over sources (such as the signal depth_weights) depend on the token. A router
/// with the same weights for all tokens makes no choice (arXiv 2606.13168). The variance of the weights has
/// two parts: between sources, and between tokens for each source.
class TokenDependence {
public:
    /// Adds one token's weights over the sources. std::invalid_argument: the number of sources changed.
    void add(std::span<const float> weights);

    [[nodiscard]] std::int64_t tokens() const { return tokens_; }
    /// The part between tokens as a share of the variance, Σ_{t,s} (w_ts - mean_s)² / Σ_{t,s} (w_ts - mean)²,
    /// in [0, 1]. 0 if all weights are equal. NaN for fewer than two tokens or two sources.
    [[nodiscard]] double share_between_tokens() const;

    /// Views flag layers with a smaller share. The value is our own choice (methods.md section 3).
    static constexpr double usual_threshold = 0.05;

private:
    std::int64_t tokens_ = 0;
    std::vector<double> means_;   ///< mean of each source
    std::vector<double> squares_; ///< by source: Σ_t (w_ts - mean_s)²
};

} // namespace ponderscope
