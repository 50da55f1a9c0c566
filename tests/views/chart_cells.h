// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/chart/chart.h"
#include "views/chart/plot_marks.h"

#include <cmath>

namespace ponderscope::testing {

/// The cell at (x, y) of the chart's first series; invalid where it has none.
inline ChartMark cell_at(const Chart& chart, double x, double y) {
    const Chart::Series cells = chart.series.empty() ? Chart::Series() : chart.series.front();
    for (std::size_t i = 0; i < cells.x.size(); ++i) {
        if (cells.x[i] == x && cells.y[i] == y) {
            return {0, static_cast<int>(i)};
        }
    }
    return {};
}

/// Its value; NaN where there is no such cell.
inline double cell_value(const Chart& chart, double x, double y) {
    const ChartMark at = cell_at(chart, x, y);
    return at.isValid() ? chart.series.front().value[static_cast<std::size_t>(at.index)] : std::nan("");
}

} // namespace ponderscope::testing
