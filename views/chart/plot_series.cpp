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
constexpr double lone_band_width = 11; ///< width in pixels of a band with a single x
constexpr float band_alpha = 0.22F;    ///< translucent, so that other bands and the grid stay visible
constexpr double bar_share = 0.72;
constexpr std::size_t many_points = 150; ///< from this number on, points are small and translucent

/// A graph that does not clip points at the edge of the plot.
class WholeGraph : public QCPGraph {
public:
    using QCPGraph::QCPGraph;

protected:
    [[nodiscard]] QRect clipRect() const override {
        const int beyond = scatterStyle().isNone() ? 1 : 7;
        return QCPGraph::clipRect().adjusted(-beyond, -beyond, beyond, beyond);
    }
};

/// The plot to which the series of a chart are added.
struct Target {
    const Chart& chart;
    const ChartInks& inks;
    const Theme& theme;
    QCPAxis* key;
    QCPAxis* value;
};

// Each kind of mark has a function, which appends the plottables of a series.

void add_line(const Target& to, const Chart::Series& series, Parts& parts) {
    const auto nothing = std::numeric_limits<double>::quiet_NaN();
    QVector<double> x;
    QVector<double> y;
    for (std::size_t i = 0; i < series.count(); ++i) {
        const bool there = to.chart.canPlot(series.x[i], series.y[i]);
        if (!there && x.isEmpty()) {
            continue;
        }
        x.append(there ? series.x[i] : x.back()); // a gap at a missing value
        y.append(there ? series.y[i] : nothing);
    }
    const QPen pen = line_pen(to.inks, series, colour_of(to.inks, series));
    if (std::ranges::is_sorted(x)) {
        auto* graph = new WholeGraph(to.key, to.value);
        graph->setData(x, y, true);
        graph->setPen(pen);
        parts.push_back(graph);
    } else { // if x decreases somewhere: a QCPCurve keeps the order of the points
        auto* curve = new QCPCurve(to.key, to.value);
        curve->setData(x, y);
        curve->setPen(pen);
        parts.push_back(curve);
    }
}

void add_points(const Target& to, const Chart::Series& series, Parts& parts) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < series.count(); ++i) {
        if (to.chart.canPlot(series.x[i], series.y[i])) {
            order.push_back(i);
        }
    }
    // A graph sorts its points by key. Sort first, so that whiskers stay with their points.
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
    QColor colour = colour_of(to.inks, series);
    auto* graph = new WholeGraph(to.key, to.value);
    graph->setData(x, y, true);
    graph->setLineStyle(QCPGraph::lsNone);
    const double size = series.strong ? 12 : order.size() > many_points ? 4 : 7;
    if (order.size() > many_points) {
        colour.setAlphaF(order.size() > 5000 ? 0.2F : order.size() > 800 ? 0.35F : 0.5F);
    }
    graph->setScatterStyle(is_hollow(to.inks, series)
                               ? QCPScatterStyle(QCPScatterStyle::ssCircle, QPen(colour, size * 0.2),
                                                 QBrush(to.inks.colours.panel), size * 0.9)
                               : QCPScatterStyle(QCPScatterStyle::ssDisc, colour, size));
    if (whiskers) {
        auto* bounds = new QCPErrorBars(to.key, to.value);
        bounds->setDataPlottable(graph);
        bounds->setData(below, above);
        bounds->setPen(QPen(colour, 1));
        bounds->setWhiskerWidth(0);
        bounds->setSymbolGap(0);
        parts.push_back(bounds);
    }
    parts.push_back(graph);
}

void add_bars(const Target& to, const Chart::Series& series, Parts& parts) {
    QVector<double> x;
    QVector<double> y;
    for (std::size_t i = 0; i < series.count(); ++i) {
        if (to.chart.canPlot(series.x[i], series.y[i])) {
            x.append(series.x[i]);
            y.append(series.y[i]);
        }
    }
    auto* bars = new QCPBars(to.key, to.value);
    bars->setData(x, y);
    bars->setWidth(to.chart.dx * bar_share);
    bars->setBrush(colour_of(to.inks, series));
    bars->setPen(Qt::NoPen);
    parts.push_back(bars);
}

void add_band(const Target& to, const Chart::Series& series, Parts& parts) {
    QColor fill = ink_of(to.inks, series.ink);
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
        auto* area = new QCPCurve(to.key, to.value);
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

void add_cells(const Target& to, const Chart::Series& series, Parts& parts) {
    constexpr int most_cells_along = 8192;
    const std::size_t count =
        series.value.empty() ? series.count() : std::min(series.count(), series.value.size());
    if (count == 0) {
        return;
    }
    const auto [left, right] = std::ranges::minmax_element(series.x);
    const auto [low, high] = std::ranges::minmax_element(series.y);
    const auto cells = [](double first, double last, double apart) {
        return static_cast<int>(std::min(std::round((last - first) / apart) + 1, double{most_cells_along}));
    };
    // A ring of empty cells: QCustomPlot gives a single row or column no extent.
    const int columns = cells(*left, *right, to.chart.dx) + 2;
    const int rows = cells(*low, *high, to.chart.dy) + 2;
    auto* map = new QCPColorMap(to.key, to.value);
    map->data()->setSize(columns, rows);
    map->data()->setRange(QCPRange(*left - to.chart.dx, *left + (columns - 2) * to.chart.dx),
                          QCPRange(*low - to.chart.dy, *low + (rows - 2) * to.chart.dy));
    map->data()->fill(std::numeric_limits<double>::quiet_NaN());
    const bool plain = series.value.empty();
    const Chart::Scale scale = to.chart.scale.value_or(Chart::Scale{});
    for (std::size_t i = 0; i < count; ++i) {
        map->data()->setCell(static_cast<int>(std::lround((series.x[i] - *left) / to.chart.dx)) + 1,
                             static_cast<int>(std::lround((series.y[i] - *low) / to.chart.dy)) + 1,
                             plain ? 1 : scale.colours().position(series.value[i]));
    }
    const ColourMap colours =
        scale.diverging ? ColourMap::diverging(to.theme.dark()) : to.theme.magnitudeMap();
    QCPColorGradient gradient;
    gradient.clearColorStops();
    constexpr int stops = 64;
    for (int i = 0; i <= stops; ++i) {
        const double at = static_cast<double>(i) / stops;
        gradient.setColorStopAt(at, plain ? colour_of(to.inks, series) : QColor(colours.at(at)));
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
    const Target to{chart, inks, theme, key, value};
    // The order of drawing: bands behind everything, points in front.
    constexpr std::pair<Chart::Mark, void (*)(const Target&, const Chart::Series&, Parts&)> marks[] = {
        {Chart::Mark::band, add_band},
        {Chart::Mark::cell, add_cells},
        {Chart::Mark::bar, add_bars},
        {Chart::Mark::line, add_line},
        {Chart::Mark::point, add_points}};
    std::vector<Parts> parts(chart.series.size());
    for (const auto& [mark, add] : marks) {
        for (std::size_t s = 0; s < chart.series.size(); ++s) {
            if (chart.series[s].mark == mark) {
                add(to, chart.series[s], parts[s]);
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
