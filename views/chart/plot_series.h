// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/chart/chart.h"

#include <QPen>

#include <vector>

class QCPAbstractPlottable;
class QCPAxis;
class QCPGraph;

namespace ponderscope {

/// The pen of a series' line, with its dashes.
QPen line_pen(const ChartInks& inks, const Chart::Series& series, const QColor& colour);

/// Adds the series of a chart to a plot of QCustomPlot, with \p key as the axis of the chart's x. Returns the
/// plottables of each series; the plot owns them.
std::vector<std::vector<QCPAbstractPlottable*>> plot_series(const Chart& chart, const ChartInks& inks,
                                                            const Theme& theme, QCPAxis* key, QCPAxis* value);

/// Adds a graph without a line to a layer, for a ring around a mark. The plot owns the graph.
QCPGraph* plot_ring(QCPAxis* key, QCPAxis* value, const QString& layer);

} // namespace ponderscope
