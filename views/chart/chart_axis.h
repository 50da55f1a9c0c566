// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/chart/chart.h"

#include <QString>

#include <vector>

namespace ponderscope {

/// "0", "2.5", "−3" with a real minus sign. \p step: the distance between ticks, which determines the number
/// of decimals; 0: as many decimals as the value needs.
QString tick_label(double value, double step = 0);

struct AxisRange {
    double low = 0;
    double high = 1;
};

/// An axis of a chart: its range, its ticks and their labels. Has at least three ticks if the range allows.
/// Large numbers have one unit, which the title names: "FLOPs per token (M)".
class ChartAxis {
public:
    /// \p horizontal_data: the chart's x axis; false: its y axis. \p most: largest number of ticks.
    ChartAxis(const Chart& chart, bool horizontal_data, int most);
    /// An axis with a given \p range, for a zoomed plot.
    ChartAxis(const Chart::Axis& axis, AxisRange range, int most);

    /// Changes the largest number of ticks and keeps the range. At least \p least ticks remain.
    void setMostTicks(int most, int least = 3);
    [[nodiscard]] const std::vector<double>& ticks() const { return ticks_; }
    [[nodiscard]] QString label(double tick) const;
    [[nodiscard]] QString title() const;
    /// The position of \p value: 0 at the low end and 1 at the high end; on a reversed axis, 1 and 0. On a
    /// logarithmic axis, values that are not positive lie below the low end.
    [[nodiscard]] double share(double value) const;
    [[nodiscard]] const AxisRange& range() const { return range_; }
    [[nodiscard]] double extent() const { return range_.high - range_.low; }

private:
    Chart::Axis axis_;
    AxisRange range_;
    std::vector<double> ticks_;
    double step_ = 0;
    double unit_ = 1; ///< shown numbers are values divided by this
    QString prefix_;  ///< "M" if unit_ is 1e6
};

} // namespace ponderscope
