// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/chart/chart.h"

#include <QRectF>

#include <string>

namespace ponderscope::figure {

class DisplayList;
struct Style;

/// Draws into \p box, in points, and returns the plot between the axes. The note takes up to \p note_lines
/// lines and is cut short behind them. If the names under a plot of points or bars do not fit side by side,
/// they are listed at its left, and the plot is turned.
QRectF draw_chart(DisplayList& list, const Style& style, const QRectF& box, const Chart& chart,
                  int note_lines);
/// The height at which all of a chart can be read in this width: its legend, its names, its note, and a plot
/// of at least \p plot.
double readable_height(const Style& style, double width, const Chart& chart, int note_lines, double plot);

/// The chart as a pgfplots environment, to be \input into a paper (\usepackage{pgfplots}): the numbers are in
/// it, so that the paper's own fonts and colours apply.
std::string chart_pgfplots(const Chart& chart, const Style& style, double width_mm, double height_mm);

} // namespace ponderscope::figure
