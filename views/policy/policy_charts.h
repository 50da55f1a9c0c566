// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/progress.h"
#include "core/policy/matched.h"
#include "core/stats/bootstrap.h"
#include "views/policy/policy_fronts.h"

namespace ponderscope {

// Charts of policies beyond their fronts. What in them is replay says so.

/// What others lose against one policy where both spend as much: for each threshold of \p policy, `uniform`
/// and `geometric` halting at its mean steps, and their mean NLL minus its own, with paired 95 % intervals
/// over the same blocks. Thresholds at which nobody or everybody stops are left out. InputError: a policy
/// that the run lacks signals for, or one without a threshold.
figure::Chart policy_comparison_chart(const ReplayTable& table, const std::string& policy,
                                      const BootstrapOptions& options);

/// All rules at equal cost: NLL minus that of \p against (`uniform`, say) over mean steps, or over the FLOPs
/// that it takes at these steps, with bands over the whole chart. \p reruns: what the model did with the
/// rules, as points with bands of their own. \p policies: kinds; empty: all that the run
/// can be replayed with. InputError: a rule that the run lacks signals for, FLOPs that the trace does not
/// know.
figure::Chart matched_rules_chart(const ReplayTable& table, const std::vector<std::string>& policies,
                                  const std::string& against, bool over_flops,
                                  const BootstrapOptions& options,
                                  const std::optional<MatchedComparison>& reruns = {});

enum class SweepQuantity { nll, steps, flops };

/// A quantity against the first parameter of policies, as a share of its range where there are several of
/// them. InputError: as above, or FLOPs that the trace does not know.
figure::Chart sweep_chart(const ReplayTable& table, const std::vector<std::string>& policies,
                          SweepQuantity quantity, const std::stop_token& stop);

/// The model's own rule where the run has its signals, else entropy.
std::string usual_policy(const ReplayTable& table);

} // namespace ponderscope
