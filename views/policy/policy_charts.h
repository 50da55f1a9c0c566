// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/progress.h"
#include "core/policy/matched.h"
#include "core/stats/bootstrap.h"
#include "core/trace/quantities.h"
#include "views/policy/front_chart.h"

namespace ponderscope {

// Charts of policies, except fronts. Replays are labelled as replays.

/// Options of matched_rules_chart().
struct MatchedLook {
    std::vector<std::string> policies;   ///< kinds; empty: all kinds that the run can replay
    std::string against = blind_rule;    ///< the reference rule, drawn at zero
    bool over_flops = false;             ///< false: over mean steps
    std::vector<MatchedRule> plain = {}; ///< models without steps on the same tokens; points at their FLOPs
    std::optional<MatchedComparison> reruns = {}; ///< reruns with the rules, drawn as points with bands
};

/// Rules at equal cost: NLL minus the NLL of the reference rule, against mean steps or FLOPs. The bands hold
/// simultaneously over the whole chart. Dots mark costs at which a rule is better than the best blind rule.
/// The chart covers the costs that the reference rule reaches. InputError: the run lacks a rule's signals,
/// the trace has no FLOPs, or the reference rule stops all tokens or none at every threshold.
Chart matched_rules_chart(const ReplayTable& table, const MatchedLook& look, const BootstrapOptions& options);

/// The losses of the best blind rule and of random halting, each minus the loss of \p policy at equal cost.
Chart policy_comparison_chart(const ReplayTable& table, const std::string& policy,
                              const BootstrapOptions& options);

/// NLL, steps or FLOPs against the first parameter of policies; with several policies, each parameter is
/// shown as a share of its range. InputError: the run lacks a rule's signals, or the trace has no FLOPs.
Chart sweep_chart(const ReplayTable& table, const std::vector<std::string>& policies, Quantity quantity,
                  const std::stop_token& stop);

/// The default policy: the model's own rule if the run has the rule's signals, else entropy.
std::string usual_policy(const ReplayTable& table);

} // namespace ponderscope
