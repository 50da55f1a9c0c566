// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/figure/chart.h"

#include "views/common/format.h"
#include "views/figure/display_list.h"
#include "views/figure/figure.h"
#include "views/figure/parts.h"

#include <QImage>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ponderscope::figure {
namespace {

using Series = Chart::Series;

struct Range {
    double low = std::numeric_limits<double>::infinity();
    double high = -std::numeric_limits<double>::infinity();
    void add(double value) {
        if (std::isfinite(value)) {
            low = std::min(low, value);
            high = std::max(high, value);
        }
    }
};

AxisRange range_of(const Chart& chart, bool horizontal, int most) {
    const Chart::Axis& axis = horizontal ? chart.x : chart.y;
    if (!axis.names.empty()) {
        return {-0.5, static_cast<double>(axis.names.size()) - 0.5};
    }
    Range range;
    bool bars = false;
    const auto add = [&](double value) { range.add(axis.log && !(value > 0) ? std::nan("") : value); };
    for (const Series& series : chart.series) {
        for (const double value : horizontal ? series.x : series.y) {
            const double half = series.mark == Chart::Mark::cell ? (horizontal ? chart.dx : chart.dy) / 2
                                : series.mark == Chart::Mark::bar && horizontal ? 0.5
                                                                                : 0;
            add(value - half);
            add(value + half);
        }
        if (!horizontal) {
            for (const std::vector<double>* ends : {&series.low, &series.high}) {
                for (const double value : *ends) {
                    add(value);
                }
            }
            bars = bars || series.mark == Chart::Mark::bar;
        }
    }
    if (!(range.low <= range.high)) {
        return {0, 1};
    }
    if (axis.log) {
        AxisRange whole{std::pow(10, std::floor(std::log10(range.low) + 1e-9)),
                        std::pow(10, std::ceil(std::log10(range.high) - 1e-9))};
        if (!(whole.high > whole.low)) {
            whole.high = whole.low * 10;
        }
        return {axis.low.value_or(whole.low), axis.high.value_or(whole.high)};
    }
    if (bars || axis.from_zero) {
        range.low = std::min(0.0, range.low);
    }
    const bool exact = axis.whole || std::any_of(chart.series.begin(), chart.series.end(),
                                                 [](const Series& s) { return s.mark == Chart::Mark::cell; });
    AxisRange result{range.low, range.high};
    if (!(range.high > range.low)) {
        const double room = std::max(std::abs(range.low) * 0.1, 0.5);
        result = {range.low - (range.low > 0 && bars ? 0 : room), range.high + room};
    } else if (!exact || !horizontal) {
        if (exact) {
            result = {range.low, range.high};
        } else {
            result = round_range(range.low, range.high, most);
        }
    }
    result.low = axis.low.value_or(result.low);
    result.high = axis.high.value_or(result.high);
    return result;
}

QString label_of(const Chart::Axis& axis, double value, double step) {
    if (!axis.names.empty()) {
        return axis.names[static_cast<std::size_t>(value)];
    }
    if (axis.log) {
        return tick_label(value);
    }
    return axis.si ? format_si(value) : tick_label(value, step);
}

QColor mixed(const QColor& from, const QColor& to, double share) {
    const auto part = [share](float a, float b) { return a + static_cast<float>(share) * (b - a); };
    return QColor::fromRgbF(part(from.redF(), to.redF()), part(from.greenF(), to.greenF()),
                            part(from.blueF(), to.blueF()));
}

std::vector<double> ticks_of(const Chart::Axis& axis, AxisRange range, int most) {
    if (!axis.names.empty()) {
        std::vector<double> places(axis.names.size());
        std::iota(places.begin(), places.end(), 0.0);
        return places;
    }
    if (axis.log) {
        const auto low = static_cast<int>(std::lround(std::log10(range.low)));
        const auto high = static_cast<int>(std::lround(std::log10(range.high)));
        const int every = std::max(1, (high - low + most - 1) / std::max(1, most));
        std::vector<double> powers;
        for (int power = low; power <= high; power += every) {
            powers.push_back(std::pow(10, power));
        }
        return powers;
    }
    std::vector<double> ticks = round_ticks(range.low, range.high, most);
    if (axis.whole) {
        std::erase_if(ticks, [](double tick) { return std::abs(tick - std::round(tick)) > 1e-6; });
    }
    return ticks;
}

ScaleLegend scale_legend(const Chart& chart, const Style& style) {
    ScaleLegend legend;
    legend.label = chart.scale->label;
    legend.map = chart.scale->diverging ? ColourMap::diverging(style.dark) : style.cells;
    legend.scale = {chart.scale->low, chart.scale->high, false};
    legend.bar = std::min(56.0, style.size * 7);
    return legend;
}

std::vector<double> dashes_of(const Style& style, const Series& series) {
    const int round = round_of(style, series.ink);
    return series.dashed ? std::vector<double>{4, 3}
           : round == 0  ? std::vector<double>{}
           : round == 1  ? std::vector<double>{6, 2, 1.5, 2}
                         : std::vector<double>{1.5, 2};
}

void draw_point(DisplayList& list, const Style& style, QPointF at, double radius, const Series& series,
                const QColor& colour) {
    if (series.strong || round_of(style, series.ink) > 0) {
        list.circle(at, radius, style.colours.panel, {colour, radius * 0.4, {}, false});
    } else {
        list.circle(at, radius, colour);
    }
}

/// At the words; the last of \p most lines is cut short.
std::vector<QString> wrapped(const Style& style, const QString& text, double width, int most) {
    const QStringList words = text.split(u' ', Qt::SkipEmptyParts);
    std::vector<QString> lines;
    for (const QString& word : words) {
        const QString longer = lines.empty() ? word : lines.back() + u' ' + word;
        if (!lines.empty() &&
            (static_cast<int>(lines.size()) == most || style.fonts.width(longer, style.small) <= width)) {
            lines.back() = longer;
        } else {
            lines.push_back(word);
        }
    }
    if (!lines.empty()) {
        lines.back() = style.fonts.elided(lines.back(), style.small, width);
    }
    return lines;
}

double note_line(const Style& style) {
    return style.size * 1.2;
}

double legend_line(const Style& style) {
    return style.size * 1.35;
}

/// Names of the series above the plot, as many lines as they need. Returns the height.
double draw_legend(DisplayList& list, const Style& style, const QRectF& box, const Chart& chart) {
    const Fonts& fonts = style.fonts;
    double x = box.left();
    double y = box.top();
    const double line = legend_line(style);
    bool any = false;
    for (const Series& series : chart.series) {
        if (series.name.isEmpty() || !series.listed) {
            continue;
        }
        const QString name = fonts.elided(series.name, style.small, box.width() - style.size * 1.5);
        const double wide = style.size * 1.5 + fonts.width(name, style.small) + style.size;
        if (any && x + wide - style.size > box.right()) {
            x = box.left();
            y += line;
        }
        any = true;
        const double middle = y + line / 2;
        const QColor colour = ink_of(style, series.ink);
        if (series.mark == Chart::Mark::line) {
            list.line({x, middle}, {x + style.size * 1.1, middle},
                      {colour, 1.6, dashes_of(style, series), false});
        } else if (series.mark == Chart::Mark::point) {
            draw_point(list, style, {x + style.size * 0.55, middle}, style.size * 0.25, series, colour);
        } else {
            list.rect({x + style.size * 0.2, middle - style.size * 0.35, style.size * 0.7, style.size * 0.7},
                      series.mark == Chart::Mark::band ? mixed(style.colours.panel, colour, 0.25) : colour);
        }
        list.text(name, {x + style.size * 1.5, middle + fonts.cap_height(style.small) / 2}, style.small);
        x += wide;
    }
    if (chart.scale) {
        const ScaleLegend legend = scale_legend(chart, style);
        const double wide = scale_legend_width(style, legend);
        if (any && x + wide > box.right()) {
            x = box.left();
            y += line;
        }
        any = true;
        draw_scale_legend(list, style, {x, y + line / 2 + fonts.cap_height(style.small) / 2}, legend);
    }
    return any ? y + line - box.top() + style.size * 0.3 : 0;
}

} // namespace

bool Chart::empty() const {
    return std::all_of(series.begin(), series.end(), [](const Series& one) {
        return std::none_of(one.y.begin(), one.y.end(), [](double value) { return std::isfinite(value); });
    });
}

const ChartPlaces::Place* ChartPlaces::at(QPointF position, double reach) const {
    const Place* best = nullptr;
    double least = reach;
    for (const Place& place : places) {
        const double x = std::max({place.box.left() - position.x(), position.x() - place.box.right(), 0.0});
        const double y = std::max({place.box.top() - position.y(), position.y() - place.box.bottom(), 0.0});
        const double away = std::hypot(x, y);
        if (away <= least && (away < least || best == nullptr || place.box.width() < best->box.width())) {
            least = away;
            best = &place;
        }
    }
    return best;
}

namespace {

/// Rectangles up to a number, one image of a pixel a cell above it.
template <typename X, typename Y>
void draw_cells(DisplayList& list, const Style& style, const Chart& chart, std::size_t number, const X& px,
                const Y& py, ChartPlaces& places) {
    const Series& series = chart.series[number];
    const ColourMap map =
        chart.scale && chart.scale->diverging ? ColourMap::diverging(style.dark) : style.cells;
    const ColourScale scale =
        chart.scale ? ColourScale{chart.scale->low, chart.scale->high, false} : ColourScale{0, 1, false};
    const std::size_t count = std::min({series.x.size(), series.y.size(), series.value.size()});
    const auto rect_of = [&](double x, double y) {
        return QRectF(QPointF(px(x - chart.dx / 2), py(y + chart.dy / 2)),
                      QPointF(px(x + chart.dx / 2), py(y - chart.dy / 2)));
    };
    Range xs;
    Range ys;
    for (std::size_t i = 0; i < count; ++i) {
        if (std::isfinite(series.value[i])) {
            xs.add(series.x[i]);
            ys.add(series.y[i]);
            places.places.push_back({number, i, rect_of(series.x[i], series.y[i])});
        }
    }
    const bool many = count > static_cast<std::size_t>(most_vector_cells) && xs.low <= xs.high;
    const double columns = many ? std::round((xs.high - xs.low) / chart.dx) + 1 : 0;
    const double rows = many ? std::round((ys.high - ys.low) / chart.dy) + 1 : 0;
    if (!many || columns > 16384 || rows > 16384) {
        for (std::size_t i = 0; i < count; ++i) {
            if (std::isfinite(series.value[i])) {
                list.rect(rect_of(series.x[i], series.y[i]), QColor(map.at(scale.position(series.value[i]))));
            }
        }
        return;
    }
    QImage image(static_cast<int>(columns), static_cast<int>(rows), QImage::Format_RGB32);
    image.fill(style.colours.panel);
    for (std::size_t i = 0; i < count; ++i) {
        if (std::isfinite(series.value[i])) {
            image.setPixel(static_cast<int>(std::lround((series.x[i] - xs.low) / chart.dx)),
                           static_cast<int>(std::lround((ys.high - series.y[i]) / chart.dy)),
                           map.at(scale.position(series.value[i])));
        }
    }
    list.image(QRectF(rect_of(xs.low, ys.high).topLeft(), rect_of(xs.high, ys.low).bottomRight()), image);
}

} // namespace

QColor ink_of(const Style& style, int ink) {
    return ink == Chart::soft   ? style.colours.soft
           : ink == Chart::text ? style.colours.text
                                : style.runs[static_cast<std::size_t>(ink) % style.runs.size()];
}

int round_of(const Style& style, int ink) {
    return std::max(0, ink) / static_cast<int>(style.runs.size());
}

double height_beside_plot(const Style& style, double width, const Chart& chart, int note_lines) {
    DisplayList nowhere;
    const double legend = draw_legend(nowhere, style, {0, 0, width, 0}, chart) - 2 * legend_line(style);
    const auto lines = static_cast<double>(wrapped(style, chart.note, width, note_lines).size());
    return std::max(0.0, legend - style.size * 0.3) + std::max(0.0, lines - 1) * note_line(style);
}

ChartPlaces draw_chart(DisplayList& list, const Style& style, const QRectF& box, const Chart& chart,
                       int note_lines) {
    const Fonts& fonts = style.fonts;
    const double small = fonts.cap_height(style.small);
    double top = box.top();
    if (!chart.title.isEmpty()) {
        const TextStyle bold{style.size, true, style.colours.text};
        list.text(fonts.elided(chart.title, bold, box.width()), {box.left(), top + fonts.ascent(bold)}, bold);
        top += style.size * 1.6;
    }
    top += draw_legend(list, style, {box.left(), top, box.width(), 0}, chart);
    // The vertical axis is named above it: letters on their side are read last.
    if (!chart.y.label.isEmpty()) {
        list.text(fonts.elided(chart.y.label, style.small, box.width()), {box.left(), top + small},
                  style.small);
        top += small + style.size * 0.75;
    } else {
        top += small / 2;
    }
    double bottom = box.bottom();
    const std::vector<QString> note = wrapped(style, chart.note, box.width(), note_lines);
    for (auto words = note.rbegin(); words != note.rend(); ++words) {
        list.text(*words, {box.left(), bottom - fonts.descent(style.small)}, style.small);
        bottom -= note_line(style);
    }
    if (!chart.x.label.isEmpty()) {
        list.text(fonts.elided(chart.x.label, style.small, box.width()),
                  {box.right(), bottom - fonts.descent(style.small)}, style.small, Align::right);
        bottom -= style.size * 1.25;
    }
    // Numbers of the horizontal axis; names stand on their side where they are longer than their places.
    const double longest_name = style.size * 9;
    double widest_name = 0;
    for (const QString& name : chart.x.names) {
        widest_name = std::max(widest_name, fonts.width(name, style.small) + style.size * 0.6);
    }
    const bool slanted =
        widest_name * static_cast<double>(chart.x.names.size()) > box.width() - 4 * style.size;
    bottom -= (slanted ? std::min(widest_name, longest_name) : small) + 5;

    const int most_y = std::clamp(static_cast<int>((bottom - top) / (style.size * 2.6)), 2, 6);
    const AxisRange y_range = range_of(chart, false, most_y);
    const std::vector<double> y_ticks = ticks_of(chart.y, y_range, most_y);
    const double y_step = y_ticks.size() > 1 ? y_ticks[1] - y_ticks[0] : 0;
    double gutter = 0;
    for (const double tick : y_ticks) {
        gutter = std::max(gutter, fonts.width(label_of(chart.y, tick, y_step), style.small));
    }
    ChartPlaces result;
    const double left = box.left() + gutter + 5;
    result.plot = QRectF(left, top, std::max(10.0, box.right() - left - 2), std::max(10.0, bottom - top));
    const QRectF& plot = result.plot;
    const int most_x =
        std::clamp(static_cast<int>(plot.width() / (style.size * (chart.x.whole ? 2.2 : 4.5))), 2, 12);
    const AxisRange x_range = range_of(chart, true, most_x);
    const auto share = [](const Chart::Axis& axis, const AxisRange& range, double value) {
        return axis.log
                   ? (std::log(value) - std::log(range.low)) / (std::log(range.high) - std::log(range.low))
                   : (value - range.low) / (range.high - range.low);
    };
    // Below a logarithmic axis lies everything that is not positive.
    const auto px = [&](double x) {
        return plot.left() + (chart.x.log && !(x > 0) ? -0.1 : share(chart.x, x_range, x)) * plot.width();
    };
    const auto py = [&](double y) {
        return plot.bottom() - (chart.y.log && !(y > 0) ? -0.1 : share(chart.y, y_range, y)) * plot.height();
    };
    const auto drawn = [&](double x, double y) {
        return std::isfinite(x) && std::isfinite(y) && !(chart.x.log && x <= 0) && !(chart.y.log && y <= 0);
    };
    for (const double tick : y_ticks) {
        list.line({plot.left(), py(tick)}, {plot.right(), py(tick)},
                  {style.colours.line, style.hairline, {}, false});
        list.text(label_of(chart.y, tick, y_step), {plot.left() - 5, py(tick) + small / 2}, style.small,
                  Align::right);
    }
    const std::vector<double> x_ticks = ticks_of(chart.x, x_range, most_x);
    const double x_step = x_ticks.size() > 1 ? x_ticks[1] - x_ticks[0] : 0;
    for (const double tick : x_ticks) {
        const QString label = fonts.elided(label_of(chart.x, tick, x_step), style.small, longest_name);
        if (slanted) {
            list.text(label, {px(tick) + small / 2, plot.bottom() + 4}, style.small, Align::right, 90);
            continue;
        }
        const double half = fonts.width(label, style.small) / 2;
        list.text(label,
                  {std::clamp(px(tick), box.left() + half, box.right() - half), plot.bottom() + small + 4},
                  style.small, Align::center);
    }
    list.line(plot.bottomLeft(), plot.bottomRight(), {style.colours.soft, style.hairline, {}, false});

    list.beginClip(plot.adjusted(-4, -4, 4, 1));
    // Bands behind everything: they would cover what was drawn before them.
    std::vector<std::size_t> order(chart.series.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_partition(order.begin(), order.end(),
                          [&](std::size_t s) { return chart.series[s].mark == Chart::Mark::band; });
    for (const std::size_t s : order) {
        const Series& series = chart.series[s];
        const QColor colour = series.faint ? mixed(style.colours.panel, ink_of(style, series.ink), 0.35)
                                           : ink_of(style, series.ink);
        const std::size_t count = std::min(series.x.size(), series.y.size());
        switch (series.mark) {
        case Chart::Mark::line: {
            std::vector<QPointF> run;
            const auto end_run = [&] {
                if (run.size() > 1) {
                    list.polyline(run, {colour, 1.6, dashes_of(style, series), true});
                }
                run.clear();
            };
            for (std::size_t i = 0; i < count; ++i) {
                if (!drawn(series.x[i], series.y[i])) {
                    end_run();
                    continue;
                }
                run.emplace_back(px(series.x[i]), py(series.y[i]));
                result.places.push_back({s, i, QRectF(run.back(), QSizeF(0, 0))});
            }
            end_run();
            break;
        }
        case Chart::Mark::point:
            for (std::size_t i = 0; i < count; ++i) {
                if (!drawn(series.x[i], series.y[i])) {
                    continue;
                }
                const QPointF at(px(series.x[i]), py(series.y[i]));
                if (i < series.low.size() && i < series.high.size() && std::isfinite(series.low[i]) &&
                    std::isfinite(series.high[i])) {
                    list.line({at.x(), py(series.low[i])}, {at.x(), py(series.high[i])},
                              {colour, 1, {}, false});
                }
                const double radius = style.size * (series.strong ? 0.5 : 0.28);
                draw_point(list, style, at, radius, series, colour);
                result.places.push_back(
                    {s, i, QRectF(at.x() - radius, at.y() - radius, 2 * radius, 2 * radius)});
            }
            break;
        case Chart::Mark::bar: {
            const double wide = plot.width() / std::max(1.0, x_range.high - x_range.low) * chart.dx * 0.72;
            const double zero = chart.y.log ? plot.bottom() : std::clamp(py(0), plot.top(), plot.bottom());
            for (std::size_t i = 0; i < count; ++i) {
                if (!std::isfinite(series.y[i])) {
                    continue;
                }
                const double y = py(series.y[i]);
                const QRectF bar(px(series.x[i]) - wide / 2, std::min(y, zero), wide, std::abs(zero - y));
                list.rect(bar, colour, {}, std::min(2.0, bar.height() / 2));
                // The whole column answers the cursor: empty bars must be found too.
                result.places.push_back({s, i, QRectF(bar.left(), plot.top(), wide, plot.height())});
            }
            break;
        }
        case Chart::Mark::band: {
            QPainterPath path;
            const std::size_t ends = std::min({series.x.size(), series.low.size(), series.high.size()});
            std::vector<QPointF> back;
            for (std::size_t i = 0; i < ends; ++i) {
                if (!std::isfinite(series.low[i]) || !std::isfinite(series.high[i])) {
                    continue;
                }
                const QPointF upper(px(series.x[i]), py(series.high[i]));
                if (back.empty()) {
                    path.moveTo(upper);
                } else {
                    path.lineTo(upper);
                }
                back.emplace_back(px(series.x[i]), py(series.low[i]));
            }
            for (auto point = back.rbegin(); point != back.rend(); ++point) {
                path.lineTo(*point);
            }
            path.closeSubpath();
            if (back.size() > 1) {
                list.path(path, mixed(style.colours.panel, colour, 0.22));
            }
            break;
        }
        case Chart::Mark::cell:
            draw_cells(list, style, chart, s, px, py, result);
            break;
        }
    }
    list.endClip();
    return result;
}

std::string chart_table(const Chart& chart) {
    std::string csv = "series,x,y,low,high,value\n";
    const auto number = [](const std::vector<double>& values, std::size_t i) {
        return i < values.size() ? csv_number(values[i]) : std::string();
    };
    const auto place = [&](const Chart::Axis& axis, const std::vector<double>& values, std::size_t i) {
        const bool named =
            i < values.size() && values[i] >= 0 && values[i] < static_cast<double>(axis.names.size());
        return named ? csv_text(axis.names[static_cast<std::size_t>(values[i])].toStdString())
                     : number(values, i);
    };
    for (const Series& series : chart.series) {
        for (std::size_t i = 0; i < series.x.size(); ++i) {
            csv += csv_text(series.name.toStdString()) + "," + place(chart.x, series.x, i) + "," +
                   place(chart.y, series.y, i) + "," + number(series.low, i) + "," + number(series.high, i) +
                   "," + number(series.value, i) + "\n";
        }
    }
    return csv;
}

} // namespace ponderscope::figure
