// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/chart/chart_axis.h"
#include "views/chart/plot_marks.h"

#include <QStringList>
#include <QWidget>

#include <vector>

class QCPAbstractPlottable;
class QCPAxis;
class QCPGraph;
class QCustomPlot;
class QLabel;

namespace ponderscope {

class PlotLegend;
class Readout;

/// A chart in the window. QCustomPlot draws it with the ranges, ticks and colours of the printed figure.
///
/// The wheel and a dragged rectangle zoom, a drag with Shift moves the plot, a double click shows everything.
/// A tooltip names the mark under the cursor; a click on a mark emits its link. A click on a legend entry
/// hides its series. Keys: arrows go from mark to mark, Enter clicks the mark, + and − zoom, Shift with
/// arrows moves the plot, Home shows everything. Screen readers get the numbers as a table.
///
/// The plot keeps at least 60 % of the widget. A title or note that does not fit becomes the tooltip.
class ChartPlot : public QWidget {
    Q_OBJECT
public:
    using Mark = ChartMark;

    explicit ChartPlot(Theme& theme, QWidget* parent = nullptr);

    /// Keeps zoom and hidden series if the axes equal the axes of the previous chart.
    void setChart(Chart chart);
    /// The colours of the next chart's runs, as numbers in the palette; empty: 0, 1, 2, …
    void setRunColours(std::vector<std::int64_t> numbers) { runColours_ = std::move(numbers); }
    /// Shows a hint in place of a chart. The hint says how to get a chart.
    void setHint(const QString& hint);
    [[nodiscard]] const Chart& chart() const { return chart_; }
    [[nodiscard]] QString hint() const { return hintText_; }

    /// Draws rings around marks that another view hovers or selects.
    void setHovered(Mark mark);
    void setSelected(Mark mark);
    /// The widget that shows the plot and receives the mouse. Positions are in pixels of this widget.
    [[nodiscard]] QWidget* canvas() const;
    /// The shown mark under or nearest to \p position.
    [[nodiscard]] Mark markAt(QPointF position) const {
        return hintText_.isEmpty() ? marks_.at(position) : Mark();
    }
    [[nodiscard]] QPointF positionOf(Mark mark) const { return marks_.position(mark); }
    [[nodiscard]] QString textOf(Mark mark) const { return marks_.text(mark); }
    /// The target of a click on the mark; empty: none.
    [[nodiscard]] QString linkOf(Mark mark) const { return marks_.link(mark); }
    [[nodiscard]] Mark current() const { return current_; }
    /// The area between the axes.
    [[nodiscard]] QRectF plotRect() const;
    [[nodiscard]] AxisRange shownRange(bool horizontal_data) const;
    [[nodiscard]] bool isSeriesShown(std::size_t series) const { return marks_.isShown(series); }
    [[nodiscard]] PlotLegend& legend() const { return *legend_; }
    /// The chart as CSV, at most \p most lines.
    [[nodiscard]] QString table(int most) const;
    [[nodiscard]] QSize sizeHint() const override { return minimumSizeHint(); }
    /// With a vertical axis of categories, the height grows with their number.
    [[nodiscard]] QSize minimumSizeHint() const override;

public Q_SLOTS:
    void showAll();
    /// Zooms around the middle of the plot. A factor below 1 shows a smaller part.
    void zoom(double factor);
    void copyValues() const;

Q_SIGNALS:
    void markHovered(int series, int index); ///< -1, -1: no mark
    void markClicked(int series, int index);

protected:
    void keyPressEvent(QKeyEvent* event) override;
    void contextMenuEvent(QContextMenuEvent* event) override;
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void rebuild();
    void showSeries();
    void dress();
    void arrange();
    void showRange();
    void pan(QPointF shares);
    void point(Mark mark, bool tell);
    void ring(QCPGraph* graph, Mark mark);
    [[nodiscard]] bool isZoomed() const;
    [[nodiscard]] bool liesOnItsSide() const;

    Theme& theme_;
    Chart chart_;
    QString hintText_;
    QLabel* title_;
    Readout* upright_; ///< name of the vertical axis, above the axis
    QLabel* note_;
    QLabel* hint_;
    PlotLegend* legend_;
    QCustomPlot* plot_;
    PlotMarks marks_;
    QCPAxis* key_ = nullptr; ///< axis of the chart's x
    QCPAxis* value_ = nullptr;
    QCPGraph* hovered_ = nullptr;
    QCPGraph* selected_ = nullptr;
    std::vector<std::vector<QCPAbstractPlottable*>> parts_; ///< plottables of each series
    std::vector<std::int64_t> runColours_;
    QStringList hidden_; ///< names of hidden series
    AxisRange wholeX_, wholeY_;
    bool sideways_ = false;
    Mark current_;
    Mark selectedMark_;
    QPointF pressed_;
};

} // namespace ponderscope
