// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/figure/parts.h"

#include "core/base/error.h"
#include "core/base/words.h"
#include "core/stats/data_table.h"

#include <cmath>

using namespace Qt::StringLiterals;

namespace ponderscope::figure {
constexpr double longest_page = 14400; // points; PDF 1.7, annex C: larger pages do not open everywhere

Style::Style(const FigureSpec& spec, const Fonts& f)
    : ChartInks(chart_inks(Theme(spec.theme == "dark" ? Appearance::dark : Appearance::light))),
      fonts(f),
      size(spec.font_size),
      width(spec.width_mm * points_per_mm) {
    dark = spec.theme == "dark";
    margin = dark ? 6 : 0;
    width -= 2 * margin;
    if (const std::vector<QColor> named = palette_colours(spec.palette, dark); !named.empty()) {
        runs = named;
        rules = named;
    }
    number_run_colours(*this, spec.colours);
    cells = ColourMap::magnitude(spec.colour_map);
    body = {size, false, colours.text};
    soft = {size, false, colours.soft};
    small = {size * 7 / 8, false, colours.soft};
}

double draw_scale_legend(DisplayList& list, const Style& style, QPointF baseline, const ScaleLegend& legend) {
    constexpr double gap = 3;
    double x = baseline.x();
    const auto write = [&](const QString& text, const TextStyle& letters) {
        list.text(text, {x, baseline.y()}, letters);
        x += style.fonts.width(text, letters) + gap;
    };
    if (!legend.label.isEmpty()) {
        write(legend.label, style.soft);
        x += gap;
    }
    write((legend.clipped_low ? u"≤ "_s : QString()) + tick_label(legend.scale.low), style.small);
    const double height = style.fonts.cap_height(style.small);
    const QRectF bar(x, baseline.y() - height, legend.bar, height);
    // Pieces of one colour look the same in every viewer. Each reaches under the next one, to avoid seams.
    constexpr int pieces = 64;
    const double piece = bar.width() / pieces;
    for (int i = 0; i < pieces; ++i) {
        const double overlap = i + 1 < pieces ? piece / 2 : 0;
        list.rect({bar.x() + i * piece, bar.y(), piece + overlap, bar.height()},
                  QColor(legend.map.at((i + 0.5) / pieces)));
    }
    list.rect(bar, {}, {style.colours.border, 0.35, {}, false});
    x += legend.bar + gap;
    write((legend.clipped_high ? u"≥ "_s : QString()) + (legend.signs ? u"+"_s : QString()) +
              tick_label(legend.scale.high),
          style.small);
    return x - gap - baseline.x();
}

double scale_legend_width(const Style& style, const ScaleLegend& legend) {
    DisplayList unseen;
    return draw_scale_legend(unseen, style, {}, legend);
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
        throw InputError(ErrorId::figure_size,
                         "The figure needs a height of " + number_text(needed / points_per_mm) +
                             " mm at a width of " + number_text(spec.width_mm) +
                             " mm, but \"height_mm\" is " + number_text(*spec.height_mm) +
                             "; raise \"height_mm\", or " + what_to_shorten + ".");
    }
    if (height > longest_page) {
        throw InputError(ErrorId::figure_size, "The figure would be " + number_text(height / points_per_mm) +
                                                   " mm high, but a page can have at most " +
                                                   number_text(longest_page / points_per_mm) + " mm; " +
                                                   what_to_shorten + ".");
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

} // namespace ponderscope::figure
