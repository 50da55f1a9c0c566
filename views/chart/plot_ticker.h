// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/chart/chart_axis.h"
#include "views/chart/custom_plot.h"
#include "views/common/theme.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace ponderscope {

/// Ticks of a ChartAxis in the visible range, as many as fit.
class PlotTicker : public QCPAxisTicker {
public:
    PlotTicker(const QCPAxis* axis, Chart::Axis of, const Theme& theme)
        : axis_(axis), of_(std::move(of)), theme_(theme) {}
    void generate(const QCPRange& range, const QLocale& /*locale*/, QChar /*format*/, int /*precision*/,
                  QVector<double>& ticks, QVector<double>* between, QVector<QString>* labels) override {
        const bool horizontal = axis_->orientation() == Qt::Horizontal;
        const QFontMetrics metrics(theme_.small());
        ChartAxis made(of_, {range.lower, range.upper}, horizontal ? 12 : 6);
        if (!horizontal) {
            const bool named = !of_.names.empty();
            const double line = metrics.height() * (named ? 1.0 : 2.2);
            const int fit = static_cast<int>(axis_->axisRect()->height() / line);
            made.setMostTicks(std::clamp(fit, 1, named ? 1000 : 6), fit < 3 ? 2 : 3);
        }
        const auto inside = [&] {
            std::vector<double> found = made.ticks();
            const double slack = of_.log ? 0 : 1e-9 * (range.upper - range.lower);
            std::erase_if(
                found, [&](double tick) { return tick < range.lower - slack || tick > range.upper + slack; });
            return found;
        };
        const auto touch = [&] {
            double before = -1e9;
            const std::vector<double> found = inside();
            for (std::size_t i = 0; i < found.size(); ++i) {
                const double tick = found[axis_->rangeReversed() ? found.size() - 1 - i : i];
                const double half = metrics.horizontalAdvance(made.label(tick)) / 2.0;
                const double middle = axis_->coordToPixel(tick);
                if (middle - half < before + 6) {
                    return true;
                }
                before = middle + half;
            }
            return false;
        };
        for (int most = static_cast<int>(made.ticks().size()) - 1; horizontal && most > 0 && touch();
             --most) {
            made.setMostTicks(most, 2);
        }
        ticks.clear();
        for (const double tick : inside()) {
            ticks.append(tick);
        }
        if (between != nullptr) {
            between->clear();
        }
        if (labels != nullptr) {
            labels->clear();
            const int widest = axis_->parentPlot()->width() * (horizontal ? 90 : 42) / 100;
            for (const double tick : ticks) {
                labels->append(metrics.elidedText(made.label(tick), Qt::ElideRight, widest));
            }
        }
    }

private:
    const QCPAxis* axis_;
    Chart::Axis of_;
    const Theme& theme_;
};

} // namespace ponderscope
