// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/figure/chart_drawing.h"

#include "core/base/error.h"
#include "core/base/words.h"
#include "views/chart/chart_axis.h"
#include "views/figure/chart_legend.h"
#include "views/figure/figure.h"
#include "views/figure/parts.h"
#include "views/figure/writer/display_list.h"

#include <QImage>

#include <algorithm>
#include <cmath>
#include <limits>

namespace ponderscope::figure {
namespace {

using Series = Chart::Series;

constexpr double lone_band = 0.9; ///< width of a band with one x, in font sizes

double note_line(const Style& style) {
    return style.size * 1.2;
}

double row_line(const Style& style) {
    return style.size * 1.5;
}

double widest_name(const Style& style, const std::vector<QString>& names) {
    double widest = 0;
    for (const QString& name : names) {
        widest = std::max(widest, style.fonts.width(name, style.small));
    }
    return widest;
}

/// Whether to turn the plot sideways, because names below a plot of this width would touch. A map of cells is
/// not turned; it omits names instead.
bool lies_on_its_side(const Style& style, double width, const Chart& chart) {
    return !chart.has(Chart::Mark::cell) && !chart.x.names.empty() &&
           (widest_name(style, chart.x.names) + style.size * 0.8) *
                   static_cast<double>(chart.x.names.size()) >
               width - 5 * style.size;
}

/// The height of the names of a map's columns if they must be turned to fit; otherwise 0.
double turned_names(const Style& style, double width, const Chart& chart) {
    const double pitch =
        (width - 5 * style.size) / static_cast<double>(std::max<std::size_t>(1, chart.x.names.size()));
    const double widest = widest_name(style, chart.x.names);
    return chart.has(Chart::Mark::cell) && widest + style.size * 0.8 > pitch && pitch > style.small.size
               ? std::min(widest, 7.5 * style.size)
               : 0;
}

std::pair<double, double> extremes(const std::vector<double>& values) {
    const auto [low, high] = std::ranges::minmax_element(values);
    return {*low, *high};
}

/// Maps values of a chart to positions on paper.
struct Frame {
    const Chart& chart;
    QRectF plot;
    ChartAxis x, y; ///< the chart's axes
    bool sideways;  ///< x is vertical, with its low end at the top

    [[nodiscard]] double along(double value, bool data_x) const {
        const double share = (data_x ? x : y).share(value);
        return data_x == sideways
                   ? (sideways ? plot.top() + share * plot.height() : plot.bottom() - share * plot.height())
                   : plot.left() + share * plot.width();
    }
    [[nodiscard]] QPointF at(double vx, double vy) const {
        const double px = along(vx, true);
        const double py = along(vy, false);
        return sideways ? QPointF(py, px) : QPointF(px, py);
    }
};

void draw_line(DisplayList& list, const Style& style, const Frame& frame, const Series& series,
               const QColor& colour) {
    std::vector<QPointF> run;
    const auto end_run = [&] {
        if (run.size() > 1) {
            list.polyline(run, {colour, 1.6, dashes_of(style, series), true});
        }
        run.clear();
    };
    for (std::size_t i = 0; i < series.count(); ++i) {
        if (!frame.chart.canPlot(series.x[i], series.y[i])) {
            end_run();
            continue;
        }
        run.push_back(frame.at(series.x[i], series.y[i]));
    }
    end_run();
}

void draw_points(DisplayList& list, const Style& style, const Frame& frame, const Series& series,
                 const QColor& colour) {
    const double radius = style.size * (series.strong ? 0.5 : 0.28);
    for (std::size_t i = 0; i < series.count(); ++i) {
        if (!frame.chart.canPlot(series.x[i], series.y[i])) {
            continue;
        }
        const QPointF at = frame.at(series.x[i], series.y[i]);
        if (series.isBounded(i)) {
            const QRectF& plot = frame.plot;
            const auto inside = [&](QPointF end) {
                return QPointF(std::clamp(end.x(), plot.left(), plot.right()),
                               std::clamp(end.y(), plot.top(), plot.bottom()));
            };
            list.line(inside(frame.at(series.x[i], series.low[i])),
                      inside(frame.at(series.x[i], series.high[i])), {colour, 1, {}, false});
        }
        draw_point(list, style, at, radius, series, colour);
    }
}

void draw_bars(DisplayList& list, const Frame& frame, const Series& series, const QColor& colour) {
    const QRectF& plot = frame.plot;
    const double length = frame.sideways ? plot.height() : plot.width();
    const double wide = length / std::max(1.0, frame.x.extent()) * frame.chart.dx * 0.72;
    const double low = frame.sideways ? plot.left() : plot.top();
    const double high = frame.sideways ? plot.right() : plot.bottom();
    const double zero =
        frame.chart.y.log ? (frame.sideways ? low : high) : std::clamp(frame.along(0, false), low, high);
    for (std::size_t i = 0; i < series.count(); ++i) {
        if (!std::isfinite(series.y[i])) {
            continue;
        }
        const double end = frame.along(series.y[i], false);
        const double middle = frame.along(series.x[i], true);
        const QRectF bar = frame.sideways
                               ? QRectF(std::min(end, zero), middle - wide / 2, std::abs(zero - end), wide)
                               : QRectF(middle - wide / 2, std::min(end, zero), wide, std::abs(zero - end));
        list.rect(bar, colour, {}, std::min({2.0, bar.height() / 2, bar.width() / 2}));
    }
}

void draw_band(DisplayList& list, const Style& style, const Frame& frame, const Series& series) {
    QColor fill = ink_of(style, series.ink);
    fill.setAlphaF(0.22F); // other bands and the grid stay visible
    const auto upper = [&](std::size_t i) { return frame.at(series.x[i], series.high[i]); };
    const auto lower = [&](std::size_t i) { return frame.at(series.x[i], series.low[i]); };
    for (const auto& [first, last] : parts_of_band(series)) {
        if (last - first == 1) {
            list.line(lower(first), upper(first), {fill, style.size * lone_band, {}, false});
            continue;
        }
        QPainterPath path(upper(first));
        for (std::size_t i = first + 1; i < last; ++i) {
            path.lineTo(upper(i));
        }
        for (std::size_t i = last; i-- > first;) {
            path.lineTo(lower(i));
        }
        path.closeSubpath();
        list.path(path, fill);
    }
}

/// Draws up to most_vector_cells cells as rectangles, more cells as an image with one pixel for each cell.
void draw_cells(DisplayList& list, const Style& style, const Frame& frame, const Series& series) {
    const Chart& chart = frame.chart;
    const ColourMap map =
        chart.scale && chart.scale->diverging ? ColourMap::diverging(style.dark) : style.cells;
    const ColourScale scale = chart.scale.value_or(Chart::Scale{}).colours();
    const bool plain = series.value.empty();
    const QRgb ink = ink_of(style, series.ink).rgb();
    const std::size_t count = plain ? series.count() : std::min(series.count(), series.value.size());
    const auto has = [&](std::size_t i) { return plain || std::isfinite(series.value[i]); };
    const auto colour = [&](std::size_t i) { return plain ? ink : map.at(scale.position(series.value[i])); };
    const auto rect_of = [&](double x, double y) {
        return QRectF(frame.at(x - chart.dx / 2, y + chart.dy / 2),
                      frame.at(x + chart.dx / 2, y - chart.dy / 2))
            .normalized(); // an axis may point down
    };
    std::vector<double> xs;
    std::vector<double> ys;
    for (std::size_t i = 0; i < count; ++i) {
        if (has(i)) {
            xs.push_back(series.x[i]);
            ys.push_back(series.y[i]);
        }
    }
    // Viewers show seams between very thin cells.
    constexpr double least_side = 1.5;
    const QRectF first = xs.empty() ? QRectF() : rect_of(xs.front(), ys.front());
    const bool many = !xs.empty() && (count > static_cast<std::size_t>(most_vector_cells) ||
                                      std::min(first.width(), first.height()) < least_side);
    const auto [left, right] = many ? extremes(xs) : std::pair(0.0, 0.0);
    const auto [low, high] = many ? extremes(ys) : std::pair(0.0, 0.0);
    const double columns = many ? std::round((right - left) / chart.dx) + 1 : 0;
    const double rows = many ? std::round((high - low) / chart.dy) + 1 : 0;
    if (!many || columns > 16384 || rows > 16384) {
        for (std::size_t i = 0; i < count; ++i) {
            if (has(i)) {
                list.rect(rect_of(series.x[i], series.y[i]), QColor(colour(i)));
            }
        }
        return;
    }
    QImage image(static_cast<int>(columns), static_cast<int>(rows), QImage::Format_ARGB32);
    image.fill(Qt::transparent);
    for (std::size_t i = 0; i < count; ++i) {
        if (has(i)) {
            const double down = chart.y.reversed ? series.y[i] - low : high - series.y[i];
            image.setPixel(static_cast<int>(std::lround((series.x[i] - left) / chart.dx)),
                           static_cast<int>(std::lround(down / chart.dy)), colour(i));
        }
    }
    list.image(rect_of(left, low).united(rect_of(right, high)), image);
}

/// \p points: draws only points, which may reach beyond the plot by half their size. False: draws the rest.
void draw_series(DisplayList& list, const Style& style, const Frame& frame, bool points) {
    // Draw bands first, because they would cover other marks.
    std::vector<const Series*> order;
    for (const Series& series : frame.chart.series) {
        order.push_back(&series);
    }
    std::ranges::stable_partition(order, [](const Series* one) { return one->mark == Chart::Mark::band; });
    for (const Series* series : order) {
        if ((series->mark == Chart::Mark::point) != points) {
            continue;
        }
        const QColor colour = colour_of(style, *series);
        switch (series->mark) {
        case Chart::Mark::line:
            draw_line(list, style, frame, *series, colour);
            break;
        case Chart::Mark::point:
            draw_points(list, style, frame, *series, colour);
            break;
        case Chart::Mark::bar:
            draw_bars(list, frame, *series, colour);
            break;
        case Chart::Mark::band:
            draw_band(list, style, frame, *series);
            break;
        case Chart::Mark::cell:
            draw_cells(list, style, frame, *series);
            break;
        }
    }
}

/// Draws as many numbers or names below the plot as fit. \p turned: the height of turned names.
void draw_horizontal_axis(DisplayList& list, const Style& style, const QRectF& box, const Frame& frame,
                          ChartAxis& axis, double turned) {
    for (const double tick : turned > 0 ? axis.ticks() : std::vector<double>()) {
        list.text(style.fonts.elided(axis.label(tick), style.small, turned),
                  {frame.along(tick, true) + style.fonts.x_height(style.small) / 2, frame.plot.bottom() + 4},
                  style.small, Align::right, 90);
    }
    if (turned > 0) {
        return;
    }
    const double small = style.fonts.cap_height(style.small);
    const auto middle_of = [&](double tick, double half) {
        return std::clamp(frame.along(tick, !frame.sideways), box.left() + half, box.right() - half);
    };
    const auto touch = [&] {
        double before = -std::numeric_limits<double>::infinity();
        std::vector<double> ticks = axis.ticks();
        std::ranges::sort(ticks, {}, [&](double tick) { return frame.along(tick, !frame.sideways); });
        for (const double tick : ticks) {
            const double half = style.fonts.width(axis.label(tick), style.small) / 2;
            const double middle = middle_of(tick, half);
            if (middle - half < before + style.size * 0.5) {
                return true;
            }
            before = middle + half;
        }
        return false;
    };
    for (int most = static_cast<int>(axis.ticks().size()) - 1; most > 0 && touch(); --most) {
        axis.setMostTicks(most, 2);
    }
    for (const double tick : axis.ticks()) {
        const QString label = style.fonts.elided(axis.label(tick), style.small, box.width());
        const double half = style.fonts.width(label, style.small) / 2;
        if (frame.sideways) {
            const double x = frame.along(tick, false);
            list.line({x, frame.plot.top()}, {x, frame.plot.bottom()},
                      {style.colours.line, style.hairline, {}, false});
        }
        list.text(label, {middle_of(tick, half), frame.plot.bottom() + small + 6}, style.small,
                  Align::center);
    }
}

} // namespace

double readable_height(const Style& style, double width, const Chart& chart, int note_lines, double plot) {
    const ChartLegend legend(style, chart, {width, plot + 4 * style.size});
    const double inner = width - (legend.beside() ? legend.width() : 0);
    double needed = plot;
    if (lies_on_its_side(style, inner, chart)) {
        needed = std::max(needed, static_cast<double>(chart.x.names.size()) * row_line(style));
    }
    needed += style.size * 4.5 + turned_names(style, inner, chart); // for titles and numbers of the axes
    if (legend.beside()) {
        needed = std::max(needed, legend.listHeight());
    }
    const auto notes =
        static_cast<double>(wrapped_lines(style.fonts, style.small, chart.note, width, note_lines).size());
    return needed + legend.height() + notes * note_line(style);
}

QRectF draw_chart(DisplayList& list, const Style& style, const QRectF& box, const Chart& chart,
                  int note_lines) {
    const Fonts& fonts = style.fonts;
    const double small = fonts.cap_height(style.small);
    double top = box.top();
    double bottom = box.bottom();
    const std::vector<QString> note =
        wrapped_lines(style.fonts, style.small, chart.note, box.width(), note_lines);
    for (auto words = note.rbegin(); words != note.rend(); ++words) {
        list.text(*words, {box.left(), bottom - fonts.descent(style.small)}, style.small);
        bottom -= note_line(style);
    }
    const ChartLegend legend(style, chart, {box.width(), bottom - top});
    const QRectF beneath(box.left(), top, box.width(), bottom - top);
    const QRectF inner = legend.beside() ? beneath.adjusted(0, 0, -legend.width(), 0) : beneath;
    top += legend.height();
    const bool sideways = lies_on_its_side(style, inner.width(), chart);
    const double turned = turned_names(style, inner.width(), chart);
    ChartAxis x(chart, true, turned > 0 ? 1000 : 12);
    ChartAxis y(chart, false, 6);
    ChartAxis& across = sideways ? y : x;
    ChartAxis& upright = sideways ? x : y;
    // The title of the vertical axis is above it, because turned text is hard to read.
    if (!upright.title().isEmpty()) {
        top += fonts.ascent(style.small); // room for letters with accents
        list.text(fonts.elided(upright.title(), style.small, inner.width()), {box.left(), top}, style.small);
        top += style.size * 0.75;
    } else {
        top += small / 2;
    }
    if (!across.title().isEmpty()) {
        list.text(fonts.elided(across.title(), style.small, inner.width()),
                  {inner.right(), bottom - fonts.descent(style.small)}, style.small, Align::right);
        bottom -= style.size * 1.25;
    }
    const bool last = across.title().isEmpty() && note.empty(); // only the page's edge is below
    bottom -= (turned > 0 ? turned : small) + 6 + (last ? fonts.descent(style.small) : 1);
    const bool named = !(sideways ? chart.x : chart.y).names.empty();
    upright.setMostTicks(std::clamp(static_cast<int>((bottom - top) / (style.size * (named ? 1.1 : 2.6))), 1,
                                    named ? 1000 : 6));
    double gutter = 0;
    for (const double tick : upright.ticks()) {
        gutter = std::max(gutter, fonts.width(upright.label(tick), style.small));
    }
    gutter = std::min(gutter, inner.width() * 0.42);
    // Half of a mark may lie beyond the last value.
    const bool marks = chart.has(Chart::Mark::point);
    const double end = marks ? style.size * 0.55 + 0.5 : 2;
    const double left = box.left() + gutter + 5;
    const QRectF plot(left, top, std::max(10.0, inner.right() - left - end), std::max(10.0, bottom - top));
    Frame frame{chart, plot, x, y, sideways};
    for (const double tick : upright.ticks()) {
        const double at = frame.along(tick, sideways);
        list.line({plot.left(), at}, {plot.right(), at}, {style.colours.line, style.hairline, {}, false});
        list.text(fonts.elided(upright.label(tick), style.small, gutter + 0.01),
                  {plot.left() - 5, at + small / 2}, style.small, Align::right);
    }
    draw_horizontal_axis(list, style, QRectF(box.left(), 0, inner.width(), 1), frame, across, turned);
    list.line(plot.bottomLeft(), plot.bottomRight(), {style.colours.soft, style.hairline, {}, false});

    list.beginClip(plot.adjusted(-1, -1, 1, 1)); // shows lines along the edge whole
    draw_series(list, style, frame, false);
    list.endClip();
    if (marks) {
        list.beginClip(plot.adjusted(-4, -4, end, end));
        draw_series(list, style, frame, true);
        list.endClip();
    }
    legend.draw(list, beneath, plot);
    return plot;
}

void dress_chart(Chart& chart, const FigureSpec& spec, Figure& figure) {
    const auto limits = [](Chart::Axis& axis, const std::optional<std::array<double, 2>>& range) {
        if (range && axis.names.empty()) {
            axis.low = (*range)[0];
            axis.high = (*range)[1];
        }
    };
    limits(chart.x, spec.x_range);
    limits(chart.y, spec.y_range);
    if (spec.range && chart.scale) {
        const auto [low, high] = *spec.range;
        Chart::Scale& scale = *chart.scale;
        scale.high = scale.diverging ? std::max(std::abs(low), std::abs(high)) : high;
        scale.low = scale.diverging ? -scale.high : low;
        scale.logarithmic = scale.logarithmic && low > 0;
    }
    for (const auto& [axis, key] : {std::pair(&chart.x, "x_range"), std::pair(&chart.y, "y_range")}) {
        if (axis->log && axis->low && *axis->low <= 0) {
            throw InputError(ErrorId::json_value,
                             std::string("\"") + key + "\": the axis is logarithmic; found " +
                                 number_text(*axis->low) + ", expected numbers above 0.");
        }
    }
    chart.legend = spec.legend == "above"   ? Chart::Legend::above
                   : spec.legend == "right" ? Chart::Legend::right
                   : spec.legend == "none"  ? Chart::Legend::none
                                            : Chart::Legend::automatic;
    for (const Chart::Series& series : chart.series) {
        if (series.listed && !series.name.isEmpty()) {
            figure.entries.push_back(series.name.toStdString());
        }
    }
    std::size_t place = 0; // position for the next series that the specification names
    for (const SeriesSpec& wanted : spec.series) {
        const auto found = std::ranges::find_if(chart.series, [&](const Chart::Series& series) {
            return series.listed && series.name.toStdString() == wanted.name;
        });
        if (found == chart.series.end()) {
            figure.notices.push_back(
                {NoticeId::figure_series,
                 "\"series\": the figure has none called \"" + wanted.name + "\", only " +
                     (figure.entries.empty() ? "nameless ones" : joined(figure.entries)) + "."});
        } else if (!wanted.show) {
            const Chart::Series hidden = *found;
            std::erase_if(chart.series,
                          [&](const Chart::Series& series) { return is_hidden_with(hidden, series); });
            place = std::min(place, chart.series.size());
        } else {
            if (!wanted.as.empty()) {
                for (Chart::Series& series : chart.series) { // also rename its band and points
                    if (&series != &*found && !series.listed && series.name == found->name) {
                        series.name = QString::fromStdString(wanted.as);
                    }
                }
                found->name = QString::fromStdString(wanted.as);
            }
            const auto from = static_cast<std::size_t>(found - chart.series.begin());
            if (from >= place) {
                std::rotate(chart.series.begin() + static_cast<std::ptrdiff_t>(place), found, found + 1);
                ++place;
            }
        }
    }
}

Figure compose_chart(const FigureSpec& spec, const FigureData& data, const Fonts& fonts) {
    const Style style(spec, fonts);
    Chart chart = *data.chart;
    Figure figure;
    // If the names of tokens do not fit, show token numbers.
    if (data.signal &&
        style.small.size * 1.05 * static_cast<double>(chart.x.names.size()) > style.width - 5 * style.size) {
        chart.x.names.clear();
        for (Chart::Series& series : chart.series) {
            for (double& x : series.x) {
                x += static_cast<double>(data.runs.front().first);
            }
        }
    }
    dress_chart(chart, spec, figure);
    const double above = title_height(spec, style);
    constexpr int note_lines = 8; // enough for every note on paper
    constexpr double height_of_width = 0.62;
    constexpr double plot_of_height = 0.62; // smallest share of the plot, unless there are many names
    constexpr double row_height = 2.2;      // largest height of cells, in font sizes
    const bool cells = chart.has(Chart::Mark::cell);
    const double rows = ChartAxis(chart, false, 6).extent() / chart.dy;
    const double usual = std::min(style.width * (style.width > 300 ? 0.42 : height_of_width),
                                  cells ? (rows * row_height + 7) * style.size : 1e9);
    const double asked =
        spec.height_mm
            ? *spec.height_mm * points_per_mm - above - 2 * style.margin
            : std::max(usual, readable_height(style, style.width, chart, note_lines, usual * plot_of_height));
    const double height = std::max(asked, 8 * style.size);
    DisplayList list;
    draw_chart(list, style, {0, 0, style.width, height}, chart, note_lines);
    figure.page = finish(spec, style, list, height, "ask for more height");
    figure.tables.push_back({"", data.signal ? step_heatmap_table(spec, data) : chart_table(chart)});
    chart.title = QString::fromStdString(spec.title);
    figure.pgfplots =
        chart_pgfplots(chart, style, spec.width_mm, figure.page.size().height() / points_per_mm);
    return figure;
}

} // namespace ponderscope::figure
