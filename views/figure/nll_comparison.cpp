// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/format.h"
#include "views/compare/compare_charts.h"
#include "views/figure/chart_drawing.h"
#include "views/figure/figure.h"
#include "views/figure/parts.h"

#include <algorithm>

using namespace Qt::StringLiterals;

namespace ponderscope::figure {
namespace {

std::string point_table(const RunComparison& comparison) {
    std::string csv = "sequence,token," + csv_field("nll " + comparison.runs[0].label) + "," +
                      csv_field("nll " + comparison.runs[1].label) + "\n";
    for (std::size_t i = 0; i < comparison.places.size(); ++i) {
        csv += std::to_string(comparison.places[i].sequence) + "," +
               std::to_string(comparison.places[i].row + 1) + "," +
               csv_number(comparison.runs[0].token_nll[i]) + "," +
               csv_number(comparison.runs[1].token_nll[i]) + "\n";
    }
    return csv;
}

} // namespace

Figure compose_nll_comparison(const FigureSpec& spec, const FigureData& data, const Fonts& fonts) {
    constexpr std::size_t most_points = 3000; // more points become a density
    constexpr double side_by_side_mm = 130;   // smallest width for parts side by side
    constexpr int note_lines = 8;
    const Style style(spec, fonts);
    const RunComparison& comparison = *data.comparison;
    std::vector<QString> names;
    for (const RunComparison::Run& run : comparison.runs) {
        names.push_back(QString::fromStdString(shown_name(spec, run.label)));
    }
    const Chart means = mean_nll_chart(comparison, names);
    const bool scatter = spec.scatter && comparison.runs.size() > 1;
    const bool beside = scatter && spec.width_mm >= side_by_side_mm;
    const double gap = style.size * 2.5;
    // The square is narrower than the column, because it has little information for its area.
    const double side = scatter ? style.width * (beside ? 0.4 : 0.8) : 0;
    const double left = beside ? style.width - side - gap : style.width;
    const double needed = readable_height(style, left, means, note_lines, style.size * 4);
    double height = beside ? std::max(needed, side) : needed;
    DisplayList list;
    draw_chart(list, style, {0, 0, left, height}, means, note_lines);
    if (scatter) {
        Chart pairs = comparison.places.size() > most_points ? token_density_chart(comparison)
                                                             : token_pairs_chart(comparison);
        pairs.x.label = u"NLL of %1 (nats)"_s.arg(names[0]);
        pairs.y.label = u"NLL of %1 (nats)"_s.arg(names[1]);
        const QRectF box = beside ? QRectF(left + gap, 0, side, side)
                                  : QRectF((style.width - side) / 2, height + gap, side, side);
        draw_chart(list, style, box, pairs, 2);
        height = std::max(height, box.bottom());
    }
    Figure figure;
    figure.page = finish(spec, style, list, height, "make the figure wider, or leave out \"scatter\"");
    figure.tables.push_back({"", csv_of(table_of(comparison))});
    if (scatter) {
        figure.tables.push_back({"tokens", point_table(comparison)});
    }
    return figure;
}

} // namespace ponderscope::figure
