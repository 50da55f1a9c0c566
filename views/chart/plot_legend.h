// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/chart/chart.h"

#include <QAbstractButton>

#include <vector>

namespace ponderscope {

class ScaleBar;

/// The legend of a plot: a button a series, which hides and shows it, and the scale of cells. In rows above
/// the plot, or as a list beside it.
class PlotLegend : public QWidget {
    Q_OBJECT
public:
    explicit PlotLegend(Theme& theme, QWidget* parent = nullptr);

    /// \p hidden: names of series that are not shown.
    void setChart(const Chart& chart, const ChartInks& inks, const QStringList& hidden);
    /// Whether the legend stands beside a plot in a box of this size. Lays the entries out accordingly.
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
