// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/chart/chart.h"

#include <QPointF>
#include <QRectF>
#include <QStringList>

class QCPAxis;

namespace ponderscope {

/// A point, bar or cell of a chart: its series and its index in the series.
struct ChartMark {
    int series = -1;
    int index = -1;
    [[nodiscard]] bool isValid() const { return series >= 0; }
    friend bool operator==(const ChartMark&, const ChartMark&) = default;
};

/// The marks of a chart on a plot: texts, links, positions in pixels, and the neighbours of a mark. Stores
/// references to the constructor's arguments. Call setAxes() when the plot has axes.
class PlotMarks {
public:
    /// \p hidden: names of series that are not shown.
    PlotMarks(const Chart& chart, const QStringList& hidden) : chart_(chart), hidden_(hidden) {}
    void setAxes(QCPAxis* key, QCPAxis* value); ///< axes of the chart's x and y

    [[nodiscard]] bool isShown(std::size_t series) const;
    struct Place {
        const Chart::Series& series;
        std::size_t i;
    };
    /// The series of a valid mark, and the mark's index in it.
    [[nodiscard]] Place of(ChartMark mark) const {
        return {chart_.series[static_cast<std::size_t>(mark.series)], static_cast<std::size_t>(mark.index)};
    }
    /// Whether the current chart still has the mark.
    [[nodiscard]] bool has(ChartMark mark) const;
    [[nodiscard]] QString text(ChartMark mark) const;
    /// The target of a click; empty: none.
    [[nodiscard]] QString link(ChartMark mark) const;
    [[nodiscard]] QPointF position(ChartMark mark) const;
    /// The area where a mark reacts to the cursor.
    [[nodiscard]] QRectF box(ChartMark mark) const;
    /// The shown mark under or nearest to \p position.
    [[nodiscard]] ChartMark at(QPointF position) const;
    /// The neighbour of \p from: in its series (\p along ±1), or at the same index in the next series (\p
    /// across ±1). For a cell: the cell in this direction. If \p from is invalid: the first mark.
    [[nodiscard]] ChartMark beside(ChartMark from, int along, int across) const;

private:
    [[nodiscard]] ChartMark cellBeside(ChartMark from, QPointF direction) const;
    [[nodiscard]] QPointF pixel(double x, double y) const;

    const Chart& chart_;
    const QStringList& hidden_;
    QCPAxis* key_ = nullptr;
    QCPAxis* value_ = nullptr;
};

} // namespace ponderscope
