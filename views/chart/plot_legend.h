// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/chart/chart.h"

#include <QAbstractButton>

#include <vector>

namespace ponderscope {

class ScaleBar;

/// The legend of a plot: one button for each series, which hides or shows it, and the colour scale of cells.
/// It is in rows above the plot, or a list beside it.
class PlotLegend : public QWidget {
    Q_OBJECT
public:
    explicit PlotLegend(Theme& theme, QWidget* parent = nullptr);

    /// \p hidden: names of hidden series.
    void setChart(const Chart& chart, const ChartInks& inks, const QStringList& hidden);
    /// Arranges the entries for a plot in a box of this size. Returns whether the legend is beside the plot.
    bool arrange(const Chart& chart, QSize box);
    [[nodiscard]] const std::vector<QAbstractButton*>& entries() const { return entries_; }

Q_SIGNALS:
    void toggled(const QString& series, bool shown);

private:
    Theme& theme_;
    std::vector<QAbstractButton*> entries_;
    ScaleBar* scale_ = nullptr;
};

} // namespace ponderscope
