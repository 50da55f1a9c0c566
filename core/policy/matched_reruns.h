// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/policy/matched.h"
#include "core/trace/reader.h"

#include <string>
#include <vector>

namespace ponderscope {

/// A rule and reruns with some of its settings.
struct RerunRule {
    std::string name;
    std::vector<RunInfo> runs;
};

/// The runs of \p runs that are reruns of the table's run with a causal rule of \p names, by rule, the newest
/// of each setting; with each rule also the run in which every step ran. Rules without a rerun of their own
/// are left out.
std::vector<RerunRule> reruns_by_rule(const std::vector<RunInfo>& runs, const RunInfo& run,
                                      const std::vector<std::string>& names);

/// compare_matched on reruns instead of replays. \p costs: mean steps, moved to the steps that the reference
/// reaches when it is rerun; empty: those of its own settings. \p rerun_trace holds the runs of \p rules, \p
/// trace the table's run. InputError: a rerun over other tokens; a reference that is none of the rules.
MatchedComparison compare_reruns(const ReplayTable& table, const ScoredRows& scored, const TraceReader& trace,
                                 const RunInfo& run, const TraceReader& rerun_trace,
                                 const std::vector<RerunRule>& rules, const std::string& reference,
                                 std::vector<double> costs, const BootstrapOptions& options);

/// The runs of a model that does not ponder over the same tokens: each a point at its own FLOPs.
std::vector<RunInfo> plain_runs(const std::vector<RunInfo>& runs, const RunInfo& run);
/// One rerun, over the tokens of \p scored. No settings: the rerun did not score all of them.
MatchedRule plain_rule(const TraceReader& trace, const RunInfo& plain, const ScoredRows& scored);

} // namespace ponderscope
