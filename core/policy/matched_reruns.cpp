// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/matched_reruns.h"

#include "core/base/error.h"
#include "core/policy/policy_spec.h"
#include "core/policy/rerun_difference.h"

#include <algorithm>
#include <numeric>

namespace ponderscope {

std::vector<RerunRule> reruns_by_rule(const std::vector<RunInfo>& runs, const RunInfo& run,
                                      const std::vector<std::string>& names) {
    const RunInfo* full = nullptr;
    std::vector<RerunRule> rules;
    for (const std::string& name : names) {
        rules.push_back({name, {}});
    }
    for (auto one = runs.rbegin(); one != runs.rend(); ++one) { // the newest first
        if (!is_rerun_of(*one, run, one->policy) || one->text_digest != run.text_digest) {
            continue;
        }
        if (one->policy == "full") {
            full = full == nullptr ? &*one : full;
            continue;
        }
        const std::string kind = one->policy.substr(0, one->policy.find(':'));
        for (RerunRule& rule : rules) {
            const auto same = [&](const RunInfo& other) { return other.policy == one->policy; };
            if (rule.name == kind && std::none_of(rule.runs.begin(), rule.runs.end(), same)) {
                rule.runs.push_back(*one);
            }
        }
    }
    std::erase_if(rules, [](const RerunRule& rule) {
        const auto kinds = policy_kinds();
        return rule.runs.empty() || std::none_of(kinds.begin(), kinds.end(), [&](const PolicyKind& kind) {
                   return kind.name == rule.name && kind.causal;
               });
    });
    for (RerunRule& rule : rules) {
        if (full != nullptr) {
            rule.runs.push_back(*full);
        }
    }
    return rules;
}

MatchedComparison compare_reruns(const ReplayTable& table, const ScoredRows& scored, const TraceReader& trace,
                                 const RunInfo& run, const TraceReader& rerun_trace,
                                 const std::vector<RerunRule>& rules, const std::string& reference,
                                 std::vector<double> costs, const BootstrapOptions& options) {
    const auto found = std::find_if(rules.begin(), rules.end(),
                                    [&](const RerunRule& rule) { return rule.name == reference; });
    if (found == rules.end()) {
        throw InputError(rerun_trace.path(),
                         "reruns of " + reference + ", which the other rules are set against", "none",
                         "make them with ponderscope referee --rerun");
    }
    const auto rule = [&](std::size_t i) {
        MatchedRule one;
        one.name = rules[i].name;
        for (const RunInfo& rerun : rules[i].runs) {
            ReplayResult nothing;
            nothing.steps = table.ran;
            nothing.nll = table.nll;
            const RerunDifference exact =
                rerun_difference(table, nothing, trace, run, rerun_trace, rerun, options.stop);
            one.settings.push_back(
                {rerun.policy, scored.of(exact.steps), scored.of(exact.nll), scored.of(exact.flops)});
        }
        return one;
    };
    const auto base = static_cast<std::size_t>(found - rules.begin());
    std::vector<double> reached;
    for (const ScoredSetting& one : rule(base).settings) {
        reached.push_back(std::accumulate(one.steps.begin(), one.steps.end(), 0.0) /
                          static_cast<double>(one.steps.size()));
    }
    std::sort(reached.begin(), reached.end());
    if (costs.empty()) {
        costs = reached;
        costs.erase(std::unique(costs.begin(), costs.end()), costs.end());
    }
    for (double& cost : costs) {
        cost = std::clamp(cost, reached.front(), reached.back());
    }
    return compare_matched(rules.size(), rule, base, costs, scored.layout, options);
}

} // namespace ponderscope
