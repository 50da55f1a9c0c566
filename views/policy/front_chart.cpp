// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/policy/front_chart.h"

#include "core/policy/policy_rows.h"
#include "core/stats/front.h"
#include "views/common/format.h"

#include <algorithm>
#include <cmath>

using namespace Qt::StringLiterals;

namespace ponderscope {
namespace {

/// The best blind rule (solid) and the bound (dashed) have the text's colour.
int ink_of_front(const PolicyFront& front) {
    return front.policy == blind_rule || !front.causal ? static_cast<int>(Chart::text)
                                                       : Chart::rule + static_cast<int>(front.number);
}

/// The line of the best blind rule. It is piecewise linear in NLL, so it is curved in perplexity.
Chart::Series blind_line(const PolicyFront& front, bool flops) {
    auto series = Chart::Series::of(Chart::Mark::line, Chart::text, QString::fromLatin1(blind_rule));
    std::vector<FrontPoint> depths;
    for (const PolicyPoint& point : front.points) {
        depths.push_back({flops ? point.flops : point.steps, point.nll});
    }
    const std::vector<FrontPoint> hull = convex_front(depths);
    constexpr int places = 48;
    const double low = hull.front().cost;
    const double high =
        std::ranges::max_element(depths, [](const auto& a, const auto& b) { return a.cost < b.cost; })->cost;
    for (int i = 0; i <= places; ++i) {
        const double cost = low + (high - low) * i / places;
        const double nll = loss_at(hull, cost);
        series.add(cost, std::exp(nll),
                   u"replay of the best blind rule: one depth for all tokens, or a random mix of two depths\n"
                   "NLL %1 · perplexity %2"_s.arg(format_nats(nll, 3), format_nats(std::exp(nll))));
    }
    return series;
}

QString label_of(const QString& name, double steps, double nll, double flops_a_token) {
    const QString text = u"%1\nsteps %2 · NLL %3 · perplexity %4"_s.arg(
        name, format_nats(steps), format_nats(nll, 3), format_nats(std::exp(nll)));
    return std::isfinite(flops_a_token) ? text + u" · FLOPs %1"_s.arg(format_si(flops_a_token)) : text;
}

QString link_of(const std::string& policy) {
    return policy.empty() ? QString() : u"policy:"_s + QString::fromStdString(policy);
}

Chart::Series series_of_run(const RunPoint& run, double cost) {
    auto series = Chart::Series::of(Chart::Mark::point, run.ink, run.name);
    QString label = label_of(run.policy.empty() ? u"run %1, as recorded"_s.arg(run.name) : run.name,
                             run.steps, run.nll, run.flops);
    if (std::isfinite(run.seconds)) {
        label += u" · %1 ms a token"_s.arg(format_nats(run.seconds * 1e3, 3));
    }
    series.add(cost, std::exp(run.nll), label);
    series.links = {link_of(run.policy)};
    return series;
}

} // namespace

Chart front_chart(const std::vector<PolicyFront>& fronts, const std::vector<RunPoint>& runs,
                  const FrontLook& look) {
    Chart chart;
    const bool flops = look.cost == "compute" && std::ranges::all_of(fronts, [](const PolicyFront& front) {
                           return std::ranges::all_of(front.points, [](const PolicyPoint& point) {
                               return std::isfinite(point.flops);
                           });
                       });
    chart.title = u"Perplexity against compute"_s;
    const bool time = look.cost == "time";
    chart.x.label = time    ? u"seconds per token, as recorded"_s
                    : flops ? u"FLOPs per token"_s
                            : u"mean steps"_s;
    chart.x.si = flops;
    chart.y.label = u"perplexity"_s;
    chart.x.log = look.log == "x" || look.log == "both";
    chart.y.log = look.log == "y" || look.log == "both";
    chart.note = time ? u"Times include read-outs and writing. Compare only runs with the same machine "
                        "and batch size. Replays have no time."_s
                      : u"Lines: replay. In a replay, tokens do not affect each other, so a rerun "
                        "can differ."_s;
    const auto place = [flops](const auto& point) { return flops ? point.flops : point.steps; };
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
        const bool line = front.points.size() > 1;
        auto series = Chart::Series::of(line ? Chart::Mark::line : Chart::Mark::point, ink_of_front(front),
                                        QString::fromStdString(title_of(front.policy)) +
                                            (front.causal ? QString() : u" (a bound)"_s));
        series.dashed = !front.causal;
        auto marks = Chart::Series::of(Chart::Mark::point, series.ink, series.name);
        marks.listed = false;
        auto band = Chart::Series::of(Chart::Mark::band, series.ink, series.name);
        band.listed = false;
        band.faint = true;
        for (const PolicyPoint& point : front.points) {
            const double perplexity = std::exp(point.nll);
            series.add(place(point), perplexity,
                       label_of(point.spec.empty()
                                    ? u"lowest possible NLL at these FLOPs"_s
                                    : u"replay of %1"_s.arg(QString::fromStdString(point.spec)),
                                point.steps, point.nll, point.flops));
            series.links.push_back(link_of(point.spec));
            if (look.bands && line && point.better) {
                marks.add(place(point), perplexity);
            }
            if (look.bands && line && std::isfinite(point.difference.low)) {
                const double full = point.nll - point.difference.value;
                band.add(place(point), perplexity, std::exp(full + point.difference.low),
                         std::exp(full + point.difference.high));
            }
        }
        banded = banded || !band.x.empty();
        marked = marked || !marks.x.empty();
        for (Chart::Series* part : {&band, &series, &marks}) {
            if (!part->x.empty()) {
                chart.series.push_back(std::move(*part));
            }
        }
    }
    if (banded) {
        chart.note +=
            u' ' + u"Bands: pointwise 95 % intervals of the paired NLL difference from the policy “full”."_s;
    }
    if (marked) {
        chart.note += u' ' +
                      u"Dots: NLL minus the NLL of the best blind rule at the same cost is below 0 (whole "
                      "95 % interval)."_s;
    }
    for (const RunPoint& run : runs) {
        chart.series.push_back(series_of_run(run, time ? run.seconds : place(run)));
    }
    return chart;
}

void add_run(Chart& fronts, const RunPoint& run) {
    fronts.series.push_back(
        series_of_run(run, fronts.x.si ? run.flops : run.steps)); // an axis with SI prefixes shows FLOPs
}

void add_replay(Chart& fronts, const PolicyPoint& point) {
    auto series = Chart::Series::of(Chart::Mark::point, Chart::text);
    series.strong = true;
    series.add(fronts.x.si ? point.flops : point.steps, std::exp(point.nll),
               label_of(u"replay of %1"_s.arg(QString::fromStdString(point.spec)), point.steps, point.nll,
                        point.flops));
    fronts.series.push_back(std::move(series));
}

} // namespace ponderscope
