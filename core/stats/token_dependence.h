// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ponderscope {

/// Whether weights over sources (depth attention, snapshots) depend on the token. A router that sends all
/// tokens to the same source makes no choice (arXiv 2606.13168). The variance of the weights has two parts:
/// between sources, and between tokens for each source. share_between_tokens() is the share of the second
/// part.
class TokenDependence {
public:
    /// Adds one token's weights over the sources. Their number must not change (std::invalid_argument).
    void add(std::span<const float> weights);

    [[nodiscard]] std::int64_t tokens() const { return tokens_; }
    /// Σ_{t,s} (w_ts - mean_s)² / Σ_{t,s} (w_ts - mean)², in [0, 1]. 0 if all weights are equal; NaN for
    /// fewer than two tokens or two sources, because there is no choice.
    [[nodiscard]] double share_between_tokens() const;

    /// A layer with a smaller share is flagged. methods.md section 3 asks for a threshold; this value is our
    /// choice.
    static constexpr double usual_threshold = 0.05;

private:
    std::int64_t tokens_ = 0;
    std::vector<double> means_;   ///< mean of each source
    std::vector<double> squares_; ///< by source: Σ_t (w_ts - mean_s)²
};

} // namespace ponderscope
