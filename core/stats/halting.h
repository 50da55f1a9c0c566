// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/stats/run_reading.h"
#include "core/stats/spread.h"
#include "core/trace/records.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

namespace ponderscope {

/// When the tokens of a run stopped, over all of its sequences. Memory grows only with the number of token
/// types.
struct HaltingStats {
    /// Even bins from 0. The last bin also counts all larger values.
    struct Bins {
        double width = 1;
        std::vector<std::int64_t> counts;
        void add(double value);
    };
    struct TokenType {
        std::int32_t id = 0;
        std::string bytes;      ///< empty: not in the vocabulary
        std::int64_t count = 0; ///< tokens with a target
        double steps = 0;       ///< mean
        double nll = 0;         ///< mean, nats
        double dropped = 0;     ///< share that stopped before the last step
    };

    std::string unit = "step"; ///< RunInfo::step_unit
    std::int64_t max_steps = 0;
    std::int64_t scored = 0;               ///< tokens with a target; only the gates also count other tokens
    std::vector<Spread> nll_by_step;       ///< [K + 1]: of the tokens that stopped there
    std::vector<Bins> entropy_by_step;     ///< [K + 1]
    std::vector<Bins> probability_by_step; ///< [K + 1]: of the target
    std::vector<Spread> gate_by_step;      ///< [steps of the signal]: of the tokens that ran them
    std::string gate_title;                ///< empty: the run records neither gates nor halting masses
    std::vector<TokenType> types;          ///< most frequent first
    [[nodiscard]] std::vector<std::int64_t> histogram() const; ///< [K + 1]
};

/// Reads the run once. \p types: whose type a row counts for. \p only: by sequence, rows, ascending: those
/// alone are counted; empty: all. InputError as TraceReader; Cancelled by \p stop.
HaltingStats halting_stats(const std::filesystem::path& trace, const std::string& run, LabelPlace types,
                           const std::stop_token& stop = {},
                           const std::map<std::int64_t, std::vector<std::int64_t>>& only = {});

} // namespace ponderscope
