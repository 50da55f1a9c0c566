// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QColor>
#include <QPointF>
#include <QRectF>
#include <QString>

#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace ponderscope::figure {

class DisplayList;
struct Style;

/// Lines, points, bars or a density in one pair of axes, as numbers and roles: no colours, no sizes. The
/// window and the figure on paper draw the same chart by the same code, so that they cannot disagree.
struct Chart {
    enum class Mark : std::uint8_t {
        line,  ///< through (x, y) in the order given; a NaN breaks it
        point, ///< with whiskers from low to high where those are given
        bar,   ///< from 0 to y, centred on x
        band,  ///< between low and high along x
        cell,  ///< a rectangle of dx × dy about (x, y), coloured by value; NaN is left empty
    };
    /// Colour by role: run A, run B, further runs or policies in a fixed order, text, soft.
    enum Ink : int { soft = -2, text = -1, a = 0, b = 1, other = 2 };

    struct Series {
        QString name;       ///< in the legend and in tables; empty: not named
        bool listed = true; ///< false: the legend leaves it out, as another series of its colour says enough
        Mark mark = Mark::line;
        int ink = a; ///< Ink, or other + n
        bool dashed = false;
        bool faint = false;  ///< lines: behind another that matters more
        bool strong = false; ///< a larger point, a ring of paper around it
        std::vector<double> x, y;
        std::vector<double> low, high; ///< of bands and whiskers
        std::vector<double> value;     ///< of cells: on the chart's scale, 0 to 1 without one
        std::vector<QString> labels;   ///< of the marks, for the cursor
    };
    struct Axis {
        QString label;
        bool whole = false;     ///< ticks at whole numbers only
        bool from_zero = false; ///< the range begins at 0
        std::optional<double> low, high;
        bool si = false;            ///< "1.2 G" for FLOPs
        bool log = false;           ///< values from 0 down are left out
        std::vector<QString> names; ///< of the places 0, 1, …: categories instead of numbers
    };
    /// What the colours of cells stand for; drawn beside the legend.
    struct Scale {
        QString label;
        double low = 0;
        double high = 1;
        bool diverging = false; ///< the middle colour is that of (low + high) / 2
    };

    QString title; ///< small, above; empty on paper unless asked for
    QString note;  ///< what must not be concluded; below the plot
    Axis x, y;
    std::vector<Series> series;
    double dx = 1, dy = 1;      ///< of cells; dx also of bars, which stand side by side where it is below 1
    std::optional<Scale> scale; ///< of cells
    [[nodiscard]] bool empty() const;
};

/// Where the marks of a chart came to lie, for the cursor.
struct ChartPlaces {
    struct Place {
        std::size_t series = 0;
        std::size_t index = 0;
        QRectF box; ///< points have a box about them
    };
    QRectF plot;
    std::vector<Place> places;
    /// The mark under or nearest to \p position within \p reach; nullptr: none.
    [[nodiscard]] const Place* at(QPointF position, double reach) const;
};

/// The colour of a series. Behind the last of the palette they begin anew: how often they have done so, tells
/// series of one colour apart, by dashes and hollow points.
QColor ink_of(const Style& style, int ink);
int round_of(const Style& style, int ink);

/// Draws into \p box (points on paper, pixels on the screen: \p style says how large letters are). The note
/// takes up to \p note_lines lines and is cut short behind them.
ChartPlaces draw_chart(DisplayList& list, const Style& style, const QRectF& box, const Chart& chart,
                       int note_lines = 1);
/// What a legend of more than two lines and a note of more than one take of a chart's height.
double height_beside_plot(const Style& style, double width, const Chart& chart, int note_lines);

/// The very numbers: series, x, y, low, high, value. Places with names are named.
std::string chart_table(const Chart& chart);

/// The chart as a pgfplots environment, to be \input into a paper (\usepackage{pgfplots}): the numbers are in
/// it, so that the paper's own fonts and colours apply.
std::string chart_pgfplots(const Chart& chart, const Style& style, double width_mm, double height_mm);

} // namespace ponderscope::figure
