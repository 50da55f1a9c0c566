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

/// For each causal rule of \p names: the reruns of \p run (or \p run itself) in \p runs under the rule,
/// and that under `full`. If several reruns have the same setting, uses the newest. Omits rules without a
/// rerun.
std::vector<RerunRule> reruns_by_rule(const std::vector<RunInfo>& runs, const RunInfo& run,
                                      const std::vector<std::string>& names);

/// compare_matched on reruns instead of replays. \p costs: mean steps, clamped to the range that
/// the reference's reruns reach. If empty: the mean steps of each rerun of the reference. \p rerun_trace: the
/// trace with the runs of \p rules. \p trace: the trace with the table's run. InputError: a rerun over other
/// tokens; a reference that is not among the rules.
MatchedComparison compare_reruns(const ReplayTable& table, const ScoredRows& scored, const TraceReader& trace,
                                 const RunInfo& run, const TraceReader& rerun_trace,
                                 const std::vector<RerunRule>& rules, const std::string& reference,
                                 std::vector<double> costs, const BootstrapOptions& options);

/// The runs of a model without pondering steps over the same tokens. Each run is a point at its own FLOPs.
std::vector<RunInfo> plain_runs(const std::vector<RunInfo>& runs, const RunInfo& run);
/// A run of plain_runs() over the tokens of \p scored. No settings if the run did not score all these tokens.
MatchedRule plain_rule(const TraceReader& trace, const RunInfo& plain, const ScoredRows& scored);

} // namespace ponderscope
