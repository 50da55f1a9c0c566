// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/policy/oracle.h"
#include "core/policy/scored_rows.h"

#include <functional>
#include <string>
#include <vector>

namespace ponderscope {

/// The name of the best blind rule. A blind rule ignores the token: one depth for all tokens, or a random
/// choice between two depths. The best blind rule is the lower convex hull of the fixed depths, so no other
/// blind rule with the same mean cost has a lower NLL. Random halting always lies on or above the hull.
inline constexpr const char* blind_rule = "blind";

/// A rule with its settings from cheapest to most expensive.
struct MatchedRule {
    std::string name;
    bool causal = true; ///< false: the rule is a bound
    bool hull = false;  ///< use the settings' lower convex hull, along which NLL never rises (convex_front)
    std::vector<ScoredSetting> settings;
    std::vector<ScoredSetting> for_flops; ///< settings for comparison at equal FLOPs; empty: `settings`
    bool plain = false;                   ///< a run of a model without pondering steps
};

/// The result of a rule at a given cost, interpolated between two settings of the rule. It is the mean result
/// if each token draws one of the two settings at random.
struct MatchedCell {
    double cost = 0;     ///< mean steps, or FLOPs per token
    Estimate nll;        ///< nats per token; NaN if the rule does not reach the cost
    Estimate difference; ///< NLL minus NLL of the reference at the same cost
    Estimate band; ///< `difference` with a simultaneous band over causal rules and at_steps (or at_flops)
    bool better = false; ///< the rule is causal, and the band of its difference to blind_rule is below 0
};
struct MatchedPoint {
    std::string policy;
    double steps = 0, flops = 0, nll = 0; ///< means; flops is NaN if unknown
};
struct MatchedRow {
    std::string name;
    bool causal = true;
    std::vector<MatchedPoint> curve;   ///< points in the order of cost; for a hull, its corners
    std::vector<MatchedCell> at_steps; ///< a cell for each cost
    std::vector<MatchedCell> at_flops; ///< a cell for each cost; empty if FLOPs are unknown
    bool plain = false;                ///< a run of a model without pondering steps: one point
};

/// Costs for the comparison, ascending.
struct MatchedCosts {
    std::vector<double> steps;
    std::vector<double> flops; ///< further costs; the reference's FLOPs at `steps` are always costs
};

/// Rules at equal mean steps and at equal FLOPs. All rows have the same costs. The costs in FLOPs are
/// MatchedCosts::flops and the reference's FLOPs at the costs in steps.
struct MatchedComparison {
    std::string reference;
    std::vector<MatchedRow> rows;
    Resampling resampling;
};

/// Compares rules. Calls \p rule(i, costs) first for \p reference, with empty `costs`. Then calls it for the
/// other i in 0..rules-1 with all costs of both axes, and for the reference again if it is a bound. This
/// order keeps the settings of few rules in memory. A setting's mean cost also depends on the sample, so each
/// bootstrap replicate interpolates again, and intervals include this uncertainty. The costs alone (for a
/// hull, also the NLL) select the settings to interpolate. `better` needs blind_rule among the rules. Ignores
/// FLOPs that the reference does not reach. InputError: the reference does not reach a cost in steps.
using AskRule = std::function<MatchedRule(std::size_t rule, const MatchedCosts& costs)>;
MatchedComparison compare_matched(std::size_t rules, const AskRule& rule, std::size_t reference,
                                  const MatchedCosts& costs, const RowLayout& rows,
                                  const BootstrapOptions& options = {});

/// NLL of each setting minus NLL of the best blind rule at the same mean cost: FLOPs if all FLOPs are known,
/// else steps. \p depths: the fixed depths over the same rows.
std::vector<Estimate> against_blind(std::span<const ScoredSetting> settings,
                                    std::span<const ScoredSetting> depths, const RowLayout& rows,
                                    const BootstrapOptions& options);

/// The rules that a table can replay at several costs: the best blind rule, every kind with a threshold or
/// rate, and the oracle as a bound. Omits rules such as signal:name=gate, although
/// replayed_rule() accepts them.
std::vector<std::string> matched_rules(const ReplayTable& table);
/// A rule, replayed at the threshold_values() for \p settings. For the oracle: also at \p costs.
/// InputError: some token of \p scored has no NLL under the rule.
MatchedRule replayed_rule(const ReplayTable& table, const ScoredRows& scored, const std::string& name,
                          int settings, const MatchedCosts& costs = {});

/// The \p parts - 1 costs that divide the range from 0 to \p reached (the mean of ReplayTable::ran) evenly.
std::vector<double> even_costs(double reached, int parts);

/// The settings to rerun: for each cost, the two settings around it on the rule's curve, without repeats.
std::vector<std::string> settings_around(const MatchedRow& row, const std::vector<double>& costs);

} // namespace ponderscope
