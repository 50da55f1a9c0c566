// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/progress.h"
#include "core/policy/matched.h"
#include "core/stats/bootstrap.h"
#include "core/trace/quantities.h"
#include "views/policy/front_chart.h"

namespace ponderscope {

// Charts of policies beyond their fronts. Replays are marked as such.

/// How rules are set against each other at equal cost.
struct MatchedLook {
    std::vector<std::string> policies;   ///< kinds; empty: all that the run can be replayed with
    std::string against = blind_rule;    ///< the rule that is zero
    bool over_flops = false;             ///< else over mean steps
    std::vector<MatchedRule> plain = {}; ///< runs of plain models over the same rows, points at their FLOPs
    std::optional<MatchedComparison> reruns = {}; ///< results of the model with the rules: points with bands
};

/// Rules at equal cost: NLL minus the NLL of one rule over mean steps or FLOPs, with bands over the whole
/// chart; dots where a rule thinks better than the best blind rule. Costs are those that the rule at zero
/// reaches. InputError: a rule that the run lacks signals for, FLOPs that the trace does not know, a rule at
/// zero that stops all tokens or none at every threshold.
Chart matched_rules_chart(const ReplayTable& table, const MatchedLook& look, const BootstrapOptions& options);

/// The loss of the best blind rule and of random halting against one policy at equal cost.
Chart policy_comparison_chart(const ReplayTable& table, const std::string& policy,
                              const BootstrapOptions& options);

/// NLL, steps or FLOPs against the first parameter of policies, as a share of its range if there are several
/// policies. InputError: as above, or FLOPs that the trace does not know.
Chart sweep_chart(const ReplayTable& table, const std::vector<std::string>& policies, Quantity quantity,
                  const std::stop_token& stop);

/// The model's own rule where the run has its signals, else entropy.
std::string usual_policy(const ReplayTable& table);

} // namespace ponderscope
