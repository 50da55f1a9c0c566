// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/figure/parts.h"

#include "core/base/error.h"
#include "core/base/utf8.h"
#include "core/base/words.h"
#include "core/stats/data_table.h"
#include "views/common/format.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ponderscope::figure {
namespace {

constexpr double longest_page = 14400; // points; PDF 1.7, annex C: larger pages do not open everywhere

double tick_step(double extent, int most) {
    const double rough = extent / std::max(1, most);
    const double power = std::pow(10, std::floor(std::log10(rough)));
    for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
        if (factor * power >= rough * (1 - 1e-9)) {
            return factor * power;
        }
    }
    return 10 * power;
}

} // namespace

/// Okabe and Ito's but for black, which is the text's: rules behind the eighth have the same colours with
/// dashes.
const std::vector<QColor>& rule_colours(bool dark) {
    const auto with_grey = [](QRgb grey, bool night) {
        std::vector<QColor> colours = palette_colours("okabe_ito", night);
        colours.back() = QColor(grey);
        return colours;
    };
    static const std::vector<QColor> light = with_grey(0x555555, false);
    static const std::vector<QColor> night = with_grey(0xBCBCBC, true);
    return dark ? night : light;
}

std::vector<QColor> palette_colours(const std::string& name, bool dark) {
    const auto colours = [](std::initializer_list<QRgb> values) {
        return std::vector<QColor>(values.begin(), values.end());
    };
    if (name == "okabe_ito") {
        // M. Okabe and K. Ito (2008), Color Universal Design; black last, and white in its place on dark.
        return colours({0x0072B2, 0xE69F00, 0x009E73, 0xCC79A7, 0x56B4E9, 0xD55E00, 0xF0E442,
                        dark ? 0xE8E8E8U : 0x000000U});
    }
    if (name == "grey") {
        return dark ? colours({0xFFFFFF, 0xA8A8A8, 0xD8D8D8, 0x787878, 0x606060})
                    : colours({0x000000, 0x808080, 0x404040, 0xA8A8A8, 0xC8C8C8});
    }
    return {};
}

ColourMap colour_map(const std::string& name) {
    if (name == "cividis") {
        return ColourMap::cividis();
    }
    if (name == "magma") {
        return ColourMap::magma();
    }
    if (name == "grey") {
        return ColourMap::grey();
    }
    return ColourMap::viridis();
}

Style::Style(const FigureSpec& spec, const Fonts& f)
    : fonts(f), size(spec.font_size), width(spec.width_mm * points_per_mm) {
    const Theme theme(spec.theme == "dark" ? Appearance::dark : Appearance::light);
    margin = theme.dark() ? 6 : 0;
    width -= 2 * margin;
    colours = theme.colours();
    runs = {colours.a, colours.b};
    const std::vector<QColor>& others = Theme::runColours(theme.dark());
    runs.insert(runs.end(), others.begin(), others.end());
    rules = rule_colours(theme.dark());
    if (const std::vector<QColor> named = palette_colours(spec.palette, theme.dark()); !named.empty()) {
        runs = named;
        rules = named;
    }
    if (!spec.colours.empty()) { // what a run has elsewhere it keeps here; the others follow
        std::vector<QColor> own;
        std::vector<QColor> rest = runs;
        for (const std::int64_t colour : spec.colours) {
            own.push_back(runs[static_cast<std::size_t>(colour) % runs.size()]);
            std::erase(rest, own.back());
        }
        own.insert(own.end(), rest.begin(), rest.end());
        runs = std::move(own);
    }
    cells = colour_map(spec.colour_map);
    dark = theme.dark();
    body = {size, false, colours.text};
    soft = {size, false, colours.soft};
    small = {size * 7 / 8, false, colours.soft};
}

void Style::setColours(const Palette& palette) {
    colours = palette;
    body.color = palette.text;
    soft.color = palette.soft;
    small.color = palette.soft;
    runs[0] = palette.a;
    runs[1] = palette.b;
}

QString tick_label(double value, double step) {
    if (step > 0) {
        const int decimals = std::clamp(static_cast<int>(std::ceil(-std::log10(step) - 1e-9)), 0, 9);
        QString text = QString::number(std::abs(value) < step * 1e-6 ? 0.0 : value, 'f', decimals);
        return text.replace(u'-', QChar(0x2212));
    }
    if (std::abs(value) < 1e-12) {
        return QStringLiteral("0");
    }
    QString text = QString::number(value, 'g', std::abs(value) >= 1000 && std::abs(value) < 1e6 ? 7 : 4);
    return text.replace(u'-', QChar(0x2212));
}

std::string tex(const QString& text) {
    constexpr std::pair<char16_t, const char*> commands[] = {{u'\\', "\\textbackslash{}"},
                                                             {u'~', "\\textasciitilde{}"},
                                                             {u'^', "\\textasciicircum{}"},
                                                             {u'−', "$-$"},
                                                             {u'–', "--"},
                                                             {u'Δ', "$\\Delta$"},
                                                             {u'‖', "$\\|$"},
                                                             {u'≤', "$\\leq$"},
                                                             {u'≥', "$\\geq$"},
                                                             {u'→', "$\\rightarrow$"},
                                                             {u'⇥', "$\\rightarrow$"},
                                                             {u'⏎', "$\\hookleftarrow$"},
                                                             {u'␣', "\\textvisiblespace{}"},
                                                             {u'\n', " "},
                                                             {u'\r', " "}};
    QString result;
    for (const QChar c : text) {
        const auto* const command = std::find_if(std::begin(commands), std::end(commands),
                                                 [&](const auto& one) { return one.first == c; });
        if (command != std::end(commands)) {
            result += QLatin1String(command->second);
        } else if (QStringLiteral("&%$#_{}").contains(c)) {
            result += u'\\' + QString(c);
        } else {
            result += c;
        }
    }
    return result.toStdString();
}

bool are_apart(double low, double high) {
    return high - low > std::max(1e-300, 1e-12 * std::max(std::abs(low), std::abs(high)));
}

std::vector<double> round_ticks(double low, double high, int most) {
    std::vector<double> ticks;
    if (!are_apart(low, high)) {
        return {low};
    }
    const double step = tick_step(high - low, most);
    for (double k = std::ceil(low / step - 1e-9); k * step <= high + step * 1e-9; ++k) {
        ticks.push_back(k * step);
    }
    return ticks;
}

AxisRange round_range(double low, double high, int most_ticks) {
    if (!are_apart(low, high)) {
        const double room = std::max(std::abs(low) * 0.05, 0.05);
        low -= room;
        high += room;
    }
    const double step = tick_step(high - low, most_ticks);
    return {std::floor(low / step + 1e-9) * step, std::ceil(high / step - 1e-9) * step};
}

namespace {

struct LegendTexts {
    QString low, high;
};

LegendTexts legend_texts(const ScaleLegend& legend) {
    const QString sign = legend.signs ? QStringLiteral("+") : QString();
    return {(legend.clipped_low ? QStringLiteral("≤ ") : QString()) + tick_label(legend.scale.low),
            (legend.clipped_high ? QStringLiteral("≥ ") : QString()) + sign + tick_label(legend.scale.high)};
}

constexpr double legend_gap = 3;

double label_width(const Style& style, const ScaleLegend& legend) {
    return legend.label.isEmpty() ? 0 : style.fonts.width(legend.label, style.soft) + 2 * legend_gap;
}

} // namespace

double scale_legend_width(const Style& style, const ScaleLegend& legend) {
    const LegendTexts texts = legend_texts(legend);
    return label_width(style, legend) + style.fonts.width(texts.low, style.small) + legend_gap + legend.bar +
           legend_gap + style.fonts.width(texts.high, style.small);
}

double draw_scale_legend(DisplayList& list, const Style& style, QPointF baseline, const ScaleLegend& legend) {
    const LegendTexts texts = legend_texts(legend);
    double x = baseline.x();
    list.text(legend.label, baseline, style.soft);
    x += label_width(style, legend);
    list.text(texts.low, {x, baseline.y()}, style.small);
    x += style.fonts.width(texts.low, style.small) + legend_gap;
    const double height = style.fonts.cap_height(style.small);
    const QRectF bar(x, baseline.y() - height, legend.bar, height);
    // 64 flat pieces: a smooth gradient to the eye, and the same in every viewer. Each reaches under the
    // next, against seams.
    constexpr int pieces = 64;
    const double piece = bar.width() / pieces;
    for (int i = 0; i < pieces; ++i) {
        const double overlap = i + 1 < pieces ? piece / 2 : 0;
        list.rect({bar.x() + i * piece, bar.y(), piece + overlap, bar.height()},
                  QColor(legend.map.at((i + 0.5) / pieces)));
    }
    list.rect(bar, {}, {style.colours.border, 0.35, {}, false});
    x += legend.bar + legend_gap;
    list.text(texts.high, {x, baseline.y()}, style.small);
    return x + style.fonts.width(texts.high, style.small) - baseline.x();
}

std::vector<QString> wrapped_lines(const Style& style, const QString& text, double width, int most) {
    return wrapped_lines(style.fonts, style.small, text, width, most);
}

std::vector<QString> wrapped_lines(const Fonts& fonts, const TextStyle& letters, const QString& text,
                                   double width, int most) {
    const QStringList words = text.split(u' ', Qt::SkipEmptyParts);
    std::vector<QString> lines;
    for (const QString& word : words) {
        const QString longer = lines.empty() ? word : lines.back() + u' ' + word;
        if (!lines.empty() &&
            (static_cast<int>(lines.size()) == most || fonts.width(longer, letters) <= width)) {
            lines.back() = longer;
        } else {
            lines.push_back(word);
        }
    }
    if (!lines.empty()) {
        lines.back() = fonts.elided(lines.back(), letters, width);
    }
    return lines;
}

double title_height(const FigureSpec& spec, const Style& style) {
    return spec.title.empty() ? 0 : style.size * 1.75;
}

DisplayList finish(const FigureSpec& spec, const Style& style, const DisplayList& content,
                   double content_height, const std::string& what_to_shorten) {
    const double needed = title_height(spec, style) + content_height + 2 * style.margin;
    const double height = spec.height_mm ? *spec.height_mm * points_per_mm : needed;
    if (height + 0.01 < needed) {
        throw InputError("The figure needs a height of " + number_text(needed / points_per_mm) +
                         " mm at a width of " + number_text(spec.width_mm) + " mm, and \"height_mm\" says " +
                         number_text(*spec.height_mm) + "; " + what_to_shorten + ".");
    }
    if (height > longest_page) {
        throw InputError("The figure would be " + number_text(height / points_per_mm) +
                         " mm high, and no page can be higher than " +
                         number_text(longest_page / points_per_mm) + " mm; " + what_to_shorten + ".");
    }
    DisplayList page(QSizeF(spec.width_mm * points_per_mm, height));
    if (spec.theme == "dark") {
        page.rect(QRectF(QPointF(), page.size()), style.colours.panel);
    }
    if (!spec.title.empty()) {
        const TextStyle bold{style.size, true, style.colours.text};
        page.text(style.fonts.elided(QString::fromStdString(spec.title), bold, style.width),
                  {style.margin, style.margin + style.fonts.cap_height(bold) + 1}, bold);
    }
    page.append(content, {style.margin, style.margin + title_height(spec, style)});
    return page;
}

std::string number_text(double value) {
    return shortest(std::round(value * 10) / 10);
}

std::string csv_text(const std::string& text) {
    return plain_text::csv_field(text);
}

std::string csv_bytes(const std::string& bytes) {
    return csv_text(is_valid_utf8(bytes) && bytes.find('\0') == std::string::npos
                        ? bytes
                        : visible_text(bytes).toStdString());
}

std::string csv_number(float value) {
    return std::isnan(value) ? std::string() : shortest(value);
}

std::string csv_number(double value) {
    return std::isnan(value) ? std::string() : shortest(value);
}

} // namespace ponderscope::figure
