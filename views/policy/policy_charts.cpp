// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/policy/policy_charts.h"

#include "core/base/error.h"
#include "core/base/words.h"
#include "core/policy/policy_rows.h"
#include "core/policy/scored_rows.h"
#include "core/policy/thresholds.h"
#include "core/stats/front.h"
#include "views/common/format.h"

#include <algorithm>
#include <cmath>

using namespace Qt::StringLiterals;

namespace ponderscope {
namespace {

const PolicyKind& kind_of(const ReplayTable& table, const std::string& name) {
    const PolicyKind* found = find_policy_kind(name);
    if (found != nullptr && table.can(*found) && !found->parameters.empty()) {
        return *found;
    }
    std::string known;
    for (const PolicyKind* kind : table.kinds()) {
        known += kind->parameters.empty() ? "" : (known.empty() ? "" : ", ") + kind->name;
    }
    throw InputError(ErrorId::json_value, "\"policies\": expected a policy with a threshold that " +
                                              table.run + " can replay (" + known + "), found \"" + name +
                                              "\".");
}

void check_costs(const ReplayTable& table, bool over_flops) {
    if (over_flops && !table.flops) {
        throw InputError(ErrorId::run_unsuited,
                         "\"quantity\": " + table.run +
                             " has no FLOPs by step; record the run again, or choose \"steps\".");
    }
}

int rule_ink(const ReplayTable& table, const std::string& name) {
    const PolicyKind* kind = find_policy_kind(name);
    if (name == blind_rule || (kind != nullptr && !kind->causal)) {
        return Chart::text; // the best blind rule, or the bound (dashed)
    }
    return Chart::rule + static_cast<int>(kind != nullptr ? table.number_of(*kind) : policy_kinds().size());
}

/// A rule's cells as a line, its band, and dots where the rule is better than the best blind rule.
struct CellSeries {
    Chart::Series line, bounds, better;

    CellSeries(const ReplayTable& table, const MatchedRow& row, bool over_flops, const QString& name) {
        line = Chart::Series::of(Chart::Mark::line, rule_ink(table, row.name), name);
        line.dashed = !row.causal;
        bounds = line;
        bounds.listed = false; // the colour of its line
        bounds.mark = Chart::Mark::band;
        bounds.faint = true;
        better = line;
        better.listed = false;
        better.mark = Chart::Mark::point;
        for (const MatchedCell& cell : over_flops ? row.at_flops : row.at_steps) {
            if (std::isnan(cell.difference.value)) {
                continue;
            }
            const Estimate& within = row.causal ? cell.band : cell.difference;
            const QString label = u"%1: %2 nats [%3, %4]"_s.arg(
                QString::fromStdString(row.name), format_difference(cell.difference.value, 3),
                format_difference(within.low, 3), format_difference(within.high, 3));
            line.add(cell.cost, cell.difference.value, label);
            bounds.add(cell.cost, cell.difference.value, within.low, within.high);
            if (cell.better) {
                better.add(cell.cost, cell.difference.value, label);
            }
        }
    }
};

/// Costs spread evenly over the range that a rule reaches, from no token stopping to all tokens stopping.
std::vector<double> costs_within(const MatchedRule& rule, const RowLayout& rows, double most, int parts) {
    double low = most;
    double high = 0;
    for (const ScoredSetting& setting : rule.settings) {
        const double steps = rows.mean(setting.steps);
        low = std::min(low, steps);
        high = std::max(high, steps);
    }
    std::vector<double> costs;
    for (int i = 1; i < parts && high > low; ++i) {
        costs.push_back(low + (high - low) * i / parts);
    }
    return costs;
}

} // namespace

std::string usual_policy(const ReplayTable& table) {
    for (const char* name : {"learned", "entropy"}) {
        if (table.can(*find_policy_kind(name))) {
            return name;
        }
    }
    return "fixed";
}

Chart policy_comparison_chart(const ReplayTable& table, const std::string& policy,
                              const BootstrapOptions& options) {
    (void)kind_of(table, policy); // InputError: names the possible policies
    Chart chart = matched_rules_chart(
        table, {{blind_rule, "uniform", "geometric"}, policy, table.flops.has_value(), {}, {}}, options);
    chart.title = u"Blind and random halting against %1"_s.arg(QString::fromStdString(policy));
    return chart;
}

Chart matched_rules_chart(const ReplayTable& table, const MatchedLook& look,
                          const BootstrapOptions& options) {
    constexpr int parts = 12;
    constexpr int settings = 33;
    check_costs(table, look.over_flops);
    const std::vector<std::string> known = matched_rules(table);
    std::vector<std::string> rules = look.policies.empty() ? known : look.policies;
    for (std::string& rule : rules) {
        if (std::ranges::find(known, rule) == known.end()) {
            rule = kind_of(table, rule).name; // InputError: names the possible policies
        }
    }
    for (const std::string& always : {std::string(blind_rule), look.against}) {
        if (std::ranges::find(rules, always) == rules.end()) {
            rules.insert(rules.begin(), always);
        }
    }
    const ScoredRows scored(table);
    const RowLayout& layout = scored.layout();
    const BootstrapOptions settled = with_block_of_run(table, scored, options);
    const double most =
        scored.tokens().empty() ? 0 : layout.mean(scored.of(table.ran)); // the recorded mean steps
    MatchedCosts costs;
    if (!scored.tokens().empty()) {
        costs.steps = costs_within(replayed_rule(table, scored, look.against, settings), layout, most, parts);
    }
    if (costs.steps.empty()) {
        throw InputError(ErrorId::run_unsuited,
                         table.run + ": no threshold of " + look.against +
                             " stops some tokens and not others; choose another policy.");
    }
    for (const MatchedRule& one : look.plain) {
        costs.flops.push_back(layout.mean(one.settings.front().flops));
    }
    const auto base = static_cast<std::size_t>(std::ranges::find(rules, look.against) - rules.begin());
    const MatchedComparison found = compare_matched(
        rules.size() + look.plain.size(),
        [&](std::size_t i, const MatchedCosts& at) {
            return i < rules.size() ? replayed_rule(table, scored, rules[i], settings, at)
                                    : look.plain[i - rules.size()];
        },
        base, costs, layout, settled);
    Chart chart;
    chart.title = u"Rules at equal cost"_s;
    chart.x.label = look.over_flops ? u"FLOPs per token"_s : u"mean steps"_s;
    chart.x.si = look.over_flops;
    chart.y.label = u"NLL minus NLL of %1 (nats)"_s.arg(QString::fromStdString(found.reference));
    QStringList note{look.reruns ? u"Lines: replay, in which tokens do not affect each other. Points with "
                                   "bars: rerun of the model."_s
                                 : u"In a replay, tokens do not affect each other, so a rerun can differ."_s,
                     u"Bands: 95 % simultaneous intervals over all rules and costs."_s};
    bool bound = false;
    bool marked = false;
    int plain = 0;
    for (const MatchedRow& row : found.rows) {
        const QString name = QString::fromStdString(row.plain ? row.name : title_of(row.name));
        // Each rule has one legend entry; the meaning of lines and points is explained once, below.
        CellSeries cells(table, row, look.over_flops,
                         row.plain    ? u"%1 (plain model)"_s.arg(name)
                         : row.causal ? name
                                      : u"%1 (a bound)"_s.arg(name));
        if (cells.line.x.empty()) {
            continue;
        }
        if (row.plain) {
            cells.bounds.mark = Chart::Mark::point;
            cells.bounds.faint = false;
            cells.bounds.listed = true;
            cells.bounds.ink = Chart::other + plain++;
            cells.bounds.labels = cells.line.labels;
            chart.series.push_back(std::move(cells.bounds));
            continue;
        }
        if (row.causal && row.name != found.reference) {
            chart.series.push_back(cells.bounds);
        }
        bound = bound || !row.causal;
        chart.series.push_back(cells.line);
        if (!cells.better.x.empty()) {
            marked = true;
            chart.series.push_back(cells.better);
        }
    }
    if (marked) {
        note << u"Dots: the rule thinks better. Its whole band of NLL minus the NLL of the best blind "
                "rule is below 0."_s;
    }
    if (bound) {
        note << u"No rule can be below the oracle, which knows the next token."_s;
    }
    for (const MatchedRow& row : look.reruns ? look.reruns->rows : std::vector<MatchedRow>()) {
        if (row.name == look.reruns->reference) {
            continue; // the reference is zero everywhere
        }
        CellSeries cells(table, row, look.over_flops,
                         u"%1 (rerun)"_s.arg(QString::fromStdString(title_of(row.name))));
        if (!cells.line.x.empty()) {
            cells.bounds.faint = false;
            cells.bounds.mark = Chart::Mark::point;
            cells.bounds.labels = cells.line.labels;
            chart.series.push_back(std::move(cells.bounds));
        }
    }
    chart.note = note.join(u' ');
    return chart;
}

Chart sweep_chart(const ReplayTable& table, const std::vector<std::string>& policies, Quantity quantity,
                  const std::stop_token& stop) {
    constexpr int settings = 41;
    check_costs(table, quantity == Quantity::flops);
    const std::vector<std::string> names = policies.empty() ? std::vector{usual_policy(table)} : policies;
    Chart chart;
    chart.title = u"Parameter sweep"_s;
    chart.note = u"In a replay, tokens do not affect each other, so a rerun can differ."_s;
    chart.y.label = quantity == Quantity::nll     ? u"NLL (nats)"_s
                    : quantity == Quantity::steps ? u"mean steps"_s
                                                  : u"FLOPs per token"_s;
    chart.y.si = quantity == Quantity::flops;
    if (names.size() == 1) {
        const PolicyKind& kind = kind_of(table, names.front());
        chart.x.label = QString::fromStdString(kind.parameters.front().key);
        chart.note.prepend(u"A token stops when %1. "_s.arg(QString::fromStdString(kind.rule)));
    } else {
        chart.x.label = u"threshold rank (0–1)"_s;
    }
    for (std::size_t n = 0; n < names.size(); ++n) {
        const PolicyKind& kind = kind_of(table, names[n]);
        auto line = Chart::Series::of(Chart::Mark::line, rule_ink(table, names[n]),
                                      u"%1 (replay)"_s.arg(QString::fromStdString(title_of(names[n]))));
        const std::vector<double> values = threshold_values(kind, table, settings);
        for (std::size_t i = 0; i < values.size(); ++i) {
            throw_if_stopped(stop);
            const PolicySpec spec = policy_at(kind, values[i]);
            const ReplayResult result = replay(table, spec);
            line.add(names.size() == 1   ? values[i]
                     : values.size() > 1 ? static_cast<double>(i) / static_cast<double>(values.size() - 1)
                                         : 0.5,
                     quantity == Quantity::nll     ? result.mean_nll
                     : quantity == Quantity::steps ? result.mean_steps
                                                   : result.mean_flops,
                     u"replay of %1\nsteps %2 · NLL %3"_s.arg(QString::fromStdString(spec.text()),
                                                              format_nats(result.mean_steps),
                                                              format_nats(result.mean_nll, 3)));
        }
        chart.series.push_back(std::move(line));
    }
    return chart;
}

} // namespace ponderscope
