// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/policy/replay.h"
#include "core/stats/bootstrap.h"

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace ponderscope {

/// Agreement of a replay with its rerun, over the tokens with a target in both.
struct Agreement {
    std::int64_t tokens = 0;
    Estimate equal_steps; ///< share of tokens that stop at the same step
    Estimate steps;       ///< mean steps, rerun minus replay
    Estimate nll;         ///< mean NLL, rerun minus replay, nats a token
    std::vector<std::pair<std::int32_t, std::int64_t>>
        step_differences; ///< (rerun - replay, tokens), ascending
    /// (q, nats) of the NLL's difference of a token, q = 0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.
    std::vector<std::pair<double, double>> nll_quantiles;
    Resampling resampling;
};

/// Steps and NLL (NaN: no target): a value for each row of the table. InputError: no token with a target in
/// both.
Agreement agreement_of(const ReplayTable& table, std::span<const std::int32_t> replay_steps,
                       std::span<const float> replay_nll, std::span<const std::int32_t> rerun_steps,
                       std::span<const float> rerun_nll, const BootstrapOptions& options = {});

} // namespace ponderscope
