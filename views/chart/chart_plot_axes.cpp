// SPDX-License-Identifier: GPL-3.0-or-later
// Axes of a chart in the window: ticks, ranges, names, colours.
#include "views/chart/chart_plot.h"
#include "views/chart/custom_plot.h"
#include "views/common/labels.h"

#include <QLabel>

#include <algorithm>
#include <cmath>

namespace ponderscope {

void ChartPlot::dress() {
    const Palette& colours = theme_.colours();
    const bool contrast = theme_.appearance() == Appearance::contrast;
    for (QLabel* label : {title_, note_, hint_}) {
        QPalette palette = label->palette();
        palette.setColor(QPalette::WindowText, label == title_ ? colours.text : colours.soft);
        label->setPalette(palette);
        label->setFont(label == title_ ? theme_.strong() : label == hint_ ? theme_.body() : theme_.small());
    }
    plot_->setBackground(QBrush(colours.panel));
    for (QCPAxis* axis : {plot_->xAxis, plot_->yAxis}) {
        const bool horizontal = axis == plot_->xAxis;
        axis->setBasePen(horizontal ? QPen(colours.soft) : QPen(Qt::NoPen));
        axis->setTickPen(Qt::NoPen);
        axis->setSubTickPen(Qt::NoPen);
        axis->setTickLength(0);
        axis->setTickLabelPadding(horizontal ? 4 : 6);
        axis->setTickLabelFont(theme_.small());
        axis->setTickLabelColor(colours.soft);
        axis->setLabelFont(theme_.small());
        axis->setLabelColor(colours.soft);
        axis->setLabelPadding(2);
        // Series stand out from the grid behind them, in high contrast too.
        axis->grid()->setPen(QPen(contrast ? colours.faint : colours.line));
        axis->grid()->setZeroLinePen(Qt::NoPen);
        axis->grid()->setVisible(horizontal == sideways_);
    }
    QColor veil = colours.a;
    veil.setAlphaF(0.15F);
    plot_->selectionRect()->setPen(QPen(colours.a));
    plot_->selectionRect()->setBrush(veil);
    if (hovered_ != nullptr) {
        const QBrush inside(Qt::NoBrush);
        hovered_->setScatterStyle(
            QCPScatterStyle(QCPScatterStyle::ssCircle, QPen(colours.text, 1.5), inside, 10));
        selected_->setScatterStyle(
            QCPScatterStyle(QCPScatterStyle::ssCircle, QPen(colours.a, 2.5), inside, 11));
        // The last label of the horizontal axis stays on the widget.
        const ChartAxis across(chart_, !sideways_, 12);
        int half = 0;
        for (const double tick : across.ticks()) {
            half = std::max(half, QFontMetrics(theme_.small()).horizontalAdvance(across.label(tick)) / 2);
        }
        // So does the topmost number of the vertical axis: QCustomPlot leaves out labels that are cut.
        const int above = QFontMetrics(theme_.small()).height() / 2 + 2;
        plot_->axisRect()->setMinimumMargins(QMargins(4, above, std::clamp(half + 2, 8, 60), 4));
        ring(hovered_, current_);
        ring(selected_, selectedMark_);
        showRange();
    }
}

/// After the range of an axis changed: keeps it within the data, names the axes, clips.
void ChartPlot::showRange() {
    if (hovered_ == nullptr || !hintText_.isEmpty()) {
        return; // under construction
    }
    for (const auto& [axis, whole] : {std::pair(key_, wholeX_), std::pair(value_, wholeY_)}) {
        const QCPRange range = axis->range().bounded(whole.low, whole.high);
        if (range.size() > 0 && range != axis->range()) {
            axis->setRange(range); // comes here again
            return;
        }
    }
    const auto title = [&](QCPAxis* axis, const Chart::Axis& of) {
        return ChartAxis(of, {axis->range().lower, axis->range().upper}, 6).title();
    };
    const QString x = title(key_, chart_.x);
    const QString y = title(value_, chart_.y);
    upright_->say(sideways_ ? x : y);
    plot_->xAxis->setLabel(sideways_ ? y : x);
    ring(hovered_, current_);
    ring(selected_, selectedMark_);
}

bool ChartPlot::isZoomed() const {
    const auto differs = [](AxisRange a, AxisRange b) {
        const double slack = 1e-9 * (b.high - b.low);
        return std::abs(a.low - b.low) > slack || std::abs(a.high - b.high) > slack;
    };
    return key_ != nullptr && (differs(shownRange(true), wholeX_) || differs(shownRange(false), wholeY_));
}

AxisRange ChartPlot::shownRange(bool horizontal_data) const {
    const QCPRange range = (horizontal_data ? key_ : value_)->range();
    return {range.lower, range.upper};
}

void ChartPlot::showAll() {
    if (key_ != nullptr) {
        key_->setRange(wholeX_.low, wholeX_.high);
        value_->setRange(wholeY_.low, wholeY_.high);
        showRange();
        plot_->replot(QCustomPlot::rpQueuedReplot);
    }
}

void ChartPlot::zoom(double factor) {
    if (key_ != nullptr) {
        key_->scaleRange(factor);
        value_->scaleRange(factor);
        plot_->replot(QCustomPlot::rpQueuedReplot);
    }
}

void ChartPlot::pan(QPointF shares) {
    const QRect rect = plot_->axisRect()->rect();
    const auto move = [](QCPAxis* axis, double pixels) {
        const double low = axis->coordToPixel(axis->range().lower) + pixels;
        const double high = axis->coordToPixel(axis->range().upper) + pixels;
        axis->setRange(axis->pixelToCoord(low), axis->pixelToCoord(high));
    };
    move(plot_->xAxis, shares.x() * rect.width());
    move(plot_->yAxis, shares.y() * rect.height());
    plot_->replot(QCustomPlot::rpQueuedReplot);
}

} // namespace ponderscope
