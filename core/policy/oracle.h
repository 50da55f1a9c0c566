// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/policy/replay.h"

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace ponderscope {

/// The cost that the oracle balances against the NLL.
enum class CostAxis : std::uint8_t { steps, flops };

/// The lower convex hull of (mean cost, mean NLL) over all choices of steps for the tokens of a table: a
/// bound for all rules. At a price lambda every token takes the step with the least NLL + lambda · cost.
/// These choices together are a point of the hull. Between two neighbouring points of the hull, each token
/// draws one of the two at random.
///
/// A token's cost depends only on its own steps. Where FLOPs also depend on the steps of other tokens
/// (FlopsModel::visibility), they are counted as if all other tokens stopped at step 0. No rule has lower
/// FLOPs, so the hull remains a bound. A token without a target takes step 0.
class Oracle {
public:
    /// InputError: CostAxis::flops for a table without a FLOPs model. \p table must outlive the object.
    Oracle(const ReplayTable& table, CostAxis axis);

    /// The prices below which tokens change to a later step, each with the cost that the change adds.
    struct Turns {
        double base = 0; ///< sum of the tokens' costs at step 0
        std::int64_t tokens = 0;
        std::vector<std::pair<double, double>> turns;
    };
    /// The changes of all tokens, or of a sample if there are over 4 million pairs of token and step.
    [[nodiscard]] Turns turns() const;

    /// The replay at a price (nats per step or FLOP). With CostAxis::flops, the FLOPs of the
    /// result also assume that all other tokens stop at step 0.
    void replay(double price, ReplayResult& result) const;

private:
    [[nodiscard]] double cost(std::size_t token, std::int64_t k) const {
        return flops_.empty() ? static_cast<double>(k)
                              : static_cast<double>(flops_[static_cast<std::size_t>(k)][token]);
    }
    const ReplayTable& table_;
    std::vector<std::vector<std::int64_t>> flops_; ///< [K + 1][tokens]; empty: steps
};

/// The policy of the kind `oracle`: the bound over steps, at a price.
std::unique_ptr<Policy> oracle_policy(double price);

/// Prices that select points of the hull, from the highest price to 0: up to \p most points with evenly
/// spread costs, from the cheapest to the most expensive point; and for each of \p costs the next cheaper and
/// the next more expensive point, so that the line between the two lies on the hull.
std::vector<double> oracle_prices(Oracle::Turns turns, int most, std::span<const double> costs);

} // namespace ponderscope
