// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/ponder/engine/model.h"

#include <cstdint>
#include <limits>
#include <vector>

namespace ponderscope {

/// Statistics over forward passes: counts of the tokens' last steps, and mean gates.
class StepCensus {
public:
    /// \p threshold: PonderConfig::threshold. If \p method runs every slot in training (see
    /// Method::halts_in_training), a token's last step is the step at which its gates would stop it.
    StepCensus(const Method& method, double threshold);

    /// \p forward: a pass over \p tokens tokens without gradients. \p training: its ForwardForm::training.
    void add(const ForwardResult& forward, std::int64_t tokens, bool training);

    [[nodiscard]] bool halts() const { return halts_; }
    /// Mean gate or router value after step k over the tokens that reached step k, k = 0 … K-1; NaN: no
    /// token. Empty: the method has no such value.
    [[nodiscard]] std::vector<double> gates() const;
    /// Share of the tokens whose last step is k, k = 0 … K; the sum is 1.
    [[nodiscard]] std::vector<double> shares() const;
    [[nodiscard]] double mean_steps() const; ///< mean of the tokens' last steps; NaN without tokens

private:
    bool halts_ = false;
    bool all_run_in_training_ = false;
    double threshold_ = 0;
    bool gated_ = false;
    std::int64_t tokens_ = 0;
    std::vector<std::int64_t> reached_; ///< [K + 1], number of tokens whose step k ran
    std::vector<double> gate_sum_;      ///< [K + 1], sum over these tokens
};

/// Measurements of a model on held-out text.
struct HeldOut {
    double nll = std::numeric_limits<double>::quiet_NaN(); ///< nats per token
    std::int64_t tokens = 0;
    StepCensus census;
};

} // namespace ponderscope
