// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/chart/chart.h"

#include <QRectF>

#include <string>

namespace ponderscope::figure {

class DisplayList;
struct Style;

/// Draws a chart without its title into \p box, in points. Returns the area between the axes. A note of more
/// than \p note_lines lines is shortened. If the names below points or bars do not fit side by side, turns
/// the plot and writes the names on the left.
QRectF draw_chart(DisplayList& list, const Style& style, const QRectF& box, const Chart& chart,
                  int note_lines);
/// The height for a readable chart of this width: legend, names, note, and a plot of height \p plot.
double readable_height(const Style& style, double width, const Chart& chart, int note_lines, double plot);

/// The chart as a pgfplots environment, to \input into a paper (\usepackage{pgfplots}). The paper's fonts and
/// colours apply, because the environment contains only numbers.
std::string chart_pgfplots(const Chart& chart, const Style& style, double width_mm, double height_mm);

} // namespace ponderscope::figure
