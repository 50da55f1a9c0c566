// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/policy/policy_fronts.h"

#include "core/base/error.h"
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

} // namespace

std::vector<PolicyFront> policy_fronts(const ReplayTable& table, const std::vector<std::string>& only,
                                       int thresholds, const std::stop_token& stop) {
    std::vector<PolicyFront> fronts;
    ReplayResult result;
    std::size_t number = 0;
    for (const PolicyKind& kind : policy_kinds()) {
        const std::size_t own = number++;
        const bool wanted =
            only.empty() ? kind.name != "full" : std::find(only.begin(), only.end(), kind.name) != only.end();
        if (!wanted || !table.can(kind)) {
            continue;
        }
        PolicyFront front{kind.name, own, kind.causal, {}};
        std::vector<double> values = threshold_values(kind, table, thresholds);
        if (kind.parameters.empty()) {
            values = {0};
        }
        for (const double value : values) {
            if (stop.stop_requested()) {
                throw Cancelled();
            }
            const PolicySpec spec = policy_at(kind, value);
            replay(table, spec, result);
            front.points.push_back({spec.text(), result.mean_steps, result.mean_nll, result.mean_flops});
        }
        std::stable_sort(front.points.begin(), front.points.end(),
                         [](const PolicyPoint& a, const PolicyPoint& b) { return a.steps < b.steps; });
        if (!front.points.empty()) {
            fronts.push_back(std::move(front));
        }
    }
    return fronts;
}

figure::Chart front_chart(const std::vector<PolicyFront>& fronts, const std::vector<RunPoint>& runs,
                          const PolicyPoint* current, FrontCost cost) {
    Chart chart;
    const bool flops =
        cost == FrontCost::compute && std::all_of(fronts.begin(), fronts.end(), [](const PolicyFront& front) {
            return std::all_of(front.points.begin(), front.points.end(),
                               [](const PolicyPoint& point) { return std::isfinite(point.flops); });
        });
    chart.title = tr("Perplexity against compute");
    const bool time = cost == FrontCost::time;
    chart.x.label = time    ? tr("seconds per token, as recorded")
                    : flops ? tr("FLOPs per token")
                            : tr("mean steps");
    chart.x.si = flops;
    chart.y.label = tr("perplexity");
    chart.note = time ? tr("Runs as they were recorded, read-outs and writing included: compare those of one "
                           "machine and batch. A replay takes no time that could be measured.")
                      : tr("Lines: replay. What is halted changes no other token here; a rerun can differ.");
    const auto place = [flops](const auto& point) { return flops ? point.flops : point.steps; };
    const auto label = [](const QString& name, double steps, double nll, double flops_a_token) {
        QString text = tr("%1\nsteps %2 · NLL %3 · perplexity %4")
                           .arg(name, format_nats(steps), format_nats(nll, 3), format_nats(std::exp(nll)));
        return std::isfinite(flops_a_token) ? text + tr(" · FLOPs %1").arg(format_si(flops_a_token)) : text;
    };
    for (const PolicyFront& front : fronts) {
        if (time) {
            break;
        }
        Chart::Series series;
        series.name = QString::fromStdString(front.policy) + (front.causal ? QString() : tr(" (a bound)"));
        series.ink = Chart::rule + static_cast<int>(front.number);
        series.dashed = !front.causal;
        series.mark = front.points.size() > 1 ? Chart::Mark::line : Chart::Mark::point;
        for (const PolicyPoint& point : front.points) {
            series.x.push_back(place(point));
            series.y.push_back(std::exp(point.nll));
            series.labels.push_back(label(tr("replay of %1").arg(QString::fromStdString(point.spec)),
                                          point.steps, point.nll, point.flops));
        }
        chart.series.push_back(std::move(series));
    }
    for (const RunPoint& run : runs) {
        Chart::Series series;
        series.name = run.name;
        series.ink = run.ink;
        series.mark = Chart::Mark::point;
        series.x = {time ? run.seconds : place(run)};
        series.y = {std::exp(run.nll)};
        series.labels = {
            label(tr("run %1, as it was recorded").arg(run.name), run.steps, run.nll, run.flops)};
        if (std::isfinite(run.seconds)) {
            series.labels.front() += tr(" · %1 ms a token").arg(format_nats(run.seconds * 1e3, 3));
        }
        chart.series.push_back(std::move(series));
    }
    if (current != nullptr) {
        Chart::Series series;
        series.ink = Chart::text;
        series.mark = Chart::Mark::point;
        series.strong = true;
        series.x = {place(*current)};
        series.y = {std::exp(current->nll)};
        series.labels = {label(tr("replay of %1").arg(QString::fromStdString(current->spec)), current->steps,
                               current->nll, current->flops)};
        chart.series.push_back(std::move(series));
    }
    return chart;
}

figure::Chart steps_chart(const std::vector<std::int64_t>& histogram, const QString& name) {
    Chart chart;
    chart.title = tr("Steps");
    chart.x.label = tr("last step");
    chart.x.whole = true;
    chart.y.label = tr("share of tokens");
    chart.y.from_zero = true;
    double total = 0;
    for (const std::int64_t count : histogram) {
        total += static_cast<double>(count);
    }
    Chart::Series series;
    series.name = name;
    series.mark = Chart::Mark::bar;
    for (std::size_t k = 0; k < histogram.size(); ++k) {
        series.x.push_back(static_cast<double>(k));
        series.y.push_back(total > 0 ? static_cast<double>(histogram[k]) / total : std::nan(""));
        series.labels.push_back(
            tr("step %1: %2 tokens, %3 %")
                .arg(k)
                .arg(format_count(histogram[k]))
                .arg(total > 0 ? 100 * static_cast<double>(histogram[k]) / total : 0, 0, 'f', 1));
    }
    chart.series.push_back(std::move(series));
    return chart;
}

} // namespace ponderscope
