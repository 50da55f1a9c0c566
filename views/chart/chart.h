// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/common/colour_map.h"
#include "views/common/theme.h"

#include <QColor>
#include <QString>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ponderscope {

/// Lines, points, bars or a density in one pair of axes. Series have a role (Ink) instead of colours and
/// sizes. The window's plot and the figure writer draw a chart with the same ranges, ticks and colours.
struct Chart {
    enum class Mark : std::uint8_t {
        line,  ///< through (x, y) in the given order; a NaN interrupts the line
        point, ///< a point, with whiskers from low to high if both are given
        bar,   ///< a bar from 0 to y, centred at x
        band,  ///< between low and high along x; a NaN interrupts the band; with one x, an upright bar
        cell,  ///< dx × dy around (x, y), coloured by value (NaN: not drawn); without values, by ink
    };
    /// A colour by role: run A, run B, further runs in a fixed order, halting rules by their number in
    /// policy_kinds(), text, soft text, and the grey of steps that did not run.
    enum Ink : int { halted = -3, soft = -2, text = -1, a = 0, b = 1, other = 2, rule = 1000 };
    enum class Legend : std::uint8_t {
        automatic, ///< above the plot in up to two lines, otherwise beside it
        above,
        right,
        none
    };

    struct Series {
        QString name;       ///< name in the legend and in tables; empty: no name
        bool listed = true; ///< false: the legend does not list this series, but another of its colour
        Mark mark = Mark::line;
        int ink = a; ///< an Ink; other + n: a further run; rule + n: a halting rule
        bool dashed = false;
        bool faint = false;  ///< lines: drawn behind more important lines
        bool strong = false; ///< a larger point with a ring in the paper's colour
        std::vector<double> x, y;
        std::vector<double> low, high; ///< ends of bands and whiskers
        std::vector<double> value; ///< value of each cell, on the chart's scale; without a scale, from 0 to 1
        std::vector<QString> labels; ///< a label for each mark, shown at the cursor
        /// The target of a click on each mark: "policy:SPEC", "type:ID", or "token:SEQUENCE#ROW" with the
        /// row that predicts the token. Empty: no targets.
        std::vector<QString> links;
        [[nodiscard]] std::size_t count() const { return std::min(x.size(), y.size()); }
        [[nodiscard]] bool isBounded(std::size_t i) const; ///< has a finite low and high

        static Series of(Mark mark, int ink = a, const QString& name = {});
        /// A soft, dashed line between two points, to compare the marks with.
        static Series reference(double x0, double y0, double x1, double y1);
        /// Adds a mark at (\p at, \p height). A null label adds no label.
        void add(double at, double height, const QString& label = {});
        void add(double at, double height, double from, double to, const QString& label = {});
        void addCell(double column, double row, double shown, const QString& label);
    };
    struct Axis {
        QString label;
        bool whole = false;     ///< ticks at integers only
        bool from_zero = false; ///< the range begins at 0
        std::optional<double> low, high;
        bool reversed = false;      ///< the low end is at the top, or at the right
        bool si = false;            ///< numbers in k, M or G; the title names the unit: "FLOPs (M)"
        bool log = false;           ///< omits values that are not positive
        std::vector<QString> names; ///< axis of categories: the names at 0, 1, …
    };
    /// The colour scale of cells, drawn beside the legend.
    struct Scale {
        QString label;
        double low = 0;
        double high = 1;
        bool diverging = false; ///< the middle colour stands for (low + high) / 2
        bool logarithmic = false;
        [[nodiscard]] ColourScale colours() const { return {low, high, logarithmic}; }
    };

    QString title; ///< in bold letters above the plot; figures have none by default
    QString note;  ///< a warning against wrong conclusions, below the plot
    Axis x, y;
    std::vector<Series> series;
    double dx = 1, dy = 1;      ///< size of cells; bars are narrower than dx
    std::optional<Scale> scale; ///< the scale of cells
    Legend legend = Legend::automatic;
    [[nodiscard]] bool empty() const;
    [[nodiscard]] bool has(Mark mark) const; ///< whether some series has the mark
    /// Whether the axes can show the point: both numbers are finite, and positive on a logarithmic axis.
    [[nodiscard]] bool canPlot(double at, double height) const;
};

struct ChartInks {
    Palette colours;
    std::vector<QColor> runs;  ///< one for each run: A, B, and the others
    std::vector<QColor> rules; ///< one for each halting rule
};
/// Colours of runs in a palette: "okabe_ito", "grey". Empty for "default": the theme's colours apply.
std::vector<QColor> palette_colours(const std::string& name, bool dark);
/// Colours of halting rules by their number in policy_kinds(). Distinguishable for colour-blind readers.
const std::vector<QColor>& rule_colours(bool dark);
ChartInks chart_inks(const Theme& theme);

/// Run i gets colour \p numbers[i] of the palette. Further runs get the remaining colours.
void number_run_colours(ChartInks& inks, const std::vector<std::int64_t>& numbers);

/// The colour of a series. Colours repeat after the end of the palette; round_of counts the repetitions.
/// Dashes and hollow points distinguish series of one colour.
QColor ink_of(const ChartInks& inks, int ink);
int round_of(const ChartInks& inks, int ink);
/// The colour of a series' marks: ink_of(), paler for a faint series.
QColor colour_of(const ChartInks& inks, const Chart::Series& series);
/// Whether the points of a series are rings filled with the paper's colour.
bool is_hollow(const ChartInks& inks, const Chart::Series& series);
/// Lengths of a line's dashes and gaps; empty: solid.
std::vector<double> dashes_of(const ChartInks& inks, const Chart::Series& series);
QColor mixed(const QColor& from, const QColor& to, double share);

/// The parts of a band between NaNs: ranges [first, last) of consecutive points with finite low and high.
std::vector<std::pair<std::size_t, std::size_t>> parts_of_band(const Chart::Series& series);
QString token_link(std::int64_t sequence, std::int64_t row);
QString layer_link(int layer, int step);
/// Whether hiding the legend entry \p listed also hides \p other: yes if they have the same name, or if \p
/// listed is a line and \p other its band or points. A dashed line never hides a solid one of its colour.
bool is_hidden_with(const Chart::Series& listed, const Chart::Series& other);

/// The numbers as CSV: series, x, y, low, high, value. A category appears as its name.
std::string chart_table(const Chart& chart);

} // namespace ponderscope
