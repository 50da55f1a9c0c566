// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/policy/oracle.h"
#include "core/policy/scored_rows.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace ponderscope {

/// Name of the best blind rule: the lower convex hull of the fixed depths, that is the least NLL, at a mean
/// cost of at most c, of a rule that does not look at the token (one depth for all tokens, or one of two
/// depths drawn for each). Any random halting lies on or above it.
inline constexpr const char* blind_rule = "blind";

/// A rule from its cheapest to its most expensive setting.
struct MatchedRule {
    std::string name;
    bool causal = true; ///< false: a bound
    bool hull = false;  ///< counted by the lower convex hull of its settings, never rising
    std::vector<ScoredSetting> settings;
    std::vector<ScoredSetting> for_flops; ///< at equal FLOPs instead of `settings`; empty: the same
    bool plain = false;                   ///< a run of a model that does not ponder
};

/// A rule at a given cost, linear between two settings: the mean result of drawing one of the two for each
/// token.
struct MatchedCell {
    double cost = 0;     ///< mean steps, or FLOPs a token
    Estimate nll;        ///< nats a token; NaN if the rule does not reach the cost
    Estimate difference; ///< to the reference at the same cost
    Estimate band; ///< the same with bands that hold for all causal rules and costs of the axis together
    bool better = false; ///< causal, and the band of its difference to the best blind rule is below 0
};
struct MatchedPoint {
    std::string policy;
    double steps = 0, flops = 0, nll = 0; ///< means; flops NaN if they are not known
};
struct MatchedRow {
    std::string name;
    bool causal = true;
    std::vector<MatchedPoint> curve;   ///< by cost; of a hull its corners
    std::vector<MatchedCell> at_steps; ///< a cell a cost
    std::vector<MatchedCell> at_flops; ///< empty if FLOPs are not known
    bool plain = false;                ///< a run of a model that does not ponder: a point at its own cost
};

/// Costs to compare at, ascending.
struct MatchedCosts {
    std::vector<double> steps;
    std::vector<double> flops; ///< beside those that the reference takes at `steps`
};

/// Rules at equal mean steps and at equal FLOPs. The FLOPs of a column are the reference's at its steps.
struct MatchedComparison {
    std::string reference;
    std::vector<MatchedRow> rows;
    Resampling resampling;
};

/// \p rule(i, costs) is called once for \p reference, then for i = 0..rules-1: settings of one rule at a time
/// are in memory. `costs` holds all costs of both axes, but for the reference none. A replicate matches the
/// costs anew, so the intervals know that thresholds were found on the same text; no setting is chosen for
/// its loss. Cells are marked `better` if one of the rules is blind_rule. FLOPs beyond the reference's are
/// left out. InputError: a reference that does not reach a cost in steps.
using AskRule = std::function<MatchedRule(std::size_t rule, const MatchedCosts& costs)>;
MatchedComparison compare_matched(std::size_t rules, const AskRule& rule, std::size_t reference,
                                  const MatchedCosts& costs, const RowLayout& rows,
                                  const BootstrapOptions& options = {});

/// NLL of each setting minus NLL of the best blind rule at the same mean cost: FLOPs if all of them are
/// known, else steps. \p depths: the fixed depths over the same rows.
std::vector<Estimate> against_blind(std::span<const ScoredSetting> settings,
                                    std::span<const ScoredSetting> depths, const RowLayout& rows,
                                    const BootstrapOptions& options);

/// The rules that a table can be replayed with and that have a cost: the best blind rule, every kind with a
/// threshold (swept over \p settings values), random halting, and as a bound the oracle. Rules over a signal
/// by name can be requested beside them (find_policy_kind).
std::vector<std::string> matched_rules(const ReplayTable& table);
/// One setting, replayed. \p costs: those at which the oracle is exact. InputError: a rule without an NLL of
/// some token of \p scored.
MatchedRule replayed_rule(const ReplayTable& table, const ScoredRows& scored, const std::string& name,
                          int settings, const MatchedCosts& costs = {});

/// \p parts - 1 costs that divide the range of the run evenly: \p reached: mean steps; K if none halted.
std::vector<double> even_costs(double reached, int parts);

/// The two settings of each cost that a rule's curve passes between, once each; for reruns.
std::vector<std::string> settings_around(const MatchedRow& row, const std::vector<double>& costs);

} // namespace ponderscope
