// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/splitmix.h"
#include "core/stats/seeds.h"
#include "core/stats/token_groups.h"

#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

namespace ponderscope::testing {

/// A stream of draws of Gauss.
class Normal {
public:
    explicit Normal(std::uint64_t seed) : seed_(seed) {}
    double operator()() {
        const double u = 1 - unit_interval(splitmix64(seed_, draw_++));
        const double v = unit_interval(splitmix64(seed_, draw_++));
        return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
    }
    double uniform() { return unit_interval(splitmix64(seed_, draw_++)); }

private:
    std::uint64_t seed_;
    std::uint64_t draw_ = 0;
};

/// Two methods that are equally good: 40 clusters of 10 tokens whose difficulty all runs share, and runs that
/// differ by \p between from each other as a whole. \p paired: run i of both sides shares half of that
/// variance.
inline SeedSample equal_methods(std::uint64_t seed, std::size_t seeds_a, std::size_t seeds_b, double between,
                                bool paired = false) {
    SeedSample sample;
    Normal draw(seed);
    std::vector<double> difficulty;
    for (int cluster = 0; cluster < 40; ++cluster) {
        const double mine = draw();
        for (int t = 0; t < 10; ++t) {
            difficulty.push_back(3 + mine + draw());
            sample.layout.add(cluster, t > 0);
        }
    }
    std::vector<double> shared;
    for (std::size_t s = 0; s < seeds_a + seeds_b; ++s) {
        std::vector<double> run = difficulty;
        double own = between * draw();
        if (paired) {
            own *= std::sqrt(0.5);
            if (s < seeds_a) {
                shared.push_back(between * std::sqrt(0.5) * draw());
            }
            own += shared[s % seeds_a];
        }
        for (double& value : run) {
            value += own + 0.3 * draw();
        }
        (s < seeds_a ? sample.a : sample.b).push_back(std::move(run));
    }
    return sample;
}

/// Groups of tokens in memory. NaN: no target, and not in the layout.
inline TokenGroups groups_of(const std::vector<std::int32_t>& ids, const std::vector<std::int32_t>& steps,
                             const std::vector<float>& nll, const TokenLayout& layout, std::int64_t max_steps,
                             const std::vector<std::string>& bytes_by_id,
                             const GroupingOptions& options = {}) {
    ScoredTokens tokens;
    for (std::size_t i = 0; i < ids.size(); ++i) {
        if (!std::isnan(nll[i])) {
            tokens.id.push_back(ids[i]);
            tokens.steps.push_back(steps[i]);
            tokens.nll.push_back(static_cast<double>(nll[i]));
        }
    }
    tokens.layout = layout;
    return group_tokens(tokens, max_steps, bytes_by_id, options);
}

} // namespace ponderscope::testing
