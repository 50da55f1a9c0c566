// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/compare/compare_charts.h"

#include "views/common/format.h"
#include "views/halting/step_charts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

using namespace Qt::StringLiterals;

namespace ponderscope {

Chart winners_chart(const Winners& winners) {
    Chart chart;
    chart.title = u"Who wins where"_s;
    chart.x.label = winners.by == "position"     ? u"position in the sequence"_s
                    : winners.by == "difficulty" ? u"mean NLL of both runs"_s
                                                 : QString();
    const QString of_a = QString::fromStdString(winners.a);
    const QString of_b = QString::fromStdString(winners.b);
    chart.y.label = u"NLL: A − B (nats)"_s; // both names would not fit on the axis
    chart.note = u"A: %1, B: %2."_s.arg(of_a, of_b);
    auto a = Chart::Series::of(Chart::Mark::point, Chart::a, u"%1 is better"_s.arg(of_a));
    auto b = Chart::Series::of(Chart::Mark::point, Chart::b, u"%1 is better"_s.arg(of_b));
    auto neither = Chart::Series::of(Chart::Mark::point, Chart::soft, u"no clear difference (q over 0.05)"_s);
    for (std::size_t i = 0; i < winners.rows.size(); ++i) {
        const Winners::Row& row = winners.rows[i];
        const QString name = group_name(row.group, winners.by);
        const Estimate& difference = row.difference;
        chart.x.names.push_back(name);
        Chart::Series& series = !(row.q <= 0.05) ? neither : difference.value < 0 ? a : b;
        series.add(static_cast<double>(i), difference.value, difference.low, difference.high,
                   u"%1: %2 nats [%3, %4], %5 is lower at %6 % of %7 tokens, q %8"_s.arg(
                       name, format_difference(difference.value, 3), format_difference(difference.low, 3),
                       format_difference(difference.high, 3), of_b,
                       QString::number(100 * row.b_lower, 'f', 0), format_count(row.tokens),
                       format_probability(row.q)));
    }
    const double end = static_cast<double>(winners.rows.size()) - 0.5;
    chart.series = {Chart::Series::reference(-0.5, 0, end, 0), std::move(a), std::move(b),
                    std::move(neither)};
    std::erase_if(chart.series, [](const Chart::Series& series) { return series.x.empty(); });
    return chart;
}

Chart mean_nll_chart(const RunComparison& comparison, const std::vector<QString>& names) {
    Chart chart;
    chart.title = u"NLL comparison"_s;
    chart.y.label = u"NLL (nats per token), mean and 95 % interval"_s;
    chart.x.names = names;
    const auto interval = [](const Estimate& estimate, const auto& text) {
        return u"%1 [%2, %3]"_s.arg(text(estimate.value, 3), text(estimate.low, 3), text(estimate.high, 3));
    };
    const auto plain = [](double value, int decimals) { return format_nats(value, decimals); };
    QStringList numbers;
    for (std::size_t i = 0; i < comparison.runs.size(); ++i) {
        const RunComparison::Run& run = comparison.runs[i];
        numbers << u"%1: %2"_s.arg(names[i], interval(run.nll, plain));
        if (!std::isnan(run.difference.value)) {
            numbers.back() += u", A − run %1"_s.arg(interval(run.difference, format_difference));
        }
        chart.series.push_back(Chart::Series::of(Chart::Mark::point, static_cast<int>(i)));
        chart.series.back().add(static_cast<double>(i), run.nll.value, run.nll.low, run.nll.high,
                                numbers.back());
    }
    chart.note = numbers.join(u"; "_s) + u'.';
    return chart;
}

namespace {

Chart pair_axes(const RunComparison& comparison) {
    Chart chart;
    chart.title = u"Token against token"_s;
    const auto label = [&](std::size_t run) {
        return u"NLL of %1 (nats)"_s.arg(QString::fromStdString(comparison.runs.at(run).label));
    };
    chart.x.label = label(0);
    chart.y.label = label(1);
    return chart;
}

} // namespace

Chart token_density_chart(const RunComparison& comparison) {
    constexpr double side = 0.25; // nats
    Chart chart = pair_axes(comparison);
    chart.dx = side;
    chart.dy = side;
    std::map<std::pair<int, int>, std::int64_t> counts;
    const std::vector<float>& a = comparison.runs.front().token_nll;
    const std::vector<float>& b = comparison.runs[1].token_nll;
    double high = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        // NLLs above 40 nats are counted in the last cell.
        const auto cell = [](float nll) { return static_cast<int>(std::clamp(nll, 0.0F, 40.0F) / side); };
        ++counts[{cell(a[i]), cell(b[i])}];
        high = std::max(
            {high, static_cast<double>(std::min(a[i], 40.0F)), static_cast<double>(std::min(b[i], 40.0F))});
    }
    auto cells = Chart::Series::of(Chart::Mark::cell);
    double most = 1;
    for (const auto& [place, count] : counts) {
        const double x = (place.first + 0.5) * side;
        const double y = (place.second + 0.5) * side;
        cells.addCell(
            x, y, std::log10(static_cast<double>(count)),
            u"%1 tokens: A ≈ %2, B ≈ %3 nats"_s.arg(format_count(count), format_nats(x), format_nats(y)));
        most = std::max(most, cells.value.back());
    }
    chart.scale = {u"log10 of the number of tokens"_s, 0, most, false};
    chart.series = {std::move(cells), Chart::Series::reference(0, 0, high, high)};
    return chart;
}

Chart token_pairs_chart(const RunComparison& comparison) {
    constexpr std::size_t most_drawn = 30'000; // few enough to redraw within a frame
    const std::vector<float>& a = comparison.runs[0].token_nll;
    const std::vector<float>& b = comparison.runs.at(1).token_nll;
    const std::size_t stride = a.size() / most_drawn + 1;
    Chart chart = pair_axes(comparison);
    chart.x.from_zero = chart.y.from_zero = true;
    auto points = Chart::Series::of(Chart::Mark::point, Chart::text);
    double high = 1;
    for (std::size_t i = 0; i < a.size(); ++i) {
        high = std::max({high, static_cast<double>(a[i]), static_cast<double>(b[i])});
        if (i % stride == 0) {
            points.add(a[i], b[i]);
            points.links.push_back(token_link(comparison.places[i].sequence, comparison.places[i].row));
        }
    }
    chart.series = {Chart::Series::reference(0, 0, high, high), std::move(points)};
    const Estimate& r = comparison.runs[1].correlation;
    chart.note = u"r = %1"_s.arg(format_nats(r.value, 3));
    if (!std::isnan(r.low)) {
        chart.note += u" [%1, %2]"_s.arg(format_nats(r.low, 3), format_nats(r.high, 3));
    }
    chart.note += u", %1 tokens"_s.arg(format_count(static_cast<std::int64_t>(comparison.places.size())));
    if (stride > 1) {
        chart.note += u", 1 in %1 points shown"_s.arg(stride);
    }
    return chart;
}

Chart task_accuracy_chart(const std::vector<TaskPoint>& points, bool over_flops) {
    Chart chart;
    chart.x.label = over_flops ? u"FLOPs a document"_s : u"Mean steps"_s;
    chart.x.si = over_flops;
    chart.y.label = u"Accuracy"_s;
    std::vector<std::string> names;
    for (const TaskPoint& point : points) {
        if (std::ranges::find(names, point.series) == names.end()) {
            names.push_back(point.series);
        }
    }
    for (std::size_t s = 0; s < names.size(); ++s) {
        std::vector<const TaskPoint*> of_series;
        for (const TaskPoint& point : points) {
            if (point.series == names[s]) {
                of_series.push_back(&point);
            }
        }
        const auto cost = [&](const TaskPoint* point) {
            return over_flops ? point->report.flops.value : point->report.steps.value;
        };
        std::ranges::stable_sort(of_series,
                                 [&](const TaskPoint* a, const TaskPoint* b) { return cost(a) < cost(b); });
        auto marks =
            Chart::Series::of(Chart::Mark::point, static_cast<int>(s), QString::fromStdString(names[s]));
        for (const TaskPoint* point : of_series) {
            const Estimate& accuracy = point->report.accuracy;
            marks.add(cost(point), accuracy.value, accuracy.low, accuracy.high,
                      QString::fromStdString(point->run));
        }
        if (of_series.size() > 1) {
            Chart::Series line = marks;
            line.mark = Chart::Mark::line;
            line.low.clear();
            line.high.clear();
            Chart::Series band = marks;
            band.mark = Chart::Mark::band;
            band.listed = marks.listed = false;
            marks.low.clear();
            marks.high.clear();
            chart.series.push_back(std::move(band));
            chart.series.push_back(std::move(line));
        }
        chart.series.push_back(std::move(marks));
    }
    const std::vector<Estimate>& by_step = points.front().report.accuracy_by_step;
    if (!over_flops && by_step.size() > 1) {
        auto line = Chart::Series::of(Chart::Mark::line, Chart::soft,
                                      u"%1, at each step"_s.arg(QString::fromStdString(points.front().run)));
        line.dashed = true;
        for (std::size_t k = 0; k < by_step.size(); ++k) {
            line.add(static_cast<double>(k), by_step[k].value);
        }
        chart.series.push_back(std::move(line));
    }
    chart.note = u"Bars and bands: 95 % confidence intervals over documents."_s;
    return chart;
}

} // namespace ponderscope
