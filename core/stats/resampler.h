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
    /// Stretches that blocks are drawn from, with cumulative weights.
    struct Source {
        std::vector<Stretch> stretches;
        std::vector<std::uint64_t> weights;
        std::int64_t tokens = 0;
        void add(std::int64_t first, std::int64_t length, std::int64_t block);
    };

    void draw_clusters(std::uint64_t stream, std::span<double> total, double& tokens) const;
    void draw_blocks(const Source& source, std::uint64_t stream, std::span<double> total) const;

    const PrefixSums& sums_;
    Resampling how_;
    std::uint64_t seed_;
    std::size_t stride_ = 0;
    std::vector<double> rows_;    ///< clusters drawn whole: [clusters, stride], the tokens behind the sums
    std::vector<Source> sources_; ///< of blocks: one for all, or one for each cluster
};

} // namespace ponderscope
