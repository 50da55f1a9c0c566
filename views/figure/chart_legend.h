// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/figure/parts.h"

#include <QSizeF>

namespace ponderscope::figure {

/// The legend of a chart: one or two lines above the plot, else a list on the right.
class ChartLegend {
public:
    /// Lays out the legend of a chart in a box of this size.
    ChartLegend(const Style& style, const Chart& chart, QSizeF box);

    [[nodiscard]] bool beside() const { return beside_; }
    [[nodiscard]] double height() const { return height_; } ///< 0: the legend is beside the plot
    [[nodiscard]] double width() const { return width_; }   ///< width at the right, including the gap
    [[nodiscard]] double listHeight() const;
    /// Draws the legend: above the plot at the top of \p box; beside the plot at the right of \p box, from
    /// the top of \p plot on.
    void draw(DisplayList& list, const QRectF& box, const QRectF& plot) const;

private:
    struct Entry {
        const Chart::Series* series;
        double width; ///< width of sample and name
    };
    double flow(DisplayList& list, const QRectF& box) const; ///< returns the height
    void drawEntry(DisplayList& list, const Entry& entry, QPointF at, double room) const;

    const Style& style_;
    const Chart& chart_;
    std::vector<Entry> entries_;
    bool beside_ = false;
    double height_ = 0;
    double width_ = 0;
};

void draw_point(DisplayList& list, const Style& style, QPointF at, double radius, const Chart::Series& series,
                const QColor& colour);

} // namespace ponderscope::figure
