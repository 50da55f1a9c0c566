// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/cli/console.h"
#include "app/cli/interval_options.h"
#include "core/policy/policy_rows.h"
#include "core/policy/replay.h"
#include "core/policy/rerun_difference.h"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <vector>

namespace ponderscope::cli {

/// A policy at one setting.
struct PolicyPoint {
    PolicySpec spec;
    PolicyOutcome replayed;
    std::vector<std::int64_t> histogram; ///< number of scored tokens that stopped at step k in the replay
    struct Exact {
        std::string run; ///< TRACE#RUN
        PolicyOutcome outcome;
        RerunDifference difference; ///< difference from the replay
    };
    std::optional<Exact> exact;
};

/// The report of `ponderscope policy` on a run.
struct PolicyReport {
    std::string run;
    std::int64_t scored = 0;
    std::int64_t max_steps = 0;
    bool layers_as_steps = false;
    bool halted = false;
    std::vector<PolicyPoint> points; ///< full first
    Resampling resampling;
    std::vector<std::string> notices;

    void print(const IntervalOptions& intervals) const;
    [[nodiscard]] nlohmann::json to_json(const IntervalOptions& intervals) const;
    /// A table of the points, each followed by its rerun.
    [[nodiscard]] DataTable table() const;
};

} // namespace ponderscope::cli
