// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/compare/task_charts.h"

#include <QCoreApplication>

#include <algorithm>
#include <utility>

namespace ponderscope {
namespace {


QString chart_text(const char* text) {
    return QCoreApplication::translate("TaskChart", text);
}

} // namespace

Chart task_accuracy_chart(const std::vector<TaskPoint>& points, bool over_flops) {
    Chart chart;
    chart.x.label = over_flops ? chart_text("FLOPs a document") : chart_text("Mean steps");
    chart.x.si = over_flops;
    chart.y.label = chart_text("Accuracy");
    std::vector<std::string> names;
    for (const TaskPoint& point : points) {
        if (std::find(names.begin(), names.end(), point.series) == names.end()) {
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
        std::stable_sort(of_series.begin(), of_series.end(),
                         [&](const TaskPoint* a, const TaskPoint* b) { return cost(a) < cost(b); });
        Chart::Series marks;
        marks.name = QString::fromStdString(names[s]);
        marks.mark = Chart::Mark::point;
        marks.ink = static_cast<int>(s);
        for (const TaskPoint* point : of_series) {
            marks.x.push_back(cost(point));
            marks.y.push_back(point->report.accuracy.value);
            marks.low.push_back(point->report.accuracy.low);
            marks.high.push_back(point->report.accuracy.high);
            marks.labels.push_back(QString::fromStdString(point->run));
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
        Chart::Series line;
        line.name = chart_text("%1, at each step").arg(QString::fromStdString(points.front().run));
        line.ink = Chart::soft;
        line.dashed = true;
        for (std::size_t k = 0; k < by_step.size(); ++k) {
            line.x.push_back(static_cast<double>(k));
            line.y.push_back(by_step[k].value);
        }
        chart.series.push_back(std::move(line));
    }
    chart.note = chart_text("Bars and bands: 95 %, over documents.");
    return chart;
}

} // namespace ponderscope
