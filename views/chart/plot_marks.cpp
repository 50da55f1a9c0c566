// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/chart/plot_marks.h"

#include "views/chart/custom_plot.h"
#include "views/chart/plot_series.h"
#include "views/common/format.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace Qt::StringLiterals;

namespace ponderscope {
namespace {

constexpr double reach = 9; ///< pixels around a mark in which it reacts

} // namespace

void PlotMarks::setAxes(QCPAxis* key, QCPAxis* value) {
    key_ = key;
    value_ = value;
}

bool PlotMarks::isShown(std::size_t series) const {
    return std::ranges::none_of(chart_.series, [&](const Chart::Series& listed) {
        return listed.listed && hidden_.contains(listed.name) &&
               is_hidden_with(listed, chart_.series[series]);
    });
}

bool PlotMarks::has(ChartMark mark) const {
    if (!mark.isValid() || static_cast<std::size_t>(mark.series) >= chart_.series.size() || mark.index < 0) {
        return false;
    }
    const auto [series, i] = of(mark);
    const bool valued = series.mark == Chart::Mark::cell && !series.value.empty();
    return series.mark != Chart::Mark::band && i < series.count() &&
           chart_.canPlot(series.x[i], series.y[i]) &&
           (!valued || (i < series.value.size() && std::isfinite(series.value[i])));
}

QString PlotMarks::text(ChartMark mark) const {
    if (!has(mark)) {
        return {};
    }
    const auto [series, i] = of(mark);
    if (i < series.labels.size() && !series.labels[i].isEmpty()) {
        return series.labels[i];
    }
    const auto value = [](const Chart::Axis& axis, double at) {
        const bool named = at >= 0 && at < static_cast<double>(axis.names.size());
        return named ? axis.names[static_cast<std::size_t>(at)] : format_number(at);
    };
    const QString place = u"%1 · %2"_s.arg(value(chart_.x, series.x[i]), value(chart_.y, series.y[i]));
    return series.name.isEmpty() ? place : series.name + u'\n' + place;
}

QString PlotMarks::link(ChartMark mark) const {
    const auto [series, i] = of(mark);
    return i < series.links.size() ? series.links[i] : QString();
}

QPointF PlotMarks::pixel(double x, double y) const {
    const QPointF at(key_->coordToPixel(x), value_->coordToPixel(y));
    return key_->orientation() == Qt::Vertical ? at.transposed() : at;
}

QPointF PlotMarks::position(ChartMark mark) const {
    const auto [series, i] = of(mark);
    return pixel(series.x[i], series.y[i]);
}

/// For a point, also on a line: its position. For a bar: its whole column. For a cell: the cell.
QRectF PlotMarks::box(ChartMark mark) const {
    const auto [series, i] = of(mark);
    const double x = series.x[i];
    const double y = series.y[i];
    const double half = chart_.dx / 2;
    if (series.mark == Chart::Mark::cell) {
        return QRectF(pixel(x - half, y - chart_.dy / 2), pixel(x + half, y + chart_.dy / 2)).normalized();
    }
    if (series.mark == Chart::Mark::bar) {
        const QCPRange range = value_->range();
        return QRectF(pixel(x - half, range.lower), pixel(x + half, range.upper)).normalized();
    }
    const double radius = series.strong ? 6 : 0; // the whole inside of a ring reacts
    return QRectF(pixel(x, y), QSizeF(0, 0)).adjusted(-radius, -radius, radius, radius);
}

ChartMark PlotMarks::at(QPointF position) const {
    ChartMark best;
    if (key_ == nullptr ||
        !QRectF(key_->axisRect()->rect()).adjusted(-reach, -reach, reach, reach).contains(position)) {
        return best;
    }
    double least = reach;
    double width = 0;
    for (std::size_t s = 0; s < chart_.series.size(); ++s) {
        const Chart::Series& series = chart_.series[s];
        const std::size_t count = isShown(s) ? series.x.size() : 0;
        for (std::size_t i = 0; i < count; ++i) {
            const ChartMark mark{static_cast<int>(s), static_cast<int>(i)};
            if (!has(mark)) {
                continue;
            }
            const QRectF box = this->box(mark);
            const double x = std::max({box.left() - position.x(), position.x() - box.right(), 0.0});
            const double y = std::max({box.top() - position.y(), position.y() - box.bottom(), 0.0});
            const double away = std::hypot(x, y);
            if (away <= least && (away < least || !best.isValid() || series.strong || box.width() < width)) {
                least = away;
                width = box.width();
                best = mark;
            }
        }
    }
    return best;
}

/// The next cell in a direction of the screen, in the same row or column.
ChartMark PlotMarks::cellBeside(ChartMark from, QPointF direction) const {
    ChartMark best;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t s = 0; s < chart_.series.size(); ++s) {
        for (std::size_t i = 0; i < chart_.series[s].x.size(); ++i) {
            const ChartMark mark{static_cast<int>(s), static_cast<int>(i)};
            if (!has(mark)) {
                continue;
            }
            const QPointF way = position(mark) - position(from);
            const double along = QPointF::dotProduct(way, direction);
            const double across = QPointF::dotProduct(way, direction.transposed());
            if (along > 0.5 && along < least && std::abs(across) < 0.5) {
                least = along;
                best = mark;
            }
        }
    }
    return best;
}

ChartMark PlotMarks::beside(ChartMark from, int along, int across) const {
    const int count = static_cast<int>(chart_.series.size());
    const bool begins = !has(from);
    if (begins) {
        from = {0, -1};
        along = 1;
        across = 0;
    } else if (of(from).series.mark == Chart::Mark::cell) {
        return cellBeside(from, QPointF(along, across));
    }
    const auto size = [&](int s) {
        return static_cast<int>(chart_.series[static_cast<std::size_t>(s)].x.size());
    };
    const auto is_mark = [&](ChartMark mark) {
        return has(mark) && isShown(static_cast<std::size_t>(mark.series));
    };
    for (int s = from.series + across; across != 0 && s >= 0 && s < count; s += across) {
        if (const ChartMark mark{s, std::min(from.index, size(s) - 1)}; is_mark(mark)) {
            return mark;
        }
    }
    for (int s = from.series; along != 0 && s < count; s += begins ? 1 : count) {
        for (int i = from.index + along; i >= 0 && i < size(s); i += along) {
            if (is_mark({s, i})) {
                return {s, i};
            }
        }
    }
    return {};
}

} // namespace ponderscope
