// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QColor>
#include <QPointF>
#include <QRectF>
#include <QString>

#include <limits>
#include <optional>
#include <string>
#include <utility>
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
        band,  ///< between low and high along x; a NaN parts it, and a place on its own is an upright bar
        cell,  ///< a rectangle of dx × dy about (x, y), coloured by value; NaN is left empty
    };
    /// Colour by role: run A, run B, further runs in a fixed order, halting rules by their number in
    /// policy_kinds(), text, soft.
    enum Ink : int { soft = -2, text = -1, a = 0, b = 1, other = 2, rule = 1000 };
    enum class Legend : std::uint8_t {
        automatic, ///< above the plot in up to two lines, else beside it
        above,
        right,
        none
    };

    struct Series {
        QString name;       ///< in the legend and in tables; empty: not named
        bool listed = true; ///< false: the legend leaves it out, as another series of its colour says enough
        Mark mark = Mark::line;
        int ink = a; ///< Ink, or other + n, or rule + n
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
        bool reversed = false;      ///< the low end is at the top, or at the right
        bool si = false;            ///< in k, M, G, which the title then names: "FLOPs (M)"
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
    Legend legend = Legend::automatic;
    bool order_given = false; ///< somebody chose how the legend's entries follow each other
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

/// The places [first, last) of a band that stand side by side, between those without bounds.
std::vector<std::pair<std::size_t, std::size_t>> parts_of_band(const Chart::Series& series);

/// Draws into \p box (points on paper, pixels on the screen: \p style says how large letters are). The note
/// takes up to \p note_lines lines and is cut short behind them. Names that do not fit side by side under a
/// plot of points or bars stand one above the other at its left, and the plot lies on its side.
ChartPlaces draw_chart(DisplayList& list, const Style& style, const QRectF& box, const Chart& chart,
                       int note_lines);
/// The height at which all of a chart can be read in this width: its legend, its names, its note, and a plot
/// of at least \p plot.
double readable_height(const Style& style, double width, const Chart& chart, int note_lines, double plot);

/// The very numbers: series, x, y, low, high, value. Places with names are named.
std::string chart_table(const Chart& chart);

/// The chart as a pgfplots environment, to be \input into a paper (\usepackage{pgfplots}): the numbers are in
/// it, so that the paper's own fonts and colours apply.
std::string chart_pgfplots(const Chart& chart, const Style& style, double width_mm, double height_mm);

} // namespace ponderscope::figure
