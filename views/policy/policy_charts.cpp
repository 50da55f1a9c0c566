// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/policy/policy_charts.h"

#include "core/base/error.h"
#include "core/base/words.h"
#include "core/policy/matched.h"
#include "core/policy/scored_rows.h"
#include "core/stats/front.h"
#include "views/common/format.h"
#include "views/common/translated.h"

#include <algorithm>
#include <cmath>

namespace ponderscope {
namespace {

using figure::Chart;

const PolicyKind& kind_of(const ReplayTable& table, const std::string& name) {
    std::string known;
    for (const PolicyKind& kind : policy_kinds()) {
        if (!table.can(kind) || kind.parameters.empty()) {
            continue;
        }
        if (kind.name == name) {
            return kind;
        }
        known += (known.empty() ? "" : ", ") + kind.name;
    }
    throw InputError("\"policies\": expected policies with a threshold that " + table.run +
                     " has signals for (" + known + "); found \"" + name + "\".");
}

int rule_ink(const std::string& name) {
    const auto kinds = policy_kinds();
    const auto own =
        std::find_if(kinds.begin(), kinds.end(), [&](const PolicyKind& kind) { return kind.name == name; });
    return Chart::rule + static_cast<int>(own - kinds.begin());
}

/// A rule's cells as a line, and their bounds: bands where it is no oracle.
struct CellSeries {
    Chart::Series line, bounds;

    CellSeries(const MatchedRow& row, bool over_flops, const QString& name) {
        line.ink = rule_ink(row.name);
        line.dashed = !row.causal;
        bounds = line;
        line.name = name;
        for (const MatchedCell& cell : over_flops ? row.at_flops : row.at_steps) {
            if (std::isnan(cell.difference.value)) {
                continue;
            }
            const Estimate& within = row.causal ? cell.band : cell.difference;
            line.x.push_back(cell.cost);
            line.y.push_back(cell.difference.value);
            line.labels.push_back(
                tr("%1: %2 nats [%3, %4]")
                    .arg(QString::fromStdString(row.name), format_difference(cell.difference.value, 3),
                         format_difference(within.low, 3), format_difference(within.high, 3)));
            bounds.x.push_back(cell.cost);
            bounds.y.push_back(cell.difference.value);
            bounds.low.push_back(within.low);
            bounds.high.push_back(within.high);
        }
    }
};

} // namespace

std::string usual_policy(const ReplayTable& table) {
    for (const char* name : {"learned", "entropy"}) {
        for (const PolicyKind& kind : policy_kinds()) {
            if (kind.name == name && table.can(kind)) {
                return name;
            }
        }
    }
    return "fixed";
}

figure::Chart policy_comparison_chart(const ReplayTable& table, const std::string& policy,
                                      const BootstrapOptions& options) {
    constexpr int settings = 14;
    const PolicyKind& kind = kind_of(table, policy);
    const ScoredRows scored(table);
    const auto most = static_cast<double>(table.columns.max_steps());
    Chart chart;
    chart.title = tr("Random halting against %1").arg(QString::fromStdString(policy));
    chart.y.label = tr("NLL minus that of %1 (nats)").arg(QString::fromStdString(policy));
    chart.note = tr("Replay: what is halted changes no other token here.");
    Chart::Series zero;
    zero.ink = rule_ink(policy);
    zero.name = tr("%1 (replay)").arg(QString::fromStdString(policy));
    Chart::Series points[2];
    const std::string names[2] = {"uniform", "geometric"};
    for (int i = 0; i < 2; ++i) {
        points[i].name = tr("%1 (replay)").arg(QString::fromStdString(names[i]));
        points[i].mark = Chart::Mark::point;
        points[i].ink = rule_ink(names[i]);
    }
    const bool flops = table.flops.has_value();
    chart.x.label = flops ? tr("FLOPs per token") : tr("mean steps of both");
    chart.x.si = flops;
    double seen = -1;
    for (const double threshold : threshold_values(kind, table, settings)) {
        if (options.stop.stop_requested()) {
            throw Cancelled();
        }
        const PolicySpec spec = policy_at(kind, threshold);
        const ReplayResult own = replay(table, spec);
        if (own.mean_steps <= 0 || own.mean_steps >= most || own.mean_steps == seen) {
            continue;
        }
        seen = own.mean_steps;
        std::vector<std::vector<double>> others;
        std::vector<double> steps;
        for (const std::string& name : names) {
            const ReplayResult other =
                replay(table, PolicySpec::parse(name + ":rate=" + rounded(own.mean_steps, 7)));
            others.push_back(scored.of(other.nll));
            steps.push_back(other.mean_steps);
        }
        const std::vector<Estimate> gaps =
            paired_differences(scored.of(own.nll), others, scored.layout, options).each;
        const double x = flops ? own.mean_flops : own.mean_steps;
        zero.x.push_back(x);
        zero.y.push_back(0);
        zero.labels.push_back(tr("replay of %1\nsteps %2 · NLL %3")
                                  .arg(QString::fromStdString(spec.text()), format_nats(own.mean_steps),
                                       format_nats(own.mean_nll, 3)));
        for (std::size_t i = 0; i < gaps.size(); ++i) {
            points[i].x.push_back(x);
            points[i].y.push_back(gaps[i].value);
            points[i].low.push_back(gaps[i].low);
            points[i].high.push_back(gaps[i].high);
            points[i].labels.push_back(tr("replay of %1 at %2 steps\n%3 nats [%4, %5]")
                                           .arg(QString::fromStdString(names[i]), format_nats(steps[i]),
                                                format_difference(gaps[i].value, 3),
                                                format_difference(gaps[i].low, 3),
                                                format_difference(gaps[i].high, 3)));
        }
    }
    if (zero.x.empty()) {
        throw InputError(table.run + ": no threshold of " + policy +
                         " stops some tokens and not others; choose another policy.");
    }
    chart.series = {std::move(zero), std::move(points[0]), std::move(points[1])};
    return chart;
}

figure::Chart matched_rules_chart(const ReplayTable& table, const std::vector<std::string>& policies,
                                  const std::string& against, bool over_flops,
                                  const BootstrapOptions& options,
                                  const std::optional<MatchedComparison>& reruns) {
    constexpr int costs = 12;
    constexpr int settings = 33;
    if (over_flops && !table.flops) {
        throw InputError("\"quantity\": the trace of " + table.run +
                         " does not say what steps cost; record it again, or choose \"steps\".");
    }
    const std::vector<std::string> known = matched_rules(table);
    std::vector<std::string> rules = policies.empty() ? known : policies;
    for (const std::string& rule : rules) {
        if (std::find(known.begin(), known.end(), rule) == known.end()) {
            (void)kind_of(table, rule); // says what there is
        }
    }
    if (std::find(rules.begin(), rules.end(), against) == rules.end()) {
        rules.insert(rules.begin(), against);
    }
    const ScoredRows scored(table);
    const auto base =
        static_cast<std::size_t>(std::find(rules.begin(), rules.end(), against) - rules.begin());
    const MatchedComparison found = compare_matched(
        rules.size(), [&](std::size_t i) { return replayed_rule(table, scored, rules[i], settings); }, base,
        even_costs(table, scored, costs), scored.layout, options);
    Chart chart;
    chart.title = tr("Rules at equal cost");
    chart.x.label = over_flops ? tr("FLOPs per token") : tr("mean steps");
    chart.x.si = over_flops;
    chart.y.label = tr("NLL minus that of %1 (nats)").arg(QString::fromStdString(found.reference));
    chart.note =
        tr("Replay: what is halted changes no other token here. Bands hold for all rules and costs together; "
           "oracles know the answer.");
    for (const MatchedRow& row : found.rows) {
        // One entry a rule: what its line and its points are is said once, below.
        const CellSeries cells(row, over_flops,
                               row.causal ? QString::fromStdString(row.name)
                                          : tr("%1 (a bound)").arg(QString::fromStdString(row.name)));
        if (!cells.line.x.empty()) {
            if (row.causal && row.name != found.reference) {
                chart.series.push_back(cells.bounds);
                chart.series.back().mark = Chart::Mark::band;
                chart.series.back().faint = true;
            }
            chart.series.push_back(cells.line);
        }
    }
    if (!reruns) {
        return chart;
    }
    chart.note =
        tr("Lines: replay, in which what is halted changes no other token. Points: the model ran so. "
           "Bands hold for all rules and costs of a kind together; oracles know the answer.");
    for (const MatchedRow& row : reruns->rows) {
        if (row.name == reruns->reference) {
            continue; // zero
        }
        CellSeries cells(row, over_flops, tr("%1 (rerun)").arg(QString::fromStdString(row.name)));
        if (!cells.line.x.empty()) {
            cells.bounds.name = cells.line.name;
            cells.bounds.listed = false; // the colour of its line
            cells.bounds.mark = Chart::Mark::point;
            cells.bounds.labels = cells.line.labels;
            chart.series.push_back(std::move(cells.bounds));
        }
    }
    return chart;
}

figure::Chart sweep_chart(const ReplayTable& table, const std::vector<std::string>& policies,
                          SweepQuantity quantity, const std::stop_token& stop) {
    constexpr int settings = 41;
    if (quantity == SweepQuantity::flops && !table.flops) {
        throw InputError("\"quantity\": the trace of " + table.run +
                         " does not say what steps cost; record it again, or choose \"steps\".");
    }
    const std::vector<std::string> names = policies.empty() ? std::vector{usual_policy(table)} : policies;
    Chart chart;
    chart.title = tr("Parameter sweep");
    chart.note = tr("Replay: what is halted changes no other token here.");
    chart.y.label = quantity == SweepQuantity::nll     ? tr("NLL (nats)")
                    : quantity == SweepQuantity::steps ? tr("mean steps")
                                                       : tr("FLOPs per token");
    chart.y.si = quantity == SweepQuantity::flops;
    if (names.size() == 1) {
        const PolicyKind& kind = kind_of(table, names.front());
        chart.x.label = QString::fromStdString(kind.parameters.front().key);
        chart.note.prepend(tr("A token stops when %1. ").arg(QString::fromStdString(kind.rule)));
    } else {
        chart.x.label = tr("rank of the threshold among those tried");
    }
    for (std::size_t n = 0; n < names.size(); ++n) {
        const PolicyKind& kind = kind_of(table, names[n]);
        Chart::Series line;
        line.name = tr("%1 (replay)").arg(QString::fromStdString(names[n]));
        line.ink = rule_ink(names[n]);
        const std::vector<double> values = threshold_values(kind, table, settings);
        for (std::size_t i = 0; i < values.size(); ++i) {
            if (stop.stop_requested()) {
                throw Cancelled();
            }
            const PolicySpec spec = policy_at(kind, values[i]);
            const ReplayResult result = replay(table, spec);
            line.x.push_back(names.size() == 1 ? values[i]
                             : values.size() > 1
                                 ? static_cast<double>(i) / static_cast<double>(values.size() - 1)
                                 : 0.5);
            line.y.push_back(quantity == SweepQuantity::nll     ? result.mean_nll
                             : quantity == SweepQuantity::steps ? result.mean_steps
                                                                : result.mean_flops);
            line.labels.push_back(tr("replay of %1\nsteps %2 · NLL %3")
                                      .arg(QString::fromStdString(spec.text()),
                                           format_nats(result.mean_steps), format_nats(result.mean_nll, 3)));
        }
        chart.series.push_back(std::move(line));
    }
    return chart;
}

} // namespace ponderscope
