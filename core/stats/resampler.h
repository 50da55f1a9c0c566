// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/stats/bootstrap.h"

#include <cstdint>
#include <span>
#include <vector>

namespace ponderscope {

/// Draws replicates as for_each_replicate says. Immutable, so threads share it; \p sums outlives it.
class Resampler {
public:
    Resampler(const PrefixSums& sums, const Resampling& resampling, std::uint64_t seed);

    /// Sums over replicate \p r into \p total, [width]. The number of its tokens.
    std::int64_t replicate(std::uint64_t r, std::span<double> total) const;

private:
    struct Stretch {
        std::int64_t first;
        std::int64_t length;
    };

    std::int64_t draw_clusters(std::uint64_t stream, std::span<double> total) const;
    void draw_blocks(std::uint64_t stream, std::span<double> total) const;

    const PrefixSums& sums_;
    Resampling how_;
    std::uint64_t seed_;
    std::size_t stride_ = 0;
    std::vector<double> rows_;    ///< clusters drawn whole: [clusters, stride], the tokens behind the sums
    std::vector<Stretch> stretches_;     ///< that blocks are drawn from
    std::vector<std::uint64_t> weights_; ///< of the stretches, cumulative
};

} // namespace ponderscope
