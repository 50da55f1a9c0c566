// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/matched_reruns.h"

#include "core/base/error.h"
#include "core/policy/policy_spec.h"
#include "core/policy/rerun_difference.h"
#include "core/stats/scan.h"
#include "core/trace/recorded_choices.h"

#include <algorithm>
#include <cmath>

namespace ponderscope {
namespace {

/// The kind whose reruns belong to a rule. For the best blind rule: fixed depths.
std::string kind_of_rule(const std::string& rule) {
    return rule == blind_rule ? "fixed" : rule;
}

} // namespace

std::vector<RerunRule> reruns_by_rule(const std::vector<RunInfo>& runs, const RunInfo& run,
                                      const std::vector<std::string>& names) {
    const RunInfo* full = nullptr;
    std::vector<RerunRule> rules;
    for (const std::string& name : names) {
        rules.push_back({name, {}});
    }
    for (auto one = runs.rbegin(); one != runs.rend(); ++one) { // newest first
        if (!is_rerun_of(*one, run, one->policy) || one->text_digest != run.text_digest) {
            continue;
        }
        if (one->policy == "full") {
            full = full == nullptr ? &*one : full;
            continue;
        }
        const PolicyKind* kind = PolicySpec::kind_of(one->policy);
        for (RerunRule& rule : rules) {
            const auto same = [&](const RunInfo& other) { return other.policy == one->policy; };
            if (kind != nullptr && kind_of_rule(rule.name) == kind->name &&
                std::none_of(rule.runs.begin(), rule.runs.end(), same)) {
                rule.runs.push_back(*one);
            }
        }
    }
    std::erase_if(rules, [](const RerunRule& rule) {
        const PolicyKind* kind = find_policy_kind(kind_of_rule(rule.name));
        return rule.runs.empty() || kind == nullptr || !kind->causal;
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
        throw InputError(ErrorId::run_unsuited, rerun_trace.path(),
                         "reruns of the reference rule " + reference, "none",
                         "make them with ponderscope referee --rerun");
    }
    const auto rule = [&](std::size_t i, const MatchedCosts& = {}) {
        MatchedRule one;
        one.name = rules[i].name;
        one.hull = one.name == blind_rule;
        for (const RunInfo& rerun : rules[i].runs) {
            ReplayResult nothing;
            nothing.steps = table.ran;
            nothing.nll = table.nll;
            one.settings.push_back(
                scored.of(rerun.policy,
                          rerun_difference(table, nothing, trace, run, rerun_trace, rerun, options.stop)));
        }
        return one;
    };
    const auto base = static_cast<std::size_t>(found - rules.begin());
    std::vector<double> reached;
    for (const ScoredSetting& one : rule(base).settings) {
        reached.push_back(scored.layout().mean(one.steps));
    }
    std::sort(reached.begin(), reached.end());
    if (costs.empty()) {
        costs = reached;
        costs.erase(std::unique(costs.begin(), costs.end()), costs.end());
    }
    for (double& cost : costs) {
        cost = std::clamp(cost, reached.front(), reached.back());
    }
    return compare_matched(rules.size(), rule, base, {costs, {}}, scored.layout(), options);
}

std::vector<RunInfo> plain_runs(const std::vector<RunInfo>& runs, const RunInfo& run) {
    std::vector<RunInfo> plain;
    for (const RunInfo& one : runs) {
        if (one.id != run.id && one.method == "vanilla" && one.max_steps == 0 && one.complete &&
            one.text_digest == run.text_digest && one.tokenizer_digest == run.tokenizer_digest &&
            one.tokens == run.tokens && one.scored_tokens == run.scored_tokens && changes_of(one).empty()) {
            plain.push_back(one);
        }
    }
    return plain;
}

MatchedRule plain_rule(const TraceReader& trace, const RunInfo& plain, const ScoredRows& scored) {
    std::vector<double> nll, flops;
    for_each_slice(trace, plain, {}, [&](const SequenceInfo& sequence, std::int64_t begin, std::int64_t end) {
        const TokenColumns read = trace.tokens(plain.id, sequence.number, begin, end);
        nll.insert(nll.end(), read.nll.begin(), read.nll.end());
        flops.insert(flops.end(), read.flops.begin(), read.flops.end());
    });
    MatchedRule rule;
    rule.name = plain.name;
    rule.plain = true;
    if (std::ranges::all_of(scored.tokens(), [&](std::size_t token) {
            return token < nll.size() && std::isfinite(nll[token]);
        })) {
        rule.settings.push_back({"run " + plain.name, {}, scored.of(nll), scored.of(flops)});
    }
    return rule;
}

} // namespace ponderscope
