// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/chart/plot_series.h"

#include "views/chart/custom_plot.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ponderscope {
namespace {

using Parts = std::vector<QCPAbstractPlottable*>;

constexpr double stroke = 1.6;         ///< pixels
constexpr double lone_band_width = 11; ///< pixels of a band with a single place
constexpr float band_alpha = 0.22F;    ///< one band does not hide another, nor the grid
constexpr double bar_share = 0.72;
constexpr std::size_t many_points = 150; ///< more of them are drawn small and translucent

/// A graph whose points at the edge of the plot are drawn whole.
class WholeGraph : public QCPGraph {
public:
    using QCPGraph::QCPGraph;

protected:
    [[nodiscard]] QRect clipRect() const override {
        const int beyond = scatterStyle().isNone() ? 1 : 7;
        return QCPGraph::clipRect().adjusted(-beyond, -beyond, beyond, beyond);
    }
};

/// Each kind of mark has a function, which appends the plottables of a series.
class SeriesPlotter {
public:
    SeriesPlotter(const Chart& chart, const ChartInks& inks, const Theme& theme, QCPAxis* key, QCPAxis* value)
        : chart_(chart), inks_(inks), theme_(theme), key_(key), value_(value) {}
    void addLine(const Chart::Series& series, Parts& parts) const;
    void addPoints(const Chart::Series& series, Parts& parts) const;
    void addBars(const Chart::Series& series, Parts& parts) const;
    void addBand(const Chart::Series& series, Parts& parts) const;
    void addCells(const Chart::Series& series, Parts& parts) const;

private:
    const Chart& chart_;
    const ChartInks& inks_;
    const Theme& theme_;
    QCPAxis* key_;
    QCPAxis* value_;
};

void SeriesPlotter::addLine(const Chart::Series& series, Parts& parts) const {
    const auto nothing = std::numeric_limits<double>::quiet_NaN();
    QVector<double> x;
    QVector<double> y;
    for (std::size_t i = 0; i < series.count(); ++i) {
        const bool there = chart_.canPlot(series.x[i], series.y[i]);
        if (!there && x.isEmpty()) {
            continue;
        }
        x.append(there ? series.x[i] : x.back()); // a gap
        y.append(there ? series.y[i] : nothing);
    }
    const QPen pen = line_pen(inks_, series, colour_of(inks_, series));
    if (std::ranges::is_sorted(x)) {
        auto* graph = new WholeGraph(key_, value_);
        graph->setData(x, y, true);
        graph->setPen(pen);
        parts.push_back(graph);
    } else { // a curve keeps the order of its points
        auto* curve = new QCPCurve(key_, value_);
        curve->setData(x, y);
        curve->setPen(pen);
        parts.push_back(curve);
    }
}

void SeriesPlotter::addPoints(const Chart::Series& series, Parts& parts) const {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < series.count(); ++i) {
        if (chart_.canPlot(series.x[i], series.y[i])) {
            order.push_back(i);
        }
    }
    // A graph sorts by key; sorted here, the whiskers stay beside their points.
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return series.x[a] < series.x[b]; });
    QVector<double> x;
    QVector<double> y;
    QVector<double> below;
    QVector<double> above;
    bool whiskers = false;
    for (const std::size_t i : order) {
        x.append(series.x[i]);
        y.append(series.y[i]);
        const bool bounded = series.isBounded(i);
        below.append(bounded ? series.y[i] - series.low[i] : 0);
        above.append(bounded ? series.high[i] - series.y[i] : 0);
        whiskers = whiskers || bounded;
    }
    QColor colour = colour_of(inks_, series);
    auto* graph = new WholeGraph(key_, value_);
    graph->setData(x, y, true);
    graph->setLineStyle(QCPGraph::lsNone);
    const double size = series.strong ? 12 : order.size() > many_points ? 4 : 7;
    if (order.size() > many_points) {
        colour.setAlphaF(order.size() > 5000 ? 0.2F : order.size() > 800 ? 0.35F : 0.5F);
    }
    graph->setScatterStyle(is_hollow(inks_, series)
                               ? QCPScatterStyle(QCPScatterStyle::ssCircle, QPen(colour, size * 0.2),
                                                 QBrush(inks_.colours.panel), size * 0.9)
                               : QCPScatterStyle(QCPScatterStyle::ssDisc, colour, size));
    if (whiskers) {
        auto* bounds = new QCPErrorBars(key_, value_);
        bounds->setDataPlottable(graph);
        bounds->setData(below, above);
        bounds->setPen(QPen(colour, 1));
        bounds->setWhiskerWidth(0);
        bounds->setSymbolGap(0);
        parts.push_back(bounds);
    }
    parts.push_back(graph);
}

void SeriesPlotter::addBars(const Chart::Series& series, Parts& parts) const {
    QVector<double> x;
    QVector<double> y;
    for (std::size_t i = 0; i < series.count(); ++i) {
        if (chart_.canPlot(series.x[i], series.y[i])) {
            x.append(series.x[i]);
            y.append(series.y[i]);
        }
    }
    auto* bars = new QCPBars(key_, value_);
    bars->setData(x, y);
    bars->setWidth(chart_.dx * bar_share);
    bars->setBrush(colour_of(inks_, series));
    bars->setPen(Qt::NoPen);
    parts.push_back(bars);
}

void SeriesPlotter::addBand(const Chart::Series& series, Parts& parts) const {
    QColor fill = ink_of(inks_, series.ink);
    fill.setAlphaF(band_alpha);
    for (const auto& [first, last] : parts_of_band(series)) {
        QVector<double> x;
        QVector<double> y;
        for (std::size_t i = first; i < last; ++i) {
            x.append(series.x[i]);
            y.append(series.high[i]);
        }
        for (std::size_t i = last; i-- > first;) {
            x.append(series.x[i]);
            y.append(series.low[i]);
        }
        auto* area = new QCPCurve(key_, value_);
        area->setData(x, y);
        if (last - first == 1) {
            area->setPen(QPen(fill, lone_band_width, Qt::SolidLine, Qt::FlatCap));
        } else {
            area->setPen(Qt::NoPen);
            area->setBrush(fill);
        }
        parts.push_back(area);
    }
}

void SeriesPlotter::addCells(const Chart::Series& series, Parts& parts) const {
    constexpr int most_cells_along = 8192;
    const std::size_t count =
        series.value.empty() ? series.count() : std::min(series.count(), series.value.size());
    if (count == 0) {
        return;
    }
    const auto [left, right] = std::ranges::minmax_element(series.x);
    const auto [low, high] = std::ranges::minmax_element(series.y);
    const auto cells = [](double from, double to, double apart) {
        return static_cast<int>(std::min(std::round((to - from) / apart) + 1, double{most_cells_along}));
    };
    // A ring of empty cells: QCustomPlot gives a single row or column no extent.
    const int columns = cells(*left, *right, chart_.dx) + 2;
    const int rows = cells(*low, *high, chart_.dy) + 2;
    auto* map = new QCPColorMap(key_, value_);
    map->data()->setSize(columns, rows);
    map->data()->setRange(QCPRange(*left - chart_.dx, *left + (columns - 2) * chart_.dx),
                          QCPRange(*low - chart_.dy, *low + (rows - 2) * chart_.dy));
    map->data()->fill(std::numeric_limits<double>::quiet_NaN());
    const bool plain = series.value.empty();
    const Chart::Scale scale = chart_.scale.value_or(Chart::Scale{});
    for (std::size_t i = 0; i < count; ++i) {
        map->data()->setCell(static_cast<int>(std::lround((series.x[i] - *left) / chart_.dx)) + 1,
                             static_cast<int>(std::lround((series.y[i] - *low) / chart_.dy)) + 1,
                             plain ? 1 : scale.colours().position(series.value[i]));
    }
    const ColourMap colours = scale.diverging ? ColourMap::diverging(theme_.dark()) : theme_.magnitudeMap();
    QCPColorGradient gradient;
    gradient.clearColorStops();
    constexpr int stops = 64;
    for (int i = 0; i <= stops; ++i) {
        const double at = static_cast<double>(i) / stops;
        gradient.setColorStopAt(at, plain ? colour_of(inks_, series) : QColor(colours.at(at)));
    }
    gradient.setNanHandling(QCPColorGradient::nhTransparent);
    map->setGradient(gradient);
    map->setDataRange(QCPRange(0, 1));
    map->setInterpolate(false);
    map->setAntialiased(false);
    parts.push_back(map);
}

} // namespace

QPen line_pen(const ChartInks& inks, const Chart::Series& series, const QColor& colour) {
    QPen pen(colour, stroke, Qt::SolidLine, Qt::FlatCap, Qt::RoundJoin);
    QList<qreal> dashes;
    for (const double length : dashes_of(inks, series)) {
        dashes << length / stroke;
    }
    if (!dashes.isEmpty()) {
        pen.setDashPattern(dashes);
    }
    return pen;
}

std::vector<Parts> plot_series(const Chart& chart, const ChartInks& inks, const Theme& theme, QCPAxis* key,
                               QCPAxis* value) {
    const SeriesPlotter plotter(chart, inks, theme, key, value);
    // By mark: bands behind everything, points in front.
    constexpr std::pair<Chart::Mark, void (SeriesPlotter::*)(const Chart::Series&, Parts&) const> marks[] = {
        {Chart::Mark::band, &SeriesPlotter::addBand},
        {Chart::Mark::cell, &SeriesPlotter::addCells},
        {Chart::Mark::bar, &SeriesPlotter::addBars},
        {Chart::Mark::line, &SeriesPlotter::addLine},
        {Chart::Mark::point, &SeriesPlotter::addPoints}};
    std::vector<Parts> parts(chart.series.size());
    for (const auto& [mark, add] : marks) {
        for (std::size_t s = 0; s < chart.series.size(); ++s) {
            if (chart.series[s].mark == mark) {
                (plotter.*add)(chart.series[s], parts[s]);
            }
        }
    }
    return parts;
}

QCPGraph* plot_ring(QCPAxis* key, QCPAxis* value, const QString& layer) {
    auto* ring = new WholeGraph(key, value);
    ring->setLineStyle(QCPGraph::lsNone);
    ring->setLayer(layer);
    return ring;
}

} // namespace ponderscope
