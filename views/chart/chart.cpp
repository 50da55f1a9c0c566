// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/chart/chart.h"

#include "views/common/format.h"

#include <cmath>
#include <initializer_list>

using namespace Qt::StringLiterals;

namespace ponderscope {

bool Chart::empty() const {
    return std::ranges::all_of(series, [](const Chart::Series& one) {
        return std::ranges::none_of(one.y, [](double value) { return std::isfinite(value); });
    });
}

Chart::Series Chart::Series::of(Mark mark, int ink, const QString& name) {
    Series made;
    made.name = name;
    made.mark = mark;
    made.ink = ink;
    return made;
}

Chart::Series Chart::Series::reference(double x0, double y0, double x1, double y1) {
    Series made = of(Mark::line, soft);
    made.dashed = true;
    made.x = {x0, x1};
    made.y = {y0, y1};
    return made;
}

void Chart::Series::add(double at, double height, const QString& label) {
    x.push_back(at);
    y.push_back(height);
    if (!label.isNull()) {
        labels.push_back(label);
    }
}

void Chart::Series::add(double at, double height, double from, double to, const QString& label) {
    add(at, height, label);
    low.push_back(from);
    high.push_back(to);
}

void Chart::Series::addCell(double column, double row, double shown, const QString& label) {
    add(column, row, label);
    value.push_back(shown);
}

bool Chart::has(Mark mark) const {
    return std::ranges::count(series, mark, &Series::mark) > 0;
}

bool Chart::canPlot(double at, double height) const {
    return std::isfinite(at) && std::isfinite(height) && !(x.log && at <= 0) && !(y.log && height <= 0);
}

bool Chart::Series::isBounded(std::size_t i) const {
    return i < low.size() && i < high.size() && std::isfinite(low[i]) && std::isfinite(high[i]);
}

std::vector<std::pair<std::size_t, std::size_t>> parts_of_band(const Chart::Series& series) {
    std::vector<std::pair<std::size_t, std::size_t>> parts;
    for (std::size_t i = 0; i < series.x.size(); ++i) {
        if (!std::isfinite(series.x[i]) || !series.isBounded(i)) {
            continue;
        }
        if (!parts.empty() && parts.back().second == i) {
            ++parts.back().second;
        } else {
            parts.emplace_back(i, i + 1);
        }
    }
    return parts;
}

/// The colours of Okabe and Ito, with grey instead of black (the text's colour), and a lighter blue on a dark
/// background. From the ninth rule on, lines are dashed.
const std::vector<QColor>& rule_colours(bool dark) {
    const auto made = [](QRgb blue, QRgb grey, bool night) {
        std::vector<QColor> colours = palette_colours("okabe_ito", night);
        colours.front() = QColor(blue);
        colours.back() = QColor(grey);
        return colours;
    };
    static const std::vector<QColor> light = made(0x0072B2, 0x555555, false);
    static const std::vector<QColor> night = made(0x3D7EE0, 0xBCBCBC, true);
    return dark ? night : light;
}

std::vector<QColor> palette_colours(const std::string& name, bool dark) {
    const auto colours = [](std::initializer_list<QRgb> values) {
        return std::vector<QColor>(values.begin(), values.end());
    };
    if (name == "okabe_ito") {
        // M. Okabe and K. Ito (2008), Color Universal Design; black is last, or white on a dark background.
        return colours({0x0072B2, 0xE69F00, 0x009E73, 0xCC79A7, 0x56B4E9, 0xD55E00, 0xF0E442,
                        dark ? 0xE8E8E8U : 0x000000U});
    }
    if (name == "grey") {
        return dark ? colours({0xFFFFFF, 0xA8A8A8, 0xD8D8D8, 0x787878, 0x606060})
                    : colours({0x000000, 0x808080, 0x404040, 0xA8A8A8, 0xC8C8C8});
    }
    return {};
}

ChartInks chart_inks(const Theme& theme) {
    ChartInks inks{theme.colours(), {theme.colours().a, theme.colours().b}, rule_colours(theme.dark())};
    const std::vector<QColor>& others = Theme::runColours(theme.dark());
    inks.runs.insert(inks.runs.end(), others.begin(), others.end());
    return inks;
}

void number_run_colours(ChartInks& inks, const std::vector<std::int64_t>& numbers) {
    std::vector<QColor> own;
    std::vector<QColor> rest = inks.runs;
    for (const std::int64_t number : numbers) {
        own.push_back(inks.runs[static_cast<std::size_t>(number) % inks.runs.size()]);
        std::erase(rest, own.back());
    }
    own.insert(own.end(), rest.begin(), rest.end());
    inks.runs = std::move(own);
}

QColor ink_of(const ChartInks& inks, int ink) {
    return ink == Chart::halted ? inks.colours.halted
           : ink == Chart::soft ? inks.colours.soft
           : ink == Chart::text ? inks.colours.text
           : ink >= Chart::rule ? inks.rules[static_cast<std::size_t>(ink - Chart::rule) % inks.rules.size()]
                                : inks.runs[static_cast<std::size_t>(ink) % inks.runs.size()];
}

int round_of(const ChartInks& inks, int ink) {
    return ink >= Chart::rule ? (ink - Chart::rule) / static_cast<int>(inks.rules.size())
                              : std::max(0, ink) / static_cast<int>(inks.runs.size());
}

QColor colour_of(const ChartInks& inks, const Chart::Series& series) {
    const QColor colour = ink_of(inks, series.ink);
    return series.faint ? mixed(inks.colours.panel, colour, 0.35) : colour;
}

bool is_hollow(const ChartInks& inks, const Chart::Series& series) {
    return series.strong || round_of(inks, series.ink) > 0;
}

QColor mixed(const QColor& from, const QColor& to, double share) {
    const auto part = [share](float a, float b) { return a + static_cast<float>(share) * (b - a); };
    return QColor::fromRgbF(part(from.redF(), to.redF()), part(from.greenF(), to.greenF()),
                            part(from.blueF(), to.blueF()));
}

std::vector<double> dashes_of(const ChartInks& inks, const Chart::Series& series) {
    const int round = round_of(inks, series.ink);
    return series.dashed ? std::vector<double>{4, 3}
           : round == 0  ? std::vector<double>{}
           : round == 1  ? std::vector<double>{6, 2, 1.5, 2}
                         : std::vector<double>{1.5, 2};
}

QString token_link(std::int64_t sequence, std::int64_t row) {
    return u"token:%1#%2"_s.arg(sequence).arg(row);
}

QString layer_link(int layer, int step) {
    return u"layer:%1#%2"_s.arg(layer).arg(step);
}

bool is_hidden_with(const Chart::Series& listed, const Chart::Series& other) {
    if (other.listed && !other.name.isEmpty()) {
        return other.name == listed.name;
    }
    const bool solid_of_dashed = listed.dashed && other.mark == Chart::Mark::line && !other.dashed;
    return other.name == listed.name ||
           (listed.mark == Chart::Mark::line && other.ink == listed.ink && !solid_of_dashed);
}

std::string chart_table(const Chart& chart) {
    std::string csv = "series,x,y,low,high,value\n";
    const auto number = [](const std::vector<double>& values, std::size_t i) {
        return i < values.size() ? csv_number(values[i]) : std::string();
    };
    const auto place = [&](const Chart::Axis& axis, const std::vector<double>& values, std::size_t i) {
        const bool named =
            i < values.size() && values[i] >= 0 && values[i] < static_cast<double>(axis.names.size());
        return named ? csv_field(axis.names[static_cast<std::size_t>(values[i])].toStdString())
                     : number(values, i);
    };
    for (const Chart::Series& series : chart.series) {
        for (std::size_t i = 0; i < series.x.size(); ++i) {
            csv += csv_field(series.name.toStdString()) + "," + place(chart.x, series.x, i) + "," +
                   place(chart.y, series.y, i) + "," + number(series.low, i) + "," + number(series.high, i) +
                   "," + number(series.value, i) + "\n";
        }
    }
    return csv;
}

} // namespace ponderscope
