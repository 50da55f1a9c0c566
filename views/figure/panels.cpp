// SPDX-License-Identifier: GPL-3.0-or-later
// Several figures on one page: rows of columns of one width, each with its letter.
#include "views/figure/figure.h"
#include "views/figure/parts.h"

#include "core/base/error.h"

#include <algorithm>

namespace ponderscope::figure {

Figure compose_panels(const FigureSpec& spec, const FigureData& data, const Fonts& fonts) {
    const Style style(spec, fonts);
    const auto columns = static_cast<std::size_t>(
        std::clamp<std::int64_t>(spec.columns, 1, static_cast<std::int64_t>(spec.panels.size())));
    const double gap = style.size * 2;
    const double width =
        (style.width - gap * static_cast<double>(columns - 1)) / static_cast<double>(columns);
    if (width < 40 * points_per_mm) {
        throw InputError("A panel would be " + number_text(width / points_per_mm) +
                         " mm wide; panels need 40 mm: choose fewer columns or a wider page.");
    }
    const double letter = spec.letters ? style.size * 1.6 : 0;
    const TextStyle bold{style.size * 1.15, true, style.colours.text};
    Figure figure;
    DisplayList list;
    double top = 0;
    for (std::size_t first = 0; first < spec.panels.size(); first += columns) {
        double height = 0;
        for (std::size_t i = first; i < std::min(first + columns, spec.panels.size()); ++i) {
            FigureSpec one = spec.panels[i];
            one.width_mm = width / points_per_mm + 2 * style.margin / points_per_mm;
            one.theme = spec.theme;
            const Figure panel = compose(one, data.panels[i], fonts);
            const QString name(QChar(static_cast<char16_t>(u'a' + i)));
            const QPointF at(static_cast<double>(i - first) * (width + gap), top);
            if (spec.letters) {
                list.text(name, {at.x(), at.y() + fonts.ascent(bold)}, bold);
            }
            list.append(panel.page, at + QPointF(-style.margin, letter - style.margin));
            height = std::max(height, panel.page.size().height() + letter - 2 * style.margin);
            for (const Table& table : panel.tables) {
                figure.tables.push_back(
                    {name.toStdString() + (table.suffix.empty() ? "" : "." + table.suffix), table.csv,
                     table.extension});
            }
            for (const std::string& notice : panel.notices) {
                figure.notices.push_back(name.toStdString() + ": " + notice);
            }
        }
        top += height + gap;
    }
    figure.page = finish(spec, style, list, top - gap, "choose fewer panels");
    return figure;
}

} // namespace ponderscope::figure
