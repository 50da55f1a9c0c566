// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/chart/chart.h"

#include <QAbstractButton>

#include <vector>

class QToolButton;

namespace ponderscope {

class ScaleBar;

/// The legend of a plot, a row above or a column beside it: the colour scale of cells, and for each series a
/// button that hides or shows the series. A menu lists the series that do not fit.
class PlotLegend : public QWidget {
    Q_OBJECT
public:
    explicit PlotLegend(Theme& theme, QWidget* parent = nullptr);

    /// \p hidden: names of hidden series.
    void setChart(const Chart& chart, const ChartInks& inks, const QStringList& hidden);
    [[nodiscard]] bool isEmpty() const { return entries_.empty() && scale_ == nullptr; }
    /// The width of the legend beside a plot. 0: the legend is above the plot. \p width: of plot and legend
    /// together. \p row: available width above the plot.
    [[nodiscard]] int widthBeside(const Chart& chart, int width, int row) const;
    void arrange(const QRect& room, bool beside);
    [[nodiscard]] const std::vector<QAbstractButton*>& entries() const { return entries_; }

Q_SIGNALS:
    void toggled(const QString& series, bool shown);

private:
    void listFurther(); ///< fills the menu

    Theme& theme_;
    std::vector<QAbstractButton*> entries_;
    QToolButton* further_;
    ScaleBar* scale_ = nullptr;
};

} // namespace ponderscope
