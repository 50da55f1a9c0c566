// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/policy/replay_scan.h"
#include "core/policy/scored_rows.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace ponderscope {

/// A rule from its cheapest setting to its dearest.
struct MatchedRule {
    std::string name;
    bool causal = true; ///< false: a bound
    std::vector<ScoredSetting> settings;
};

/// A rule at a cost that is given: between two of its settings, linear, which is what drawing one of both for
/// each token would give on average.
struct MatchedCell {
    double cost = 0;     ///< mean steps, or FLOPs a token
    Estimate nll;        ///< nats a token; NaN where the rule does not reach the cost
    Estimate difference; ///< to the reference at the same cost
    Estimate band; ///< the same with bands that hold for all causal rules and costs of the axis together
};
struct MatchedPoint {
    std::string policy;
    double steps = 0, flops = 0, nll = 0; ///< means; flops NaN where they are not known
};
struct MatchedRow {
    std::string name;
    bool causal = true;
    std::vector<MatchedPoint> curve; ///< by cost
    std::vector<MatchedCell> at_steps;
    std::vector<MatchedCell> at_flops; ///< empty where FLOPs are not known
};

/// Rules at equal mean steps and at equal FLOPs. FLOPs a column: those of the reference at its steps.
struct MatchedComparison {
    std::string reference;
    std::vector<MatchedRow> rows;
    Resampling resampling;
};

/// \p rule(i), i = 0..rules-1, is asked once for each, in order, after once for \p reference: settings of one
/// rule at a time are in memory. A replicate matches the costs anew, so the intervals know that thresholds
/// were found on the same text; no setting is chosen for its loss. InputError: a reference that does not
/// reach a cost.
MatchedComparison compare_matched(std::size_t rules, const std::function<MatchedRule(std::size_t)>& rule,
                                  std::size_t reference, const std::vector<double>& costs,
                                  const RowLayout& rows, const BootstrapOptions& options = {});

/// The rules that a table can be replayed with and that a cost can be asked of: every kind with a threshold
/// (swept over \p settings values), random halting, and as a bound the oracle, that chooses among the first n
/// steps.
std::vector<std::string> matched_rules(const ReplayTable& table);
/// One of them, replayed. \p rows: of the table.
MatchedRule replayed_rule(const ReplayTable& table, const ScoredRows& rows, const std::string& name,
                          int settings);
/// The same of a run that is not in memory: a row a cluster. InputError: clusters with other tokens than \p
/// rows.
MatchedRule replayed_rule(const ReplayScan& scan, const RowLayout& rows, const std::string& name,
                          int settings);

/// \p parts - 1 costs that part what the run reached evenly: \p reached mean steps, K where none
/// halted.
std::vector<double> even_costs(double reached, int parts);
std::vector<double> even_costs(const ReplayTable& table, const ScoredRows& rows, int parts);

/// The two settings of each cost that a rule's curve passes between, once each; for reruns.
std::vector<std::string> settings_around(const MatchedRow& row, const std::vector<double>& costs);

} // namespace ponderscope
