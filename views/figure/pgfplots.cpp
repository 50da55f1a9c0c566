// SPDX-License-Identifier: GPL-3.0-or-later
// Charts for LaTeX: a pgfplots axis that contains the numbers, for \input. The paper's fonts apply.
#include "views/figure/chart_drawing.h"

#include "core/stats/data_table.h"
#include "views/chart/chart_axis.h"
#include "views/figure/parts.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace ponderscope::figure {
namespace {

using Series = Chart::Series;

std::string tex(const QString& text) {
    return plain_text::tex(text.toStdString());
}

std::string number_of(double value) {
    return std::isfinite(value) ? csv_number(value) : "nan";
}

std::string hex(const QColor& colour) {
    return colour.name().mid(1).toUpper().toStdString();
}

/// The used colours, by hexadecimal name.
using Colours = std::set<std::string>;

std::string colour_name(const QColor& colour, Colours& colours) {
    return "ps" + *colours.insert(hex(colour)).first;
}

/// The options of an axis. They always state the chart's limits, because pgfplots finds none in filled cells.
std::string axis_options(const Chart& chart, bool horizontal) {
    const Chart::Axis& axis = horizontal ? chart.x : chart.y;
    const AxisRange range = ChartAxis(chart, horizontal, 6).range();
    const std::string x = horizontal ? "x" : "y";
    std::string text;
    if (!axis.label.isEmpty()) {
        text += "  " + x + "label={" + tex(axis.label) + "},\n";
    }
    if (axis.log) {
        text += "  " + x + "mode=log,\n";
    }
    if (axis.reversed) {
        text += "  " + x + " dir=reverse,\n";
    }
    text += "  " + x + "min=" + number_of(range.low) + ", " + x + "max=" + number_of(range.high) + ",\n";
    if (!axis.names.empty()) {
        std::string labels;
        for (const QString& one : axis.names) {
            labels += (labels.empty() ? "{" : ",{") + tex(one) + "}";
        }
        text += "  " + x + "tick={0,...," + std::to_string(axis.names.size() - 1) + "},\n  " + x +
                "ticklabels={" + labels + "},\n" +
                (horizontal ? "  xticklabel style={rotate=90, anchor=east},\n" : "");
    }
    return text;
}

std::string coordinates(const Series& series, const std::vector<double>& y, bool with_bounds = false) {
    std::string text;
    for (std::size_t i = 0; i < std::min(series.x.size(), y.size()); ++i) {
        text += "    (" + number_of(series.x[i]) + "," + number_of(y[i]) + ")";
        if (with_bounds && series.isBounded(i)) {
            text += " += (0," + number_of(series.high[i] - y[i]) + ") -= (0," +
                    number_of(y[i] - series.low[i]) + ")";
        }
        text += "\n";
    }
    return text;
}

std::string plot_of(const Chart& chart, const Series& series, const Style& style, Colours& colours) {
    const std::string colour = colour_name(ink_of(style, series.ink), colours);
    const bool listed = series.listed && !series.name.isEmpty();
    const std::string entry = listed ? "  \\addlegendentry{" + tex(series.name) + "}\n" : "";
    const std::string forget = listed ? "" : ", forget plot";
    const int round = round_of(style, series.ink);
    switch (series.mark) {
    case Chart::Mark::line:
        return "  \\addplot[" + colour + ", thick" +
               (series.dashed ? ", dashed"
                : round == 1  ? ", dash dot"
                : round > 1   ? ", dotted"
                              : "") +
               (series.faint ? ", opacity=0.35" : "") + forget + "] coordinates {\n" +
               coordinates(series, series.y) + "  };\n" + entry;
    case Chart::Mark::point: {
        const bool bounds = !series.low.empty();
        return "  \\addplot[" + colour + ", only marks, mark size=1.2pt" + (round > 0 ? ", mark=o" : "") +
               forget + (bounds ? ", error bars/.cd, y dir=both, y explicit" : "") + "] coordinates {\n" +
               coordinates(series, series.y, bounds) + "  };\n" + entry;
    }
    case Chart::Mark::bar:
        return "  \\addplot[ybar, bar width=0.72, fill=" + colour + ", draw=none" + forget +
               "] coordinates {\n" + coordinates(series, series.y) + "  };\n" + entry;
    case Chart::Mark::band: {
        // The outline, along the high ends and back along the low ends, needs no further library.
        std::string text;
        const auto add = [&](const std::string& paint, const std::string& outline) {
            text += "  \\addplot[" + paint + (text.empty() ? forget : ", forget plot") + "] coordinates {\n" +
                    outline + "  };\n" + (text.empty() ? entry : "");
        };
        const auto point = [&](std::size_t i, double y) {
            return "    (" + number_of(series.x[i]) + "," + number_of(y) + ")\n";
        };
        for (const auto& [first, last] : parts_of_band(series)) {
            std::string outline;
            for (std::size_t i = first; i < last; ++i) {
                outline += point(i, series.high[i]);
            }
            for (std::size_t i = last; i-- > first;) {
                outline += point(i, series.low[i]);
            }
            add(last - first == 1 ? colour + ", opacity=0.22, line width=6pt, area legend"
                                  : "fill=" + colour + ", fill opacity=0.22, draw=none, area legend",
                outline);
        }
        return text;
    }
    case Chart::Mark::cell: {
        const bool diverging = chart.scale && chart.scale->diverging;
        const ColourMap map = diverging ? ColourMap::diverging(style.dark) : style.cells;
        const ColourScale scale = chart.scale.value_or(Chart::Scale{}).colours();
        const bool plain = series.value.empty();
        std::string text;
        for (std::size_t i = 0; i < (plain ? series.x.size() : series.value.size()); ++i) {
            if (!plain && !std::isfinite(series.value[i])) {
                continue;
            }
            text += "  \\fill[" +
                    (plain ? colour : colour_name(QColor(map.at(scale.position(series.value[i]))), colours)) +
                    "] (axis cs:" + number_of(series.x[i] - chart.dx / 2) + "," +
                    number_of(series.y[i] - chart.dy / 2) +
                    ") rectangle (axis cs:" + number_of(series.x[i] + chart.dx / 2) + "," +
                    number_of(series.y[i] + chart.dy / 2) + ");\n";
        }
        return text;
    }
    }
    return {};
}

} // namespace

std::string chart_pgfplots(const Chart& chart, const Style& style, double width_mm, double height_mm) {
    Colours colours;
    std::string plots;
    bool legend = false;
    for (const Series& series : chart.series) {
        plots += plot_of(chart, series, style, colours);
        legend = legend || (series.listed && !series.name.isEmpty());
    }
    std::string note;
    if (!chart.note.isEmpty()) {
        note = "% " + chart.note.simplified().toStdString() + "\n";
    }
    if (chart.scale) {
        note += "% colours: " + chart.scale->label.simplified().toStdString() + ", from " +
                number_of(chart.scale->low) + " to " + number_of(chart.scale->high) + "\n";
    }
    for (const std::string& one : colours) {
        note += "\\definecolor{ps" + one + "}{HTML}{" + one + "}\n";
    }
    return "% \\usepackage{pgfplots} \\pgfplotsset{compat=1.16}\n" + note +
           "\\begin{tikzpicture}\n\\begin{axis}[\n  width=" + number_of(width_mm) +
           "mm, height=" + number_of(height_mm) +
           "mm,\n  axis lines=left, unbounded coords=jump, ymajorgrids, grid style={black!12},\n" +
           (chart.title.isEmpty() ? "" : "  title={" + tex(chart.title) + "},\n") +
           axis_options(chart, true) + axis_options(chart, false) +
           (legend
                ? "  legend style={draw=none, font=\\footnotesize, at={(0,1.02)}, anchor=south west, legend "
                  "columns=2},\n"
                : "") +
           "]\n" + plots + "\\end{axis}\n\\end{tikzpicture}\n";
}

} // namespace ponderscope::figure
