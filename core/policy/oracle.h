// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/policy/replay.h"

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace ponderscope {

/// The cost against which the oracle weighs the NLL.
enum class CostAxis : std::uint8_t { steps, flops };

/// The lower convex hull of (mean cost, mean NLL) over all choices of steps for the tokens of a table: a
/// bound for all rules. At a price lambda every token takes the step of least NLL + lambda · cost, which is a
/// point of the hull; between two neighbouring points, one of both is drawn for each token.
///
/// Costs are a token's own. If attention sees the steps of other tokens (FlopsModel), the FLOPs assume that
/// all other tokens stop at step 0: no rule pays less, so the bound stays one. A token without a target takes
/// step 0.
class Oracle {
public:
    /// InputError: FLOPs of a table without a FLOPs model. The table outlives it.
    Oracle(const ReplayTable& table, CostAxis axis);

    /// Corners of the hull: a price, and the additional cost below that price.
    struct Turns {
        double base = 0; ///< sum of the tokens' costs at step 0
        std::int64_t tokens = 0;
        std::vector<std::pair<double, double>> turns;
    };
    /// The corners of all tokens; beyond 4 million pairs of token and step, of a sample of the tokens.
    [[nodiscard]] Turns turns() const;

    /// The replay at a price (nats a step, or a FLOP). With CostAxis::flops, `flops` are the bound's.
    void replay(double price, ReplayResult& result) const;

private:
    [[nodiscard]] double cost(std::size_t token, std::int64_t k) const {
        return flops_.empty() ? static_cast<double>(k)
                              : static_cast<double>(flops_[static_cast<std::size_t>(k)][token]);
    }
    const ReplayTable& table_;
    std::vector<std::vector<std::int64_t>> flops_; ///< [K + 1][tokens]; empty: steps
};

/// The kind `oracle`: the same over steps, as a policy.
std::unique_ptr<Policy> oracle_policy(double price);

/// Prices of \p most points of the hull with evenly spread costs, of both ends, and of the two points around
/// each of \p costs. So the line between neighbouring points is the hull itself. From the highest price to 0.
std::vector<double> oracle_prices(Oracle::Turns turns, int most, std::span<const double> costs);

} // namespace ponderscope
