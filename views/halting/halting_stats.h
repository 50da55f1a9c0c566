// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trace/records.h"
#include "views/common/selection.h"
#include "views/figure/chart.h"
#include "views/halting/spread_series.h"

#include <QString>

#include <array>
#include <filesystem>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

namespace ponderscope {

/// When the tokens of a run stopped, over all of its sequences. Memory does not grow with a long text, except
/// by one entry a token type.
struct HaltingStats {
    /// Even bins from 0; what is above the last one counts there.
    struct Bins {
        double width = 1;
        std::vector<std::int64_t> counts;
        void add(double value);
    };
    struct TokenType {
        std::int32_t id = 0;
        QString label;
        std::int64_t count = 0; ///< places with a target
        double steps = 0;       ///< mean
        double nll = 0;         ///< mean, nats
        double dropped = 0;     ///< share that stopped before the last step
    };

    std::string unit = "step"; ///< RunInfo::step_unit
    std::int64_t max_steps = 0;
    std::int64_t scored = 0; ///< tokens with a target; everything here but the gates is over them
    Attribution attribution = Attribution::predicted;
    std::vector<Spread> nll_by_step;       ///< [K + 1]: of the tokens that stopped there
    std::vector<Bins> entropy_by_step;     ///< [K + 1]
    std::vector<Bins> probability_by_step; ///< [K + 1]: of the target
    std::vector<Spread> gate_by_step;      ///< [steps of the signal]: of the tokens that ran them
    std::string gate_title;                ///< empty: the run records neither gates nor halting masses
    std::vector<TokenType> types;          ///< most frequent first
    [[nodiscard]] std::vector<std::int64_t> histogram() const; ///< [K + 1]
};

/// Reads the run once. \p attribution: whose type a row counts for, the predicted token's or the computing
/// one's. \p only: by sequence, rows, ascending: those alone are counted; empty: all. InputError as
/// TraceReader; Cancelled by \p stop.
HaltingStats halting_stats(const std::filesystem::path& trace, const std::string& run,
                           Attribution attribution, const std::stop_token& stop = {},
                           const std::map<std::int64_t, std::vector<std::int64_t>>& only = {});

enum class HaltingChart { steps, nll, gates, entropy, probability };
inline constexpr std::array all_halting_charts{HaltingChart::steps, HaltingChart::nll, HaltingChart::gates,
                                               HaltingChart::entropy, HaltingChart::probability};
/// \p unit: RunInfo::step_unit.
QString halting_title(HaltingChart chart, const std::string& unit = "step");
figure::Chart halting_chart(HaltingChart kind, const HaltingStats& stats);

} // namespace ponderscope
