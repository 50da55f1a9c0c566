// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/chart/chart.h"
#include "views/chart/chart_axis.h"

#include <QStringList>
#include <QWidget>

#include <vector>

class QBoxLayout;
class QCPAbstractPlottable;
class QCPAxis;
class QCPGraph;
class QCustomPlot;
class QLabel;

namespace ponderscope {

class PlotLegend;
class Readout;

/// A chart in the window, drawn by QCustomPlot with the ranges, ticks and colours that it has on paper.
///
/// The wheel and a dragged rectangle zoom, Shift and dragging move the plot, a double click shows everything.
/// The mark under the cursor is named by a tooltip; a click on a mark tells which. An entry of the legend
/// hides its series. Keys: arrows go from mark to mark, Enter clicks the mark, + and − zoom, Shift and arrows
/// move, Home shows everything. Screen readers get the numbers as a table.
class ChartPlot : public QWidget {
    Q_OBJECT
public:
    /// A point, bar or cell: its series and its place in it.
    struct Mark {
        int series = -1;
        int index = -1;
        [[nodiscard]] bool isValid() const { return series >= 0; }
        friend bool operator==(const Mark&, const Mark&) = default;
    };

    explicit ChartPlot(Theme& theme, QWidget* parent = nullptr);
    ~ChartPlot() override;

    /// Keeps zoom and hidden series where the axes are those of the chart before.
    void setChart(Chart chart);
    /// Numbers of the palette for the runs of the next chart; empty: in their order.
    void setRunColours(std::vector<std::int64_t> numbers) { runColours_ = std::move(numbers); }
    /// Instead of a chart: how to get one.
    void setHint(const QString& hint);
    [[nodiscard]] const Chart& chart() const { return chart_; }
    [[nodiscard]] QString hint() const { return hintText_; }

    /// Rings around marks that were chosen elsewhere: under the cursor, and selected.
    void setHovered(Mark mark);
    void setSelected(Mark mark);
    /// The widget that the plot is painted on and that takes the mouse; positions are in its pixels.
    [[nodiscard]] QWidget* canvas() const;
    /// The shown mark under or nearest to \p position.
    [[nodiscard]] Mark markAt(QPointF position) const;
    [[nodiscard]] QPointF positionOf(Mark mark) const;
    [[nodiscard]] QString textOf(Mark mark) const;
    /// The target of a click on the mark; empty: none.
    [[nodiscard]] QString linkOf(Mark mark) const;
    [[nodiscard]] Mark current() const { return current_; }
    /// The plot between the axes.
    [[nodiscard]] QRectF plotRect() const;
    [[nodiscard]] AxisRange shownRange(bool horizontal_data) const;
    [[nodiscard]] bool isSeriesShown(std::size_t series) const;
    [[nodiscard]] PlotLegend& legend() const { return *legend_; }
    /// Chart as CSV, at most \p most lines of it.
    [[nodiscard]] QString table(int most) const;

public Q_SLOTS:
    void showAll();
    /// Below 1 shows less, in the middle of the plot.
    void zoom(double factor);
    void copyValues() const;

Q_SIGNALS:
    void markHovered(int series, int index); ///< -1, -1: none
    void markClicked(int series, int index);

protected:
    void keyPressEvent(QKeyEvent* event) override;
    void focusInEvent(QFocusEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;
    void contextMenuEvent(QContextMenuEvent* event) override;
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    class Ticker;

    void setUpAxes();
    void rebuild();
    void fillLegend();
    void dress();
    void arrange();
    void showRange();
    void pan(QPointF shares);
    void step(int along, int across);
    void point(Mark mark, bool tell);
    void ring(QCPGraph* graph, Mark mark);
    [[nodiscard]] bool isZoomed() const;
    [[nodiscard]] bool liesOnItsSide() const;
    [[nodiscard]] bool has(double x, double y) const;
    [[nodiscard]] QPointF pixelOf(double x, double y) const;
    [[nodiscard]] QRectF boxOf(Mark mark) const;
    // Each kind of mark has a function. The plottables that it adds belong to the series.
    void addLine(const Chart::Series& series, std::vector<QCPAbstractPlottable*>& parts);
    void addPoints(const Chart::Series& series, std::vector<QCPAbstractPlottable*>& parts);
    void addBars(const Chart::Series& series, std::vector<QCPAbstractPlottable*>& parts);
    void addBand(const Chart::Series& series, std::vector<QCPAbstractPlottable*>& parts);
    void addCells(const Chart::Series& series, std::vector<QCPAbstractPlottable*>& parts);
    [[nodiscard]] QColor colourOf(const Chart::Series& series) const;

    Theme& theme_;
    Chart chart_;
    ChartInks inks_;
    QString hintText_;
    QLabel* title_;
    Readout* upright_; ///< name of the vertical axis, above it
    QLabel* note_;
    QLabel* hint_;
    QWidget* body_;
    PlotLegend* legend_;
    QBoxLayout* middle_; ///< legend and plot
    QCustomPlot* plot_;
    QCPAxis* key_ = nullptr; ///< of the chart's x
    QCPAxis* value_ = nullptr;
    QCPGraph* hovered_ = nullptr;
    QCPGraph* selected_ = nullptr;
    std::vector<std::vector<QCPAbstractPlottable*>> parts_; ///< of each series
    std::vector<std::int64_t> runColours_;
    QStringList hidden_; ///< names of series
    AxisRange wholeX_, wholeY_;
    bool sideways_ = false;
    Mark current_;
    Mark selectedMark_;
    QPointF pressed_;
};

} // namespace ponderscope
