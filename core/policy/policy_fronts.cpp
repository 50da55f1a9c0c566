// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/policy_fronts.h"

#include "core/base/error.h"
#include "core/base/words.h"
#include "core/policy/oracle.h"
#include "core/policy/scored_rows.h"
#include "core/policy/thresholds.h"
#include "core/stats/front.h"

#include <algorithm>

namespace ponderscope {
namespace {

PolicyPoint replayed_point(const std::string& spec, const ReplayResult& result) {
    return {spec, result.mean_steps, result.mean_nll, result.mean_flops};
}

void add_oracle_fronts(std::vector<PolicyFront>& fronts, const ReplayTable& table, std::size_t number,
                       int points) {
    ReplayResult result;
    for (const CostAxis axis : {CostAxis::steps, CostAxis::flops}) {
        if (axis == CostAxis::flops && !table.flops) {
            continue;
        }
        const Oracle oracle(table, axis);
        PolicyFront front{"oracle", number, false, {}, axis};
        for (const double price : oracle_prices(oracle.turns(), points, {})) {
            oracle.replay(price, result);
            front.points.push_back(
                replayed_point(axis == CostAxis::steps ? "oracle:lambda=" + shortest(price) : "", result));
        }
        fronts.push_back(std::move(front));
    }
}

} // namespace

std::vector<PolicyFront> policy_fronts(const ReplayTable& table, const std::vector<std::string>& only,
                                       int thresholds, const std::stop_token& stop) {
    std::vector<PolicyFront> fronts;
    ReplayResult result;
    const auto add = [&](const std::string& name, std::size_t own, const PolicyKind& kind,
                         const std::vector<double>& values) {
        PolicyFront front{name, own, kind.causal, {}, {}};
        for (const double value : values) {
            throw_if_stopped(stop);
            const PolicySpec spec = policy_at(kind, value);
            replay(table, spec, result);
            front.points.push_back(replayed_point(spec.text(), result));
        }
        std::stable_sort(front.points.begin(), front.points.end(),
                         [](const PolicyPoint& a, const PolicyPoint& b) { return a.steps < b.steps; });
        if (!front.points.empty()) {
            fronts.push_back(std::move(front));
        }
    };
    const PolicyKind& fixed = *PolicySpec::parse("fixed:n=0").kind;
    add(blind_rule, policy_kinds().size(), fixed, threshold_values(fixed, table, thresholds));
    std::vector<const PolicyKind*> kinds;
    if (only.empty()) {
        kinds = table.kinds();
        std::erase_if(kinds,
                      [](const PolicyKind* kind) { return kind->name == "full" || kind->is_signal_rule(); });
    }
    for (const std::string& name : only) {
        kinds.push_back(find_policy_kind(name));
    }
    for (const PolicyKind* wanted : kinds) {
        if (wanted == nullptr || !table.can(*wanted)) {
            continue;
        }
        const PolicyKind& kind = *wanted;
        const std::size_t own = table.number_of(kind);
        if (kind.name == "oracle") {
            add_oracle_fronts(fronts, table, own, thresholds);
        } else {
            add(kind.name, own, kind,
                kind.parameters.empty() ? std::vector{0.0} : threshold_values(kind, table, thresholds));
        }
    }
    return fronts;
}

void add_bands(std::vector<PolicyFront>& fronts, const ReplayTable& table, const BootstrapOptions& options) {
    const ScoredRows scored(table);
    if (scored.tokens().empty() || scored.tokens().size() > most_banded) {
        return;
    }
    const BootstrapOptions settled = with_block_of_run(table, scored, options);
    const std::vector<double> full = scored.of(replay(table, PolicySpec::parse("full")).nll);
    const std::vector<ScoredSetting> depths = replayed_rule(table, scored, blind_rule, 0).settings;
    ReplayResult result;
    for (PolicyFront& front : fronts) {
        if (!front.causal || front.policy == blind_rule) {
            continue;
        }
        std::vector<std::vector<double>> nll;
        std::vector<ScoredSetting> settings;
        for (const PolicyPoint& point : front.points) {
            throw_if_stopped(options.stop);
            replay(table, PolicySpec::parse(point.spec), result);
            nll.push_back(scored.of(result.nll));
            settings.push_back(scored.of(point.spec, result));
        }
        const PairedDifferences found = paired_differences(full, nll, scored.layout(), settled);
        const std::vector<Estimate> apart = against_blind(settings, depths, scored.layout(), settled);
        for (std::size_t i = 0; i < front.points.size(); ++i) {
            front.points[i].difference = found.each[i];
            front.points[i].better = apart[i].high < 0;
        }
    }
}

} // namespace ponderscope
