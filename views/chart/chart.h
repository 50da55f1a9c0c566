// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/theme.h"

#include <QColor>
#include <QString>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ponderscope {

/// Lines, points, bars or a density in one pair of axes, as numbers and roles: no colours, no sizes. The
/// plot widget of the window and the figure writer draw the same chart with the same ranges, ticks and
/// colours.
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
        /// The target of a click on a mark: "run:TRACE#ID", "policy:SPEC", "type:#ID", "token:SEQUENCE#ROW"
        /// of the row that predicts the token. Empty: none.
        std::vector<QString> links;
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
    /// The colour scale of cells, drawn beside the legend.
    struct Scale {
        QString label;
        double low = 0;
        double high = 1;
        bool diverging = false; ///< the middle colour is that of (low + high) / 2
    };

    QString title; ///< small, above; empty on paper by default
    QString note;  ///< what must not be concluded; below the plot
    Axis x, y;
    std::vector<Series> series;
    double dx = 1, dy = 1;      ///< of cells; dx also of bars, which stand side by side where it is below 1
    std::optional<Scale> scale; ///< of cells
    Legend legend = Legend::automatic;
    bool order_given = false; ///< the user chose the order of the legend's entries
    [[nodiscard]] bool empty() const;
};

/// The colours that a chart is drawn with.
struct ChartInks {
    Palette colours;
    std::vector<QColor> runs;  ///< one a run: A, B, and the others
    std::vector<QColor> rules; ///< one a halting rule
};
/// Colours of runs by name ("okabe_ito", "grey"); empty for "default", which is the theme's.
std::vector<QColor> palette_colours(const std::string& name, bool dark);
/// Colours of halting rules, by their number in policy_kinds(). Colour-blind readers can tell them apart.
const std::vector<QColor>& rule_colours(bool dark);
/// The inks of charts in the window.
ChartInks chart_inks(const Theme& theme);

/// Runs get the colours of these numbers of the palette, in their order; runs without a number the others.
void number_run_colours(ChartInks& inks, const std::vector<std::int64_t>& numbers);

/// The colour of a series. After the last colour of the palette they begin again: round_of tells how often
/// they have done so. Dashes and hollow points tell series of one colour apart.
QColor ink_of(const ChartInks& inks, int ink);
int round_of(const ChartInks& inks, int ink);
/// Lengths of dashes and gaps of a line; empty: solid.
std::vector<double> dashes_of(const ChartInks& inks, const Chart::Series& series);
QColor mixed(const QColor& from, const QColor& to, double share);

/// Ranges [first, last) of consecutive points of a band that have bounds.
std::vector<std::pair<std::size_t, std::size_t>> parts_of_band(const Chart::Series& series);
/// A link to the token that a row predicts.
QString token_link(std::int64_t sequence, std::int64_t row);
/// Whether \p other is hidden together with the entry \p listed of the legend: the series of its name, and
/// with a line its band and its points. A dashed line leaves a solid one of its colour.
bool is_hidden_with(const Chart::Series& listed, const Chart::Series& other);

/// The numbers as CSV: series, x, y, low, high, value. Places with names are named.
std::string chart_table(const Chart& chart);

} // namespace ponderscope
