// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/figure/chart_legend.h"

#include "views/figure/writer/display_list.h"

#include <algorithm>

namespace ponderscope::figure {
namespace {

using Series = Chart::Series;

constexpr int most_rows_above = 2;
constexpr double most_of_width = 0.46; ///< largest share for a list at the side
constexpr double most_of_a_wide_box = 0.6;
constexpr double line_length = 1.9; ///< length of an entry's line, in font sizes
constexpr double list_gap = 1.0;    ///< between plot and list, in font sizes

double line_of(const Style& style) {
    return style.size * 1.35;
}

/// In a narrow box, first shortens the bar, then the label.
ScaleLegend scale_legend(const Chart& chart, const Style& style, double width) {
    ScaleLegend legend;
    legend.label = chart.scale->label;
    legend.map = chart.scale->diverging ? ColourMap::diverging(style.dark) : style.cells;
    legend.scale = chart.scale->colours();
    legend.signs = chart.scale->diverging && chart.scale->low == -chart.scale->high;
    for (const Series& series : chart.series) {
        for (const double value : series.value) {
            legend.clipped_low = legend.clipped_low || value < legend.scale.low;
            legend.clipped_high = legend.clipped_high || value > legend.scale.high;
        }
    }
    legend.bar = std::min(56.0, style.size * 7);
    const double over = scale_legend_width(style, legend) - width;
    if (over > 0) {
        const double shorter = std::min(over, legend.bar / 2);
        legend.bar -= shorter;
        legend.label = style.fonts.elided(legend.label, style.soft,
                                          style.fonts.width(legend.label, style.soft) - (over - shorter));
    }
    return legend;
}

} // namespace

void draw_point(DisplayList& list, const Style& style, QPointF at, double radius, const Series& series,
                const QColor& colour) {
    if (is_hollow(style, series)) {
        list.circle(at, radius, style.colours.panel, {colour, radius * 0.4, {}, false});
    } else {
        list.circle(at, radius, colour);
    }
}

ChartLegend::ChartLegend(const Style& style, const Chart& chart, QSizeF box) : style_(style), chart_(chart) {
    double widest = 0;
    for (const Series& series : chart.series) {
        if (chart.legend == Chart::Legend::none || series.name.isEmpty() || !series.listed) {
            continue;
        }
        const double wide = style.size * (line_length + 0.4) + style.fonts.width(series.name, style.small);
        entries_.push_back({&series, wide});
        widest = std::max(widest, wide);
    }
    DisplayList unseen;
    height_ = flow(unseen, {0, 0, box.width(), 0});
    const double above = chart.scale && entries_.empty() ? 0 : height_;
    const int most = box.height() < style.size * 18 ? 1 : most_rows_above;
    // If a list at the side would shorten names, the legend stays above, with any number of lines.
    const double room = box.width() * (box.width() > 2.2 * box.height() ? most_of_a_wide_box : most_of_width);
    const bool fits = widest + list_gap * style.size <= room;
    const bool folds =
        !entries_.empty() && (chart.legend == Chart::Legend::right ||
                              (chart.legend == Chart::Legend::automatic &&
                               above > (most + 0.5) * line_of(style) && entries_.size() > 1 && fits));
    if (folds) {
        beside_ = true;
        width_ = std::min(widest + list_gap * style.size, room);
        height_ = chart.scale ? line_of(style) + style.size * 0.3 : 0;
    }
}

double ChartLegend::listHeight() const {
    return beside_ ? static_cast<double>(entries_.size()) * line_of(style_) : 0;
}

void ChartLegend::drawEntry(DisplayList& list, const Entry& entry, QPointF at, double room) const {
    const Series& series = *entry.series;
    const QColor colour = ink_of(style_, series.ink);
    const double size = style_.size;
    if (series.mark == Chart::Mark::line) {
        list.line(at, at + QPointF(size * line_length, 0), {colour, 1.6, dashes_of(style_, series), false});
    } else if (series.mark == Chart::Mark::point) {
        draw_point(list, style_, at + QPointF(size * line_length / 2, 0), size * 0.25, series, colour);
    } else {
        list.rect({at.x() + size * (line_length - 0.8) / 2, at.y() - size * 0.35, size * 0.8, size * 0.7},
                  series.mark == Chart::Mark::band ? mixed(style_.colours.panel, colour, 0.25) : colour);
    }
    const double left = size * (line_length + 0.4);
    list.text(style_.fonts.elided(series.name, style_.small, room - left),
              at + QPointF(left, style_.fonts.cap_height(style_.small) / 2), style_.small);
}

double ChartLegend::flow(DisplayList& list, const QRectF& box) const {
    double x = box.left();
    double y = box.top();
    const double line = line_of(style_);
    bool any = false;
    const auto make_room = [&](double wide) {
        if (any && x + wide > box.right()) {
            x = box.left();
            y += line;
        }
        any = true;
    };
    for (const Entry& entry : entries_) {
        const double wide = std::min(entry.width, box.width());
        make_room(wide);
        drawEntry(list, entry, {x, y + line / 2}, wide + 0.01);
        x += wide + style_.size;
    }
    if (chart_.scale) {
        const ScaleLegend legend = scale_legend(chart_, style_, box.width());
        make_room(scale_legend_width(style_, legend));
        draw_scale_legend(list, style_, {x, y + line / 2 + style_.fonts.cap_height(style_.small) / 2},
                          legend);
    }
    return any ? y + line - box.top() + style_.size * 0.3 : 0;
}

void ChartLegend::draw(DisplayList& list, const QRectF& box, const QRectF& plot) const {
    if (!beside_) {
        flow(list, box);
        return;
    }
    if (chart_.scale) {
        draw_scale_legend(
            list, style_,
            {box.left(), box.top() + line_of(style_) / 2 + style_.fonts.cap_height(style_.small) / 2},
            scale_legend(chart_, style_, box.width()));
    }
    const double left = box.right() - width_ + list_gap * style_.size;
    const double top = box.top() + height_;
    const auto rows = static_cast<double>(std::max<std::size_t>(1, entries_.size()));
    const double line = std::min(line_of(style_), (box.bottom() - top) / rows);
    // The list starts at the top of the plot, or higher if it does not fit.
    double middle = std::max(top, std::min(plot.top() - line / 2, box.bottom() - rows * line)) + line / 2;
    for (const Entry& entry : entries_) {
        drawEntry(list, entry, {left, middle}, box.right() - left + 0.01);
        middle += line;
    }
}

} // namespace ponderscope::figure
