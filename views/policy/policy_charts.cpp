// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/policy/policy_charts.h"

#include "core/base/error.h"
#include "core/policy/scored_rows.h"
#include "core/stats/front.h"
#include "views/common/format.h"

#include <QCoreApplication>

#include <algorithm>
#include <cmath>

namespace ponderscope {
namespace {

using figure::Chart;

QString tr(const char* text) {
    return QCoreApplication::translate("Policy", text);
}

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
    zero.ink = Chart::a;
    zero.name = tr("%1 (replay)").arg(QString::fromStdString(policy));
    Chart::Series points[2];
    const std::string names[2] = {"uniform", "geometric"};
    for (int i = 0; i < 2; ++i) {
        points[i].name = tr("%1 (replay)").arg(QString::fromStdString(names[i]));
        points[i].mark = Chart::Mark::point;
        points[i].ink = Chart::b + i;
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
                replay(table, PolicySpec::parse(name + ":rate=" + std::to_string(own.mean_steps)));
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
    chart.x.label =
        names.size() == 1
            ? tr("%1 of %2")
                  .arg(QString::fromStdString(kind_of(table, names.front()).parameters.front().key),
                       QString::fromStdString(names.front()))
            : tr("rank of the threshold among those tried");
    for (std::size_t n = 0; n < names.size(); ++n) {
        const PolicyKind& kind = kind_of(table, names[n]);
        Chart::Series line;
        line.name = tr("%1 (replay)").arg(QString::fromStdString(names[n]));
        line.ink = static_cast<int>(n);
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
