// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/policy/policy_fronts.h"

#include "core/base/error.h"
#include "core/base/words.h"
#include "core/policy/scored_rows.h"
#include "core/stats/front.h"
#include "views/common/format.h"
#include "views/common/translated.h"

#include <algorithm>
#include <cmath>

namespace ponderscope {
namespace {

using figure::Chart;

/// The best blind rule and the bound are the text's colour, solid and dashed.
int ink_of_front(const PolicyFront& front) {
    return front.policy == blind_rule || !front.causal ? static_cast<int>(Chart::text)
                                                       : Chart::rule + static_cast<int>(front.number);
}

PolicyPoint point_of(const std::string& spec, const ReplayResult& result) {
    return {spec, result.mean_steps, result.mean_nll, result.mean_flops};
}

void add_oracle(std::vector<PolicyFront>& fronts, const ReplayTable& table, std::size_t number, int points) {
    const std::size_t stride =
        table.tokens() * static_cast<std::size_t>(table.columns.max_steps() + 1) / most_oracle_turns + 1;
    ReplayResult result;
    for (const CostAxis axis : {CostAxis::steps, CostAxis::flops}) {
        if (axis == CostAxis::flops && !table.flops) {
            continue;
        }
        const Oracle oracle(table, axis);
        PolicyFront front{"oracle", number, false, {}, axis};
        for (const double price : oracle_prices(oracle.turns(0, stride), points, {})) {
            oracle.replay(price, result);
            front.points.push_back(
                point_of(axis == CostAxis::steps ? "oracle:lambda=" + shortest(price) : "", result));
        }
        fronts.push_back(std::move(front));
    }
}

/// The best blind rule through NLL, which is no straight line in perplexity.
Chart::Series blind_line(const PolicyFront& front, bool flops) {
    Chart::Series series;
    series.name = QString::fromLatin1(blind_rule);
    series.ink = Chart::text;
    std::vector<FrontPoint> depths;
    for (const PolicyPoint& point : front.points) {
        depths.push_back({flops ? point.flops : point.steps, point.nll});
    }
    const std::vector<FrontPoint> hull = convex_front(depths);
    constexpr int places = 48;
    const double low = hull.front().cost;
    const double high = std::max_element(depths.begin(), depths.end(), [](const auto& a, const auto& b) {
                            return a.cost < b.cost;
                        })->cost;
    for (int i = 0; i <= places; ++i) {
        const double cost = low + (high - low) * i / places;
        const double nll = loss_at(hull, cost);
        series.x.push_back(cost);
        series.y.push_back(std::exp(nll));
        series.labels.push_back(
            tr("replay of the best blind rule: one depth for all tokens, or one of two\nNLL %1 · "
               "perplexity %2")
                .arg(format_nats(nll, 3), format_nats(std::exp(nll))));
    }
    return series;
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
            if (stop.stop_requested()) {
                throw Cancelled();
            }
            const PolicySpec spec = policy_at(kind, value);
            replay(table, spec, result);
            front.points.push_back(point_of(spec.text(), result));
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
            add_oracle(fronts, table, own, thresholds);
        } else {
            add(kind.name, own, kind,
                kind.parameters.empty() ? std::vector{0.0} : threshold_values(kind, table, thresholds));
        }
    }
    return fronts;
}

void add_bands(std::vector<PolicyFront>& fronts, const ReplayTable& table, const BootstrapOptions& options) {
    const ScoredRows scored(table);
    if (scored.rows.empty() || scored.rows.size() > most_banded) {
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
            if (options.stop.stop_requested()) {
                throw Cancelled();
            }
            replay(table, PolicySpec::parse(point.spec), result);
            nll.push_back(scored.of(result.nll));
            settings.push_back({point.spec, scored.of(result.steps), nll.back(),
                                result.flops.empty() ? std::vector<double>() : scored.of(result.flops)});
        }
        const PairedDifferences found = paired_differences(full, nll, scored.layout, settled);
        const std::vector<Estimate> apart = against_blind(settings, depths, scored.layout, settled);
        for (std::size_t i = 0; i < front.points.size(); ++i) {
            front.points[i].difference = found.each[i];
            front.points[i].better = apart[i].high < 0;
        }
    }
}

std::string policy_at_mark(const std::vector<PolicyFront>& fronts, const std::vector<RunPoint>& runs,
                           const figure::Chart& chart, int series, int index) {
    if (series < 0 || index < 0 || static_cast<std::size_t>(series) >= chart.series.size()) {
        return {};
    }
    const Chart::Series& one = chart.series[static_cast<std::size_t>(series)];
    const double x = one.x[static_cast<std::size_t>(index)];
    const double y = one.y[static_cast<std::size_t>(index)];
    for (const PolicyFront& front : fronts) {
        if (front.policy == blind_rule || one.ink != ink_of_front(front) || one.dashed == front.causal) {
            continue;
        }
        for (const PolicyPoint& point : front.points) {
            if ((point.flops == x || point.steps == x) && std::exp(point.nll) == y && !point.spec.empty()) {
                return point.spec;
            }
        }
    }
    const auto run =
        std::find_if(runs.begin(), runs.end(), [&](const RunPoint& point) { return point.name == one.name; });
    return run == runs.end() ? std::string() : run->policy;
}

figure::Chart front_chart(const std::vector<PolicyFront>& fronts, const std::vector<RunPoint>& runs,
                          const PolicyPoint* current, const FrontLook& look) {
    Chart chart;
    const FrontCost cost = look.cost;
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
    chart.x.log = look.log_cost;
    chart.y.log = look.log_perplexity;
    const auto limit = [](Chart::Axis& axis, const std::optional<std::array<double, 2>>& ends) {
        if (ends && !(axis.log && (*ends)[0] <= 0)) {
            axis.low = (*ends)[0];
            axis.high = (*ends)[1];
        }
    };
    limit(chart.x, look.costs);
    limit(chart.y, look.perplexities);
    chart.note = time ? tr("Runs as they were recorded, read-outs and writing included: compare those of one "
                           "machine and batch. A replay takes no time that could be measured.")
                      : tr("Lines: replay. Tokens do not affect each other in a replay; a rerun can differ.");
    const auto place = [flops](const auto& point) { return flops ? point.flops : point.steps; };
    const auto label = [](const QString& name, double steps, double nll, double flops_a_token) {
        QString text = tr("%1\nsteps %2 · NLL %3 · perplexity %4")
                           .arg(name, format_nats(steps), format_nats(nll, 3), format_nats(std::exp(nll)));
        return std::isfinite(flops_a_token) ? text + tr(" · FLOPs %1").arg(format_si(flops_a_token)) : text;
    };
    bool banded = false;
    bool marked = false;
    for (const PolicyFront& front : fronts) {
        if (time) {
            break;
        }
        if (front.axis && (*front.axis == CostAxis::flops) != flops) {
            continue;
        }
        if (front.policy == blind_rule) {
            chart.series.push_back(blind_line(front, flops));
            continue;
        }
        Chart::Series series;
        series.name = QString::fromStdString(front.policy) + (front.causal ? QString() : tr(" (a bound)"));
        series.ink = ink_of_front(front);
        series.dashed = !front.causal;
        series.mark = front.points.size() > 1 ? Chart::Mark::line : Chart::Mark::point;
        for (const PolicyPoint& point : front.points) {
            series.x.push_back(place(point));
            series.y.push_back(std::exp(point.nll));
            series.labels.push_back(label(point.spec.empty()
                                              ? tr("the least NLL at these FLOPs")
                                              : tr("replay of %1").arg(QString::fromStdString(point.spec)),
                                          point.steps, point.nll, point.flops));
        }
        Chart::Series marks;
        for (const PolicyPoint& point : front.points) {
            if (look.bands && point.better && front.points.size() > 1) {
                marks.x.push_back(place(point));
                marks.y.push_back(std::exp(point.nll));
            }
        }
        Chart::Series band;
        for (const PolicyPoint& point : front.points) {
            if (look.bands && std::isfinite(point.difference.low) && front.points.size() > 1) {
                const double full = point.nll - point.difference.value;
                band.x.push_back(place(point));
                band.y.push_back(std::exp(point.nll));
                band.low.push_back(std::exp(full + point.difference.low));
                band.high.push_back(std::exp(full + point.difference.high));
            }
        }
        if (!band.x.empty()) {
            band.mark = Chart::Mark::band;
            band.ink = series.ink;
            band.faint = true;
            band.name = series.name;
            band.listed = false;
            chart.series.push_back(std::move(band));
            banded = true;
        }
        if (!marks.x.empty()) {
            marks.mark = Chart::Mark::point;
            marks.ink = series.ink;
            marks.name = series.name;
            marks.listed = false;
            marked = true;
        }
        chart.series.push_back(std::move(series));
        if (!marks.x.empty()) {
            chart.series.push_back(std::move(marks));
        }
    }
    if (banded) {
        chart.note += u' ' + tr("Bands: 95 % of the loss against full, paired, one point at a time.");
    }
    if (marked) {
        chart.note +=
            u' ' + tr("Dots: lower NLL than the best blind rule at the same cost, with the 95 % interval.");
    }
    for (const RunPoint& run : runs) {
        Chart::Series series;
        series.name = run.name;
        series.ink = run.ink;
        series.mark = Chart::Mark::point;
        series.strong = run.strong;
        series.x = {time ? run.seconds : place(run)};
        series.y = {std::exp(run.nll)};
        series.labels = {label(run.policy.empty() ? tr("run %1, as it was recorded").arg(run.name) : run.name,
                               run.steps, run.nll, run.flops)};
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
