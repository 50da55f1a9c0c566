// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/stats/significance.h"
#include "core/trace/records.h"

#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

namespace ponderscope {

/// The mean and the quantiles of values. Quantiles use all values if there are at most 100,000. Otherwise
/// they use at least 50,000 evenly spaced values.
class Spread {
public:
    void add(float value); ///< ignores NaN and infinity
    [[nodiscard]] const Moments& all() const { return all_; }
    [[nodiscard]] double mean() const;                 ///< NaN when empty
    [[nodiscard]] double quantile(double share) const; ///< NaN when empty

private:
    Moments all_;
    std::vector<float> some_;
    std::int64_t every_ = 1;
};

/// The steps at which the tokens of a run stopped, over all sequences.
struct HaltingStats {
    /// Bins of equal width from 0. The last bin also counts all larger values.
    struct Bins {
        double width = 1;
        std::vector<std::int64_t> counts;
        void add(double value);
    };

    std::string unit = "step"; ///< RunInfo::step_unit
    std::int64_t max_steps = 0;
    std::int64_t scored = 0;               ///< tokens with a target; gate_by_step includes all tokens
    std::vector<Spread> nll_by_step;       ///< [K + 1]: NLL of the tokens that stopped at step k
    std::vector<Bins> entropy_by_step;     ///< [K + 1]: entropy of these tokens
    std::vector<Bins> probability_by_step; ///< [K + 1]: probability of these tokens' targets
    std::vector<Spread> gate_by_step;      ///< [steps of the signal]: gate of the tokens that ran step k
    std::string gate_title;                ///< empty: the run records neither gates nor halting masses
    [[nodiscard]] std::vector<std::int64_t> histogram() const; ///< [K + 1]
};

/// Reads the run once. Throws the InputErrors of TraceReader. \p stop throws Cancelled.
HaltingStats halting_stats(const std::filesystem::path& trace, const std::string& run,
                           const std::stop_token& stop = {});

} // namespace ponderscope
