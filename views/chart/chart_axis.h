// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/chart/chart.h"

#include <QString>

#include <vector>

namespace ponderscope {

/// "0", "2.5", "−3" with a real minus sign. \p step: the distance between ticks, which says how many decimals
/// all of them have; 0: as many as the value needs.
QString tick_label(double value, double step = 0);
/// Whether there is room for ticks from \p low to \p high, numbers of 64 bits: none between two means that
/// are equal but for the order in which they were summed.
bool are_apart(double low, double high);
/// At most \p most round values (1, 2, 5 times a power of ten) within [low, high].
std::vector<double> round_ticks(double low, double high, int most);
struct AxisRange {
    double low = 0;
    double high = 1;
};
/// Widened to round numbers that hold both values.
AxisRange round_range(double low, double high, int most_ticks);

/// An axis of a chart: its range, its ticks and their labels. At least three ticks wherever the range has
/// them; large numbers in one unit, which the title names: "FLOPs per token (M)".
class ChartAxis {
public:
    /// \p horizontal_data: of the chart's x, otherwise of its y. \p most ticks, but never fewer than three.
    ChartAxis(const Chart& chart, bool horizontal_data, int most);
    /// \p range of an axis, as of a plot that is zoomed.
    ChartAxis(const Chart::Axis& axis, AxisRange range, int most);

    /// The same range with at most so many ticks, but never fewer than \p least.
    void setMostTicks(int most, int least = 3);
    [[nodiscard]] const std::vector<double>& ticks() const { return ticks_; }
    [[nodiscard]] QString label(double tick) const;
    [[nodiscard]] QString title() const;
    /// From 0 at the low end to 1 at the high end; reversed for a reversed axis. Below a logarithmic axis
    /// lies everything that is not positive.
    [[nodiscard]] double share(double value) const;
    [[nodiscard]] const AxisRange& range() const { return range_; }
    [[nodiscard]] double extent() const { return range_.high - range_.low; }
    [[nodiscard]] bool has(double value) const; ///< finite, and positive where the axis is logarithmic

private:
    Chart::Axis axis_;
    AxisRange range_;
    std::vector<double> ticks_;
    double step_ = 0;
    double unit_ = 1; ///< numbers are shown divided by it
    QString prefix_;  ///< "M" for a unit of 1e6
};

} // namespace ponderscope
